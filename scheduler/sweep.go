package scheduler

import (
	"context"
	"errors"
	"fmt"

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
		s.opts.Log.Info("tasks removed that mean nothing any more", zap.String("state", state), zap.Int("tasks", n))
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
