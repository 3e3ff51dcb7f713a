package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// sweepPage is how many tasks of each state of a queue a tick looks at; the next
// tick goes on from there.
const sweepPage = 200

// register makes the queues known to those who list queues, and shows which of
// them somebody has paused: that is theirs to end, and no reason to wait in silence.
func (s *Scheduler) register(ctx context.Context) error {
	queues, err := s.opts.Queue.Register(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		was, known := s.queues[q.Name]
		if known && q.New {
			s.metrics.rescues.WithLabelValues(string(causeQueueForgotten)).Inc()
			s.opts.Log.Warn("queue registered again", zap.String("cause", string(causeQueueForgotten)), zap.String("queue", q.Name))
		}
		paused := 0.0
		if q.Paused {
			paused = 1
		}
		s.metrics.paused.WithLabelValues(q.Name).Set(paused)
		if q.Paused && !was.Paused {
			s.opts.Log.Warn("queue is paused in Asynq: its tasks wait until somebody resumes it", zap.String("queue", q.Name))
		} else if !q.Paused && was.Paused {
			s.opts.Log.Info("queue is no longer paused", zap.String("queue", q.Name))
		}
		s.queues[q.Name] = q
	}
	return nil
}

// sweep removes what earlier epochs and slices have left in the queues, where it
// would not run, or only to find that it means nothing any more.
func (s *Scheduler) sweep(ctx context.Context, live []jobs.Job) error {
	rows := make(map[string]jobs.Job, len(live))
	for _, j := range live {
		rows[j.ID] = j
	}
	swept, err := s.opts.Queue.Sweep(ctx, s.sweeps*sweepPage, sweepPage, func(ref jobs.TaskRef) (bool, error) {
		job, ok := rows[ref.Job]
		if !ok {
			var err error
			if job, err = s.opts.Store.Job(ctx, ref.Job); errors.Is(err, jobs.ErrNotFound) {
				return false, nil // nothing is known of it, so it is not ours to remove
			} else if err != nil {
				return false, err
			}
		}
		return over(ref, job), nil
	})
	for state, n := range swept.Removed {
		s.metrics.swept.WithLabelValues(state).Add(float64(n))
		s.opts.Log.Info("tasks removed that have no meaning any more", zap.String("state", state), zap.Int("tasks", n))
	}
	if err != nil {
		return fmt.Errorf("sweep the queues: %w", err)
	}
	if s.sweeps++; !swept.More {
		s.sweeps = 0
	}
	return nil
}

// over reports whether a task can never mean anything again: epochs and slices
// only rise, and a job that rests goes on under the next epoch only.
func over(ref jobs.TaskRef, job jobs.Job) bool {
	if ref.Epoch != job.Epoch {
		return ref.Epoch < job.Epoch
	}
	return ref.Slice < job.Slice || !job.State.Live()
}

// repairEvery is how often ticks look for stored moments in the future, besides at
// once when the clock was set back.
const repairEvery = time.Minute

// repairClock sets back what a clock that was ahead for a while has left in the store:
// a schedule, a wait or a renewal whose moment would not come for days.
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
	s.clock = clockSeen{wall: now.Round(0), at: elapsed, looked: elapsed}
	for _, r := range repaired {
		s.metrics.repaired.WithLabelValues(r.What).Add(float64(r.Count))
		s.opts.Log.Warn("stored moments set back: a clock was ahead when they were written",
			zap.String("what", r.What), zap.Int64("rows", r.Count), zap.Time("furthest", r.Furthest))
	}
	return nil
}

// A clockSeen is how the wall clock and the one that nobody sets stood at a tick.
type clockSeen struct {
	wall   time.Time
	at     time.Duration
	looked time.Duration // when moments were last looked for
}

// alarmAfter is how long a job must have failed before it is worth an alarm: one
// fault passes unnoticed.
const alarmAfter = time.Minute

// stuck is the jobs of a project that wait for a fault to pass.
type stuck struct {
	jobs  int
	since time.Time // the first of them
	cause string    // what that waits for
}

// watchFaults shows which projects' jobs wait for a fault to pass, and logs that once
// when it begins and once when it is over: an outage raises one alarm for all jobs.
func (s *Scheduler) watchFaults(live []jobs.Job, now time.Time) {
	projects := map[string]*stuck{}
	for name := range s.stuck {
		projects[name] = &stuck{} // shown as 0 when it is over
	}
	for _, job := range live {
		if job.Failures == 0 || job.QuotaWait || job.FailingSince.IsZero() || now.Sub(job.FailingSince) < alarmAfter {
			continue
		}
		p := projects[job.Project]
		if p == nil {
			p = &stuck{}
			projects[job.Project] = p
		}
		if p.jobs++; p.since.IsZero() || job.FailingSince.Before(p.since) {
			p.since, p.cause = job.FailingSince, job.LastError
		}
	}
	for name, p := range projects {
		s.metrics.stuck.WithLabelValues(name).Set(float64(p.jobs))
		seconds := 0.0
		if p.jobs > 0 {
			seconds = now.Sub(p.since).Seconds()
		}
		s.metrics.stuckSeconds.WithLabelValues(name).Set(seconds)
		switch was := s.stuck[name]; {
		case p.jobs > 0 && !was:
			s.opts.Log.Error("jobs wait for a fault to pass; they go on by themselves", zap.String("project", name),
				zap.Int("jobs", p.jobs), zap.Time("since", p.since), zap.String("cause", p.cause))
			s.stuck[name] = true
		case p.jobs == 0 && was:
			s.opts.Log.Info("no job waits for a fault to pass any more", zap.String("project", name))
			s.stuck[name] = false
		}
	}
}
