package workers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
)

func deadCursor() error {
	return &jobs.CallError{Class: jobs.ClassCursor, Reason: "invalidPageToken", Err: errors.New("400")}
}

func TestAListingGoesOnInTheNextSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 100, perPage: 10, latency: time.Second})
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		// The profile and four pages in five seconds.
		row := b.store.job(b.ref.Job)
		if row.Progress.Listed != 40 || row.Checkpoint.PageToken != "40" || row.Checkpoint.Listed {
			t.Errorf("row = %+v, want 40 listed, the next page at 40", row)
		}
		if row := b.toEnd(); row.Progress.Stored != 100 || !row.Checkpoint.Listed {
			t.Errorf("row at the end = %+v, want all 100", row)
		}
		if b.box.made("profile") != 1 || b.box.made("list 30") != 1 {
			t.Errorf("calls %q, want the profile and each page once", b.box.calls)
		}
	})
}

func TestARunAfterAnotherKeepsItsHistoryIDAndAsksHowMuchThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 30})
		b.store.edit(b.ref.Job, func(j *jobs.Job) { j.Checkpoint.HistoryID = 42 })
		row := b.toEnd()
		if row.Checkpoint.HistoryID != 42 || row.Progress.Expected != 30 || b.box.made("profile") != 1 {
			t.Errorf("row = %+v after %d profiles, want history id 42 and 30 expected after 1", row, b.box.made("profile"))
		}
	})
}

func TestADeadPageTokenStartsTheListingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, perPage: 10})
		b.box.fault = func(call string, nth int) error {
			if call == "list 20" && nth == 1 {
				return deadCursor()
			}
			return nil
		}
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		if row := b.store.job(b.ref.Job); row.State != jobs.Completed || row.Progress.Listed != 40 || row.Progress.Stored != 40 {
			t.Errorf("row = %+v, want 40 listed and stored", row)
		}
		if got := b.box.made("list "); got != 2 {
			t.Errorf("first page listed %d times, want 2", got)
		}
	})
}

func TestPageTokensThatAlwaysDieBackOff(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(call string, nth int) error
	}{
		{"on the second page", func(call string, _ int) error {
			if call == "list 10" {
				return deadCursor()
			}
			return nil
		}},
		{"on the first", func(call string, _ int) error {
			if call == "list " {
				return deadCursor()
			}
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 40, perPage: 10})
				b.box.fault = tt.fault
				parked := b.mustPark(b.ref)
				if !strings.Contains(parked.For, "invalidPageToken") {
					t.Errorf("parked for %q, want the dead token", parked.For)
				}
				if n := b.box.made("list ") + b.box.made("list 10"); n > 4 {
					t.Errorf("%d list calls, want 4 at most in a slice", n)
				}
				if relists := len(slices.DeleteFunc(b.store.written(), func(w string) bool { return w != "relist" })); relists > 1 {
					t.Errorf("listing restarted %d times in a slice, want once", relists)
				}
			})
		})
	}
}

func TestAPageThatNamesItselfEndsTheSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, perPage: 10})
		b.box.loop = "10"
		parked := b.mustPark(b.ref)
		if !strings.Contains(parked.For, "repeatedPageToken") {
			t.Errorf("parked for %q, want the repeated token", parked.For)
		}
	})
}

func TestATransientListFaultBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 20})
		b.box.fault = func(call string, nth int) error {
			if call == "list " && nth <= 4 {
				return transient("backendError")
			}
			return nil
		}
		for i, want := range []time.Duration{1, 2, 4, 8} {
			started := time.Now()
			parked := b.mustPark(b.ref)
			if got := parked.Until.Sub(started); got != want*time.Second {
				t.Errorf("wait %d = %s, want %ds", i+1, got, want)
			}
			<-time.After(parked.Until.Sub(started))
		}
		if row := b.store.job(b.ref.Job); row.Failures != 4 || row.Refusals != 0 {
			t.Errorf("row = %+v, want 4 failures", row)
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Failures != 0 {
			t.Errorf("row at the end = %+v, want it completed and the failures forgotten", row)
		}
		if b.box.made("profile") != 1 {
			t.Errorf("profile asked %d times, want once: its history id is pinned", b.box.made("profile"))
		}
	})
}
