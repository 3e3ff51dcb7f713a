package scheduler

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// repairEvery is how often ticks look for stored moments in the future, besides at
// once when the clock was set back.
const repairEvery = time.Minute

// repairClock sets back what a clock that was ahead for a while has left in the
// store: a schedule, a wait or a renewal whose moment would not come for days.
func (s *Scheduler) repairClock(ctx context.Context, now time.Time, elapsed time.Duration) error {
	setBack := now.Round(0).Sub(s.clock.wall)-(elapsed-s.clock.at) < -time.Second
	if !s.clock.wall.IsZero() && !setBack && elapsed-s.clock.looked < repairEvery {
		s.clock.wall, s.clock.at = now.Round(0), elapsed
		return nil
	}
	repaired, err := s.opts.Store.RepairMoments(ctx)
	if err != nil {
		return fmt.Errorf("repair stored moments: %w", err)
	}
	s.clock = clockSight{wall: now.Round(0), at: elapsed, looked: elapsed}
	for _, r := range repaired {
		s.metrics.repaired.WithLabelValues(r.What).Add(float64(r.Count))
		s.opts.Log.Warn("stored moments set back: a clock was ahead when they were written",
			zap.String("what", r.What), zap.Int64("rows", r.Count), zap.Time("furthest", r.Furthest))
	}
	return nil
}

// A clockSight is how the wall clock and the one that nobody sets stood at a tick.
type clockSight struct {
	wall   time.Time
	at     time.Duration
	looked time.Duration // when moments were last looked for
}
