package workers

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

func crowded(wait time.Duration) error {
	return &jobs.CallError{Class: jobs.ClassConcurrency, Reason: "rateLimitExceeded", Wait: wait, Err: errors.New("429")}
}

// Google allows three calls at once; whoever makes sixteen is refused again and
// again, and gets everything all the same.
func TestACallTooManyIsMadeAgainInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		b := newRig(t, &memMailbox{n: 100, latency: 150 * time.Millisecond, full: func(inFlight int) error {
			if inFlight <= 3 {
				return nil
			}
			refused++
			return crowded(2 * time.Second)
		}}, func(o *Options) { o.InFlight = 16 })
		row := b.toEnd()
		if row.State != jobs.Completed || row.Progress.Stored != 100 || row.Requeued != 0 || row.Failures != 0 {
			t.Errorf("row = %+v, want all 100 stored, nothing requeued", row)
		}
		if n := b.store.failedAttempts(); n > 0 {
			t.Errorf("%d attempts of items failed, want none", n)
		}
		if refused == 0 {
			t.Error("no call was refused, so nothing was tried")
		}
	})
}

// A place in flight that the ledger does not give within the wait in place is
// waited for on the queue, as units are.
func TestNoPlaceInFlightIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, refuseFrom(3, func() error {
			return &quota.DeniedError{Caller: quota.Caller{Lane: quota.Backfill}, Limit: quota.LimitInFlight,
				Bound: quota.BoundInFlight, Used: 7, Ceiling: 7, RetryAfter: 200 * time.Millisecond}
		}))
		if parked := b.mustPark(b.ref); parked.For != "user-in-flight (in-flight)" {
			t.Errorf("parked %v, want for a place in flight", parked)
		}
		if row := b.store.job(b.ref.Job); row.Progress.Stored != 3 || row.Requeued != 1 || row.Failures != 0 {
			t.Errorf("row = %+v, want the 3 kept and no failure", row)
		}
	})
}

func TestALongWaitForCallsInFlightIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		b.box.fault = func(call string, nth int) error {
			if strings.HasPrefix(call, "get") && nth == 1 {
				return crowded(time.Minute)
			}
			return nil
		}
		started := time.Now()
		if parked := b.mustPark(b.ref); parked.Until.Sub(started) != time.Minute {
			t.Errorf("parked %v, want for the minute that Google asked for", parked)
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 5 {
			t.Errorf("row = %+v, want all 5", row)
		}
	})
}

// The profile and the listing wait in place as well.
func TestAListingThatIsOneCallTooManyIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		b.box.fault = func(call string, nth int) error {
			if (call == "profile" || call == "list ") && nth == 1 {
				return crowded(2 * time.Second)
			}
			return nil
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 5 || row.Requeued != 0 {
			t.Errorf("row = %+v, want all 5 and nothing requeued", row)
		}
	})
}
