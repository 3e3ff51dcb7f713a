package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// refuseFrom makes a mailbox that gives n messages and then refuses.
func refuseFrom(n int, err func() error) *memMailbox {
	box := &memMailbox{n: 40, latency: 10 * time.Millisecond}
	got := 0
	box.fault = func(call string, _ int) error {
		box.mu.Lock()
		defer box.mu.Unlock()
		if !strings.HasPrefix(call, "get") {
			return nil
		}
		if got++; got > n {
			return err()
		}
		return nil
	}
	return box
}

func TestARefusedSliceKeepsWhatItHasAndWaitsForTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, refuseFrom(17, func() error { return denied(3800 * time.Millisecond) }))
		started := time.Now()
		parked := b.mustPark(b.ref)
		row := b.store.job(b.ref.Job)
		if row.Progress.Stored != 17 || row.State != jobs.Waiting || row.Slice != 0 || row.Epoch != 1 {
			t.Errorf("row = %+v, want 17 stored and the same slice waiting", row)
		}
		if row.Requeued != 1 || row.Refusals != 1 || row.Failures != 0 || row.LastError != "" || !row.LeaseUntil.IsZero() {
			t.Errorf("row = %+v, want one refusal, no failure, nobody's", row)
		}
		if parked.For != "user-minute (ceiling)" || row.WaitingFor != parked.For || !row.WaitUntil.Equal(parked.Until) {
			t.Errorf("parked %v, row waits for %q until %s, want both for user-minute (ceiling)", parked, row.WaitingFor, row.WaitUntil)
		}
		if wait := parked.Until.Sub(started); wait < 3800*time.Millisecond || wait > 3900*time.Millisecond {
			t.Errorf("waits until %s after the start, want 3.8s after the refusal", wait)
		}
		if len(b.queue.refs) != 0 {
			t.Errorf("enqueued %v, want Asynq to retry the task itself", b.queue.refs)
		}
	})
}

func TestRefusalsInARowWithoutProgressDoubleTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		give := 0
		b := newRig(t, refuseFrom(0, func() error {
			if give > 0 {
				give--
				return nil
			}
			return denied(5 * time.Second)
		}))
		waits := func() time.Duration {
			started := time.Now()
			wait := b.mustPark(b.ref).Until.Sub(started).Round(time.Second)
			<-time.After(wait)
			return wait
		}
		for i, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
			if got := waits(); got != want*time.Second {
				t.Errorf("wait %d = %s, want %ds", i+1, got, want)
			}
		}
		give = 3
		if got := waits(); got != 5*time.Second {
			t.Errorf("wait after progress = %s, want 5s", got)
		}
		if row := b.store.job(b.ref.Job); row.Progress.Stored != 3 || row.Requeued != 7 || row.Refusals != 1 || row.Failures != 0 {
			t.Errorf("row = %+v, want 3 stored, 7 requeued, 1 refusal since", row)
		}
	})
}

// A cool-down ends when Google or the ledger says, however many were before it.
func TestTheEndsOfCoolDownsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{
			&jobs.CallError{Class: jobs.ClassQuota, Reason: "rateLimitExceeded", Wait: 20 * time.Second, Err: errors.New("403")},
			&quota.DeniedError{Limit: "user-minute", Bound: quota.BoundHold, RetryAfter: 2 * time.Second},
		}
		asked := 0
		b := newRig(t, refuseFrom(0, func() error { return answers[asked%2] }), func(o *Options) { o.InFlight = 1 })
		for range 12 {
			started := time.Now()
			parked := b.mustPark(b.ref)
			want := []time.Duration{20 * time.Second, 2 * time.Second}[asked%2]
			if got := parked.Until.Sub(started).Round(time.Second); got != want || !strings.Contains(parked.For, "Google") {
				t.Errorf("parked %d: %v, want Google's %s", asked, parked, want)
			}
			<-time.After(time.Until(parked.Until))
			asked++
		}
		if row := b.store.job(b.ref.Job); row.Requeued != 12 || row.Failures != 0 {
			t.Errorf("row = %+v, want 12 refusals and no failure", row)
		}
	})
}

func TestDoubledWaitsRunAsFastAsTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, refuseFrom(0, func() error { return denied(time.Second) }), func(o *Options) { o.Scale = 20 })
		for i, want := range []time.Duration{1, 2, 3, 3} { // a minute is three seconds
			started := time.Now()
			wait := b.mustPark(b.ref).Until.Sub(started).Round(time.Second)
			if wait != want*time.Second {
				t.Errorf("wait %d = %s, want %ds", i+1, wait, want)
			}
			<-time.After(wait)
		}
	})
}

// A throttled account is asked with one call, not with as many as fit.
func TestAfterARefusalOneCallTriesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, latency: 100 * time.Millisecond})
		back := time.Now().Add(time.Minute)
		gets := 0
		b.box.fault = func(call string, _ int) error {
			if !strings.HasPrefix(call, "get") {
				return nil
			}
			b.box.mu.Lock()
			defer b.box.mu.Unlock()
			gets++
			if time.Now().Before(back) {
				return denied(5 * time.Second)
			}
			return nil
		}
		for wake, want := range []int{7, 1, 1} {
			gets = 0
			parked := b.mustPark(b.ref)
			if gets != want {
				t.Errorf("wake-up %d: %d calls, want %d", wake, gets, want)
			}
			<-time.After(time.Until(parked.Until))
		}
		<-time.After(time.Until(back))
		b.box.most = 0
		started := time.Now()
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 40 {
			t.Errorf("row at the end = %+v, want all 40", row)
		}
		if b.box.most != 7 {
			t.Errorf("%d calls in flight once the quota was back, want 7", b.box.most)
		}
		// One call, and then the 39 others seven at a time.
		if took := time.Since(started); took != 700*time.Millisecond {
			t.Errorf("took %s once the quota was back, want 0.7s", took)
		}
	})
}

func TestEveryKindOfRefusalWaits(t *testing.T) {
	google := func(wait time.Duration) error {
		return &jobs.CallError{Class: jobs.ClassQuota, Reason: "rateLimitExceeded", Wait: wait, Err: errors.New("403")}
	}
	for _, tt := range []struct {
		name string
		err  error
		wait time.Duration
		says string
	}{
		{"Google's quota answer with a wait", google(20 * time.Second), 20 * time.Second, "Google's quota (rateLimitExceeded)"},
		{"Google's quota answer without one", google(0), 65 * time.Second, "Google's quota (rateLimitExceeded)"},
		{"Google's quota answer for hours", google(3 * time.Hour), 3 * time.Hour, "Google's quota (rateLimitExceeded)"},
		{"a ledger that is away", fmt.Errorf("take: %w: connection refused", quota.ErrUnavailable), time.Second, "the quota ledger is unavailable"},
	} {
		for _, at := range []string{"profile", "list ", "get m5"} {
			t.Run(tt.name+" at "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newRig(t, &memMailbox{n: 20})
					b.box.fault = func(call string, nth int) error {
						if call == at && nth == 1 {
							return tt.err
						}
						return nil
					}
					started := time.Now()
					parked := b.mustPark(b.ref)
					if got := parked.Until.Sub(started); got != tt.wait || !strings.Contains(parked.For, tt.says) {
						t.Errorf("parked %v for %s, want %q for %s", parked, got, tt.says, tt.wait)
					}
					if row := b.store.job(b.ref.Job); row.Requeued != 1 || row.Failures != 0 {
						t.Errorf("row = %+v, want a refusal and no failure", row)
					}
					if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 20 {
						t.Errorf("row at the end = %+v, want all 20", row)
					}
				})
			})
		}
	}
}

func TestALedgerThatStaysAwayNeverFailsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(time.Hour)
		b := newRig(t, refuseFrom(0, func() error {
			if time.Now().Before(back) {
				return quota.ErrUnavailable
			}
			return nil
		}))
		row := b.toEnd()
		if row.State != jobs.Completed || row.Progress.Stored != 40 {
			t.Errorf("row = %+v, want it completed", row)
		}
		if late := time.Since(back); late < 0 || late > 15*time.Second {
			t.Errorf("completed %s after the ledger came back, want within seconds", late)
		}
	})
}

func TestOfSeveralRefusalsTheLongestBinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := []time.Duration{2 * time.Second, 9 * time.Second, 4 * time.Second}
		b := newRig(t, refuseFrom(0, nil), func(o *Options) { o.InFlight = 3 })
		refusals := 0
		b.box.fault = func(call string, _ int) error {
			if !strings.HasPrefix(call, "get") {
				return nil
			}
			b.box.mu.Lock()
			defer b.box.mu.Unlock()
			refusals++
			return denied(waits[(refusals-1)%3])
		}
		started := time.Now()
		if got := b.mustPark(b.ref).Until.Sub(started).Round(time.Second); got != 9*time.Second || refusals != 3 {
			t.Errorf("waits %s after %d refusals, want 9s after 3", got, refusals)
		}
	})
}
