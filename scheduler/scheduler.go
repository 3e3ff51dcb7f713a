package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"
	"go.uber.org/zap"

	"headroom/jobs"
)

// DefaultSpec is the default schedule of the rescue tick, as a cron spec. With
// a lease of 5 s it brings a dead owner's job back within 10 s.
const DefaultSpec = "@every 2s"

// Defaults and bounds of a [Scheduler].
const (
	DefaultTimeout = 30 * time.Second

	justUpdated    = time.Second      // a worker may be about to put the task
	claimPatience  = 5 * time.Second  // from taking a task to holding the lease
	overdueAfter   = 30 * time.Second // a task that should have come back by now
	rescuesAtATime = 8                // jobs that a tick looks at side by side
)

// A Store holds the jobs.
type Store interface {
	// LiveJobs returns every job that must have a task or an owner.
	LiveJobs(ctx context.Context) ([]jobs.Job, error)
	// TakeOver raises a job's epoch and frees its lease, and returns the new
	// row, which may rest in a state that somebody wanted it in. It returns
	// jobs.ErrStale when the job's epoch is no longer epoch.
	TakeOver(ctx context.Context, id string, epoch int64) (jobs.Job, error)
}

// A Queue holds the tasks that carry the jobs.
type Queue interface {
	// Put enqueues a task; one that exists already is no error.
	Put(ctx context.Context, ref jobs.TaskRef) error
	// State looks a task up.
	State(ctx context.Context, ref jobs.TaskRef) (TaskState, error)
	// Drop deletes a dead task; one that is gone already is no error.
	Drop(ctx context.Context, ref jobs.TaskRef) error
	// Register makes the queue known to those who list queues.
	Register(ctx context.Context) error
}

// Options configures a [Scheduler]. Store, Queue, Log and Registerer are
// required.
type Options struct {
	Store      Store
	Queue      Queue
	Schedule   cron.Schedule // when to look for lost work; [DefaultSpec] if nil
	Timeout    time.Duration // bound on one tick; [DefaultTimeout] if zero
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// A Scheduler puts lost work back on the queue.
type Scheduler struct {
	opts    Options
	metrics *metrics
	claims  claims // only used by the tick
	failing bool   // the last tick failed; only used by Run
}

// New returns a scheduler that does nothing until [Scheduler.Run].
func New(o Options) (*Scheduler, error) {
	if o.Store == nil || o.Queue == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("scheduler: Store, Queue, Log and Registerer are required")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("scheduler: timeout of a tick is %s, must not be negative", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Schedule == nil {
		var err error
		if o.Schedule, err = cron.ParseStandard(DefaultSpec); err != nil {
			return nil, fmt.Errorf("scheduler: default schedule %q: %w", DefaultSpec, err)
		}
	}
	o.Log = o.Log.Named("scheduler")
	return &Scheduler{opts: o, metrics: newMetrics(o.Registerer), claims: claims{}}, nil
}

// Run ticks until ctx ends, and returns nil then. A tick that fails is logged
// and counted, and the next one tries again. Run must not be called twice at
// the same time.
func (s *Scheduler) Run(ctx context.Context) error {
	for {
		next := s.opts.Schedule.Next(time.Now())
		if next.IsZero() { // a spec that never comes, such as 30 February
			<-ctx.Done()
			return nil
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		s.tickAndReport(ctx)
	}
}

// tickAndReport absorbs a tick's error. A row of failed ticks is logged once,
// and so is its end.
func (s *Scheduler) tickAndReport(ctx context.Context) {
	tick, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	start := time.Now()
	err := s.tick(tick)
	s.metrics.seconds.Observe(time.Since(start).Seconds())
	switch {
	case err != nil && ctx.Err() != nil: // shutdown, not a failure
	case err != nil:
		s.metrics.ticks.WithLabelValues("failed").Inc()
		if !s.failing {
			s.opts.Log.Error("tick failed, trying again with the next", zap.Error(err))
		}
		s.failing = true
	default:
		s.metrics.ticks.WithLabelValues("ok").Inc()
		if s.failing {
			s.opts.Log.Info("ticks succeed again")
		}
		s.failing = false
	}
}
