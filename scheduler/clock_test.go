package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
)

// TestMomentsOfAClockThatWasAhead sets the clock back by two days: what stands in
// the future then is repaired with the next tick, and counted.
func TestMomentsOfAClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newStore(), (&clock{}).set(48*time.Hour)
		var reg *prometheus.Registry
		go func() {
			time.Sleep(31 * time.Second)
			s.mu.Lock()
			s.wrong = []jobs.RepairedMoment{{What: "schedule-slot", Count: 4, Furthest: c.now()}}
			s.mu.Unlock()
			c.set(0)
			time.Sleep(3 * time.Second)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.wrong != nil {
				t.Error("moments stand in the future 3 s after the clock was set back")
			}
		}()
		reg = watch(t, 40*time.Second, s, newQueue(), c, nil)
		if n, err := testutil.GatherAndCount(reg, "headroom_scheduler_repaired_moments_total"); err != nil || n != 1 {
			t.Errorf("metrics of repaired moments = %d, %v, want one", n, err)
		}
	})
}

// TestMomentsAreLookedForEveryMinute covers a clock of another host, whose steps
// are not seen here.
func TestMomentsAreLookedForEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		watch(t, 10*time.Minute+time.Second, s, newQueue(), &clock{}, nil)
		if s.repairs < 10 || s.repairs > 11 {
			t.Errorf("looked %d times in ten minutes, want about once a minute", s.repairs)
		}
	})
}
