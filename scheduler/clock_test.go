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
		c := (&clock{}).set(48 * time.Hour)
		s := newStoreAt(c.now, job(func(j *jobs.Job) { j.State = jobs.Paused }))
		var reg *prometheus.Registry
		go func() {
			time.Sleep(31 * time.Second)
			slot := jobs.Slot{Schedule: jobs.ScheduleMail, Account: "ann@example.com", Slot: c.now()}
			if err := s.InitSlots(t.Context(), []jobs.Slot{slot}); err != nil {
				t.Error(err)
			}
			c.set(0)
			time.Sleep(3 * time.Second)
			snapshot, err := s.ScheduleSnapshot(t.Context())
			if err != nil || len(snapshot.Slots) != 1 || snapshot.Slots[0].Slot.After(c.now()) {
				t.Errorf("slots 3 s after the clock was set back = %+v, %v; want one that is not in the future", snapshot.Slots, err)
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
