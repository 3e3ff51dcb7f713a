package workers

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
)

func TestASliceTakesAtMostHalfOfItsTasksTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{})
		for _, tt := range []struct{ timeout, want time.Duration }{
			{time.Minute, 5 * time.Second},
			{8 * time.Second, 4 * time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			if got := time.Until(b.workEnd(ctx, time.Now())); got != tt.want {
				t.Errorf("a task of %s takes on work for %s, want %s", tt.timeout, got, tt.want)
			}
			cancel()
		}
	})
}

// A fetch that drags on is cut off early enough for the slice to say so, and
// counts against its item only.
func TestAFetchThatDragsOnIsCutOffBeforeItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 3, slow: time.Hour}, func(o *Options) { o.TaskTimeout = time.Minute })
		b.store.seed("k9") // which proves that Google works
		started := time.Now()
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		if took := time.Since(started); took != 55*time.Second {
			t.Errorf("slice took %s, want 55s of its minute", took)
		}
		if row := b.store.job(b.ref.Job); row.Slice != 1 || row.Failures != 0 {
			t.Errorf("row = %+v, want it at slice 1", row)
		}
		row := b.toEnd()
		if row.State != jobs.CompletedWithFailures || row.Progress.Failed != 3 {
			t.Errorf("row at the end = %+v, want 3 on the failure list", row)
		}
		if f := b.store.failure(b.ref.Job, "m1"); f.Attempts != 5 || !strings.Contains(f.Reason, "deadline exceeded") {
			t.Errorf("failure = %+v, want 5 attempts, the deadline", f)
		}
	})
}

// A message has as long as it makes progress, however many slices' time that is.
func TestASlowMessageIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 3, slow: 20 * time.Minute})
		row := b.toEnd()
		if row.State != jobs.Completed || row.Progress.Stored != 3 {
			t.Errorf("row = %+v, want all 3", row)
		}
		for call, n := range b.box.times {
			if strings.HasPrefix(call, "get") && n != 1 {
				t.Errorf("%s was made %d times, want once", call, n)
			}
		}
	})
}
