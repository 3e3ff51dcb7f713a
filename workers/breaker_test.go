package workers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
)

// downBetween makes every get fail for a while.
func downBetween(box *memMailbox, from, to time.Time) {
	box.fault = func(call string, _ int) error {
		if now := time.Now(); isFetch(call) && !now.Before(from) && now.Before(to) {
			return transient("backendError")
		}
		return nil
	}
}

func isFetch(call string) bool {
	return strings.HasPrefix(call, "get") || strings.HasPrefix(call, "metadata")
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
				if !strings.Contains(parked.For, "fetches from ann@example.com fail: 503 backendError") {
					t.Errorf("parked for %q, want it to say the cause", parked.For)
				}
				row := b.store.job(b.ref.Job)
				if row.Failures != 1 || row.Requeued != 0 || row.Progress.Failed != 0 {
					t.Errorf("row = %+v, want one failure of the job", row)
				}
				row = b.toEnd()
				if row.State != jobs.Completed || row.Progress.Stored != 300 {
					t.Errorf("row at the end = %+v, want all 300", row)
				}
				if n := b.store.failedAttempts(); n > 0 {
					t.Errorf("%d attempts of items failed, want none", n)
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

// However long an outage lasts, few calls are made in it, and nothing is blamed.
func TestAnOutageEndsNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		calls func(string) bool // that fail
	}{
		{"of everything", 50, func(string) bool { return true }},
		{"of fetches, with nothing stored before", 50, isFetch},
		{"of a mailbox of one message", 1, isFetch},
		{"of a mailbox of a few", 4, isFetch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: tt.n, latency: 50 * time.Millisecond})
				const length = 8 * time.Hour
				began := time.Now()
				b.box.fault = func(call string, _ int) error {
					if tt.calls(call) && time.Since(began) < length {
						return transient("backendError")
					}
					return nil
				}
				row := b.toEnd()
				if row.State != jobs.Completed || row.Progress.Stored != int64(tt.n) || row.Progress.Failed != 0 {
					t.Errorf("row = %+v, want all %d messages", row, tt.n)
				}
				if took := time.Since(began); took > length+3*time.Minute {
					t.Errorf("done %s after the outage, want minutes", took-length)
				}
				if n, most := len(b.box.calls), 7*int(length/(2*time.Minute))+2*tt.n+60; n > most {
					t.Errorf("%d calls, want %d at most", n, most)
				}
			})
		})
	}
}

// A mailbox each of whose messages works after some attempts: the time that it takes
// grows with the faults, not with how many rounds they take.
func TestSlowStartsAreNoOutage(t *testing.T) {
	for _, tt := range []struct{ n, faults, known int }{{240, 4, 0}, {240, 4, 20}, {2000, 3, 0}, {30, 2, 1}, {1, 4, 0}} {
		t.Run(fmt.Sprintf("%d messages, %d faults each, %d known", tt.n, tt.faults, tt.known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: tt.n, latency: 100 * time.Millisecond})
				for i := range tt.known {
					id := fmt.Sprintf("k%d", i)
					b.store.seed(id)
				}
				b.box.fault = func(call string, nth int) error {
					if strings.HasPrefix(call, "get") && nth <= tt.faults {
						return transient("backendError")
					}
					return nil
				}
				began := time.Now()
				row := b.toEnd()
				took := time.Since(began)
				if row.State != jobs.Completed || row.Progress.Stored != int64(tt.n) {
					t.Errorf("row = %+v, want all %d messages", row, tt.n)
				}
				calls := tt.n * (tt.faults + 1)
				if most := time.Duration(calls)*100*time.Millisecond/7*2 + 90*time.Second; took > most {
					t.Errorf("took %s, want %s at most", took, most)
				}
				probes := 0
				for _, call := range b.box.calls {
					if !strings.HasPrefix(call, "get m") {
						probes++
					}
				}
				if most := 20 + int(took/proofInterval); probes > most {
					t.Errorf("%d other calls in %s, want %d at most", probes, took, most)
				}
			})
		})
	}
}

// proofInterval is how often a message that is known may be asked for.
const proofInterval = 10 * time.Second

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
					if parked, ok := errors.AsType[*RequeueError](err); ok {
						<-time.After(requeueDelay(time.Until(parked.Until)))
					}
					if tt.restart {
						b.cache = newJobCache()
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
					b.store.seed(id)
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
		if !strings.Contains(parked.For, "503 timeout") {
			t.Errorf("second slice parked for %q, want the outage seen", parked.For)
		}
		if n := b.store.failedAttempts(); n != 7 {
			t.Errorf("%d attempts counted, want the first slice's 7 only", n)
		}
	})
}

func TestASampleIsPendingFreshAndFromAllPartsOfTheRest(t *testing.T) {
	b := newRig(t, &memMailbox{})
	ctx := t.Context()
	job, err := b.store.Claim(ctx, b.ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var page jobs.Page
	var results []jobs.Result
	for seq := 1; seq <= 102; seq++ {
		id := fmt.Sprintf("m%d", seq)
		page.IDs = append(page.IDs, id)
		switch {
		case seq > 27 && seq <= 52: // the second quarter of the rest is done
			results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemGone})
		case seq > 77: // the last was tried
			results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemDeferred, Failure: &jobs.Failure{}})
		}
	}
	if _, err := b.store.AddListed(ctx, job.Ref(), page); err != nil {
		t.Fatal(err)
	}
	if job, err = b.store.Commit(ctx, job.Ref(), results); err != nil {
		t.Fatal(err)
	}
	s := &mailRun{slice: &slice{handler: b.handler, job: job, ref: job.Ref()}}
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
