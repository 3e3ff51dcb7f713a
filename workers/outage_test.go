package workers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
)

// downBetween makes every get fail for a while.
func downBetween(box *memMailbox, from, to time.Time) {
	box.fault = func(call string, _ int) error {
		if now := time.Now(); strings.HasPrefix(call, "get") && !now.Before(from) && now.Before(to) {
			return transient("backendError")
		}
		return nil
	}
}

func TestAnOutageCostsTheItemsNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // since the start
		most  int           // fetches beyond one for each message
	}{
		{"from the first fetch on", 0, 9 * 14}, // nothing at hand to probe with
		{"in the middle", 2 * time.Second, 14 + 9 + 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 300, latency: 100 * time.Millisecond})
				from, to := time.Now().Add(tt.after), time.Now().Add(3*time.Minute)
				downBetween(b.box, from, to)
				parked := b.mustPark(b.ref)
				if !strings.Contains(parked.For, "fetches from ann@example.com worked, the last for backendError") {
					t.Errorf("parked for %q, want it to say that none of the last fetches worked", parked.For)
				}
				row := b.store.job(b.ref.Job)
				if row.Failures != 1 || row.Requeued != 0 || row.Progress.Failed != 0 {
					t.Errorf("row = %+v, want one failure of the job", row)
				}
				row = b.toEnd()
				if row.State != jobs.Completed || row.Progress.Stored != 300 {
					t.Errorf("row at the end = %+v, want all 300", row)
				}
				for _, item := range b.store.jobs[b.ref.Job].items {
					if item.Attempts > 0 {
						t.Errorf("item %s has %d attempts, want none", item.ID, item.Attempts)
					}
				}
				calls := 0
				for _, call := range b.box.calls {
					if strings.HasPrefix(call, "get") {
						calls++
					}
				}
				if calls > 300+tt.most {
					t.Errorf("%d fetches, want %d at most: few while Google is out", calls, 300+tt.most)
				}
			})
		})
	}
}

func TestAnOutageThatLastsFailsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 50})
		started := time.Now()
		downBetween(b.box, started, started.Add(24*time.Hour))
		row := b.toEnd()
		if row.State != jobs.Failed || !strings.Contains(row.LastError, "gave up after 21 failures in a row") || !strings.Contains(row.LastError, "backendError") {
			t.Errorf("row = %+v, want it failed, saying after how many failures and why", row)
		}
		if took := time.Since(started); took < 14*time.Minute || took > 20*time.Minute {
			t.Errorf("failed after %s, want 1+2+4+...+32 and 14 times 60 seconds", took)
		}
		if row.Progress.Failed != 0 {
			t.Errorf("row = %+v, want no item blamed", row)
		}
		for outcome, want := range map[string]float64{"backed-off": 20, "failed": 1} {
			if got := testutil.ToFloat64(b.metrics.slices.WithLabelValues("backfill", outcome)); got != want {
				t.Errorf("%v slices counted as %s, want %v: a pause is not the end", got, outcome, want)
			}
		}
	})
}

// Many bad items in a row look like an outage; the message that was fetched
// before tells them apart.
func TestABadStretchIsNoOutage(t *testing.T) {
	for _, tt := range []struct {
		name    string
		from    int
		restart bool // the process, after every slice
	}{
		{"in the middle", 40, false},
		{"at the end", 60, false},
		{"at the end, and the worker is restarted", 60, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 100, latency: 50 * time.Millisecond})
				b.box.fault = func(call string, _ int) error {
					id, get := strings.CutPrefix(call, "get m")
					if n, _ := strconv.Atoi(id); get && n >= tt.from && n < tt.from+40 {
						return transient("backendError")
					}
					return nil
				}
				for range 500 {
					row := b.store.job(b.ref.Job)
					if row.State.Terminal() {
						break
					}
					err := b.slice(row.Ref())
					if parked, ok := err.(*ParkedError); ok {
						<-time.After(parkDelay(time.Until(parked.Until)))
					}
					if tt.restart {
						b.memory = newMemory()
					}
				}
				row := b.store.job(b.ref.Job)
				if row.State != jobs.CompletedWithFailures || row.Progress.Stored != 60 || row.Progress.Failed != 40 {
					t.Errorf("row = %+v, want 60 stored and 40 on the failure list", row)
				}
				if f := b.store.failure(b.ref.Job, fmt.Sprintf("m%d", tt.from+7)); f.Attempts != 5 || f.Reason != "backendError" {
					t.Errorf("failure = %+v, want 5 attempts, backendError", f)
				}
			})
		})
	}
}

// Bad messages at the very start, before anything was fetched that could prove
// Google well: the mailbox is brought all the same.
func TestABadStretchAtTheStartIsNoOutage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n, bad int
		known  int // of the rest, stored by a run before this one
	}{
		{"the newest tenth", 300, 30, 0},
		{"most of it", 300, 200, 0},
		{"all that is left of an earlier run", 300, 12, 288},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: tt.n, latency: 50 * time.Millisecond})
				for i := tt.n - tt.known; i < tt.n; i++ {
					id := fmt.Sprintf("m%d", i)
					b.store.messages[ann+"/"+id] = jobs.Message{Account: ann, ID: id}
				}
				if tt.known > 0 {
					b.store.skip = func(id string) bool { _, stored := b.store.messages[ann+"/"+id]; return stored }
				}
				b.box.fault = func(call string, _ int) error {
					id, get := strings.CutPrefix(call, "get m")
					if n, _ := strconv.Atoi(id); get && n < tt.bad {
						return transient("backendError")
					}
					return nil
				}
				row := b.toEnd()
				good := int64(tt.n - tt.bad - tt.known)
				if row.State != jobs.CompletedWithFailures || row.Progress.Stored != good || row.Progress.Failed != int64(tt.bad) {
					t.Errorf("row = %+v, want %d stored and %d on the failure list", row, good, tt.bad)
				}
				if f := b.store.failure(b.ref.Job, "m7"); f.Attempts != 5 {
					t.Errorf("failure = %+v, want 5 attempts", f)
				}
			})
		})
	}
}

// Fewer faults than make a streak, slice after slice: a Google that hangs.
func TestAStreakIsRememberedFromSliceToSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 100, slow: 54 * time.Second})
		b.box.fault = func(call string, _ int) error {
			if strings.HasPrefix(call, "get") {
				return transient("timeout")
			}
			return nil
		}
		if err := b.slice(b.ref); err != nil { // 7 faults: they count
			t.Fatalf("first slice = %v, want nil", err)
		}
		parked := b.mustPark(b.ref.Next())
		if !strings.Contains(parked.For, "none of the last 14 fetches") {
			t.Errorf("second slice parked for %q, want the outage seen", parked.For)
		}
		attempts := 0
		for _, item := range b.store.jobs[b.ref.Job].items {
			attempts += item.Attempts
		}
		if attempts != 7 {
			t.Errorf("%d attempts counted, want the first slice's 7 only", attempts)
		}
	})
}

func TestASampleIsPendingFreshAndFromAllPartsOfTheRest(t *testing.T) {
	b := newRig(t, &memMailbox{})
	j := b.store.jobs[b.ref.Job]
	for seq := int64(1); seq <= 102; seq++ {
		item := &memItem{Item: jobs.Item{Seq: seq, ID: fmt.Sprintf("m%d", seq)}}
		switch {
		case seq > 27 && seq <= 52: // the second quarter of the rest
			item.done = true
		case seq > 77: // the last
			item.Attempts = 1
		}
		j.items = append(j.items, item)
	}
	j.Progress.Listed = 102
	job, err := b.store.Claim(t.Context(), b.ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := &slice{handler: b.handler, job: job, ref: job.Ref()}
	suspects := []suspect{{item: jobs.Item{Seq: 2}}, {item: jobs.Item{Seq: 1}}}
	for range 50 {
		items, err := s.sample(t.Context(), suspects)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(items); n < 2 || n > 3 {
			t.Fatalf("sample = %+v, want one of the first quarter and one or two of the third", items)
		}
		for _, item := range items {
			if item.Seq <= 2 || item.Seq > 27 && item.Seq <= 52 || item.Seq > 78 || item.Attempts > 0 {
				t.Errorf("sample %+v, want it after the suspects, pending and never tried", item)
			}
		}
	}
}
