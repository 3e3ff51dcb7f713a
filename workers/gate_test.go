package workers

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
)

func crowded(wait time.Duration) error {
	return &jobs.CallError{Class: jobs.ClassConcurrency, Reason: "rateLimitExceeded", Wait: wait, Err: errors.New("429")}
}

// capped makes a mailbox refuse calls beyond so many in flight, and count them.
func capped(box *memMailbox, allowed int) (refused func() []time.Time) {
	var at []time.Time
	box.full = func(inFlight int) error {
		if inFlight <= allowed {
			return nil
		}
		at = append(at, time.Now())
		return crowded(2 * time.Second)
	}
	return func() []time.Time {
		box.mu.Lock()
		defer box.mu.Unlock()
		return at
	}
}

func TestCallsInFlightSettleUnderGooglesCap(t *testing.T) {
	for _, allowed := range []int{1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, &memMailbox{n: 5000, latency: 150 * time.Millisecond}, func(o *Options) { o.InFlight = 16 })
			refused := capped(b.box, allowed)
			started := time.Now()
			row := b.toEnd()
			if row.State != jobs.Completed || row.Progress.Stored != 5000 || row.Requeued != 0 || row.Failures != 0 {
				t.Errorf("cap %d: row = %+v, want all 5000 stored, nothing requeued", allowed, row)
			}
			for _, item := range b.store.jobs[b.ref.Job].items {
				if item.Attempts > 0 {
					t.Errorf("cap %d: item %s has %d attempts, want none", allowed, item.ID, item.Attempts)
				}
			}
			at := refused()
			if len(at) > 50 {
				t.Errorf("cap %d: %d refusals, want 50 at most", allowed, len(at))
			}
			late := 0
			for _, moment := range at {
				if moment.Sub(started) > 30*time.Second {
					late++
				}
			}
			if late > 12 {
				t.Errorf("cap %d: %d refusals after half a minute, want one now and then", allowed, late)
			}
			// At the cap all the time it would take 5000 x 150 ms / cap.
			if took, least := time.Since(started), 5000*150*time.Millisecond/time.Duration(allowed); took > 2*least+10*time.Second {
				t.Errorf("cap %d: took %s, want about %s", allowed, took, least)
			}
		})
	}
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

func TestAGateFallsAtOnceAndRisesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(8)
		enter := func(n int) (rounds []int) {
			for range n {
				round, ok := g.enter(t.Context(), nil)
				if !ok {
					t.Fatal("no place, want one")
				}
				rounds = append(rounds, round)
			}
			return rounds
		}
		for _, round := range enter(8) {
			g.leave(round, true)
		}
		want := func(limit int, when string) {
			t.Helper()
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.limit != limit {
				t.Errorf("limit %s = %d, want %d", when, g.limit, limit)
			}
		}
		want(4, "after eight refusals together")
		<-time.After(raiseAfter)
		g.leave(enter(1)[0], true)
		want(4, "after one more was one too many")
		<-time.After(raiseAfter)
		g.leave(enter(1)[0], false)
		want(4, "half a minute later")
		<-time.After(raiseAfter)
		g.leave(enter(1)[0], false)
		want(5, "a minute later")

		quit := make(chan struct{})
		close(quit)
		enter(5)
		if _, ok := g.enter(t.Context(), quit); ok {
			t.Error("a sixth call got a place, want none before its slice ends")
		}
	})
}
