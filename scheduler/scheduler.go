package scheduler

import (
	"cmp"
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
	DefaultTimeout     = 30 * time.Second
	DefaultLease       = 5 * time.Second
	DefaultTaskTimeout = jobs.DefaultTaskTimeout

	rescuesAtATime = 8               // jobs that a tick looks at side by side
	lookAgain      = 2 * time.Second // to the next tick, where one has seen what may be lost
)

// A Store holds the jobs.
type Store interface {
	// LiveJobs returns every job that must have a task or an owner.
	LiveJobs(ctx context.Context) ([]jobs.Job, error)
	// Job returns one job, or jobs.ErrNotFound.
	Job(ctx context.Context, id string) (jobs.Job, error)
	// TakeOver raises a job's epoch and frees its lease, and returns the new
	// row, which may rest in a state that somebody wanted it in. It returns
	// jobs.ErrStale when anything was written to the job since it was as seen.
	TakeOver(ctx context.Context, seen jobs.Job) (jobs.Job, error)
	// RepairMoments sets back stored moments that are further in the future than
	// any rule sets them, and returns what it found.
	RepairMoments(ctx context.Context) ([]jobs.RepairedMoment, error)
}

// A Queue holds the tasks that carry the jobs.
type Queue interface {
	// Put enqueues a task; one that exists already is no error.
	Put(ctx context.Context, ref jobs.TaskRef) error
	// Look looks a task up, in a time that does not depend on the queue's length.
	Look(ctx context.Context, ref jobs.TaskRef) (Task, error)
	// Listed reports whether a task that is pending will be found by a worker.
	Listed(ctx context.Context, ref jobs.TaskRef) (bool, error)
	// Register makes the queue known to those who list queues, and says how it is.
	Register(ctx context.Context) ([]QueueState, error)
	// Sweep removes tasks that are over and would not run soon, and those that are
	// broken, from count of each state, beginning after so many.
	Sweep(ctx context.Context, from, count int, over func(jobs.TaskRef) (bool, error)) (Swept, error)
}

// Options configures a [Scheduler]. Store, Queue, Log and Registerer are
// required.
type Options struct {
	Store    Store
	Queue    Queue
	Schedule cron.Schedule // when to look for lost work; [DefaultSpec] if nil
	Timeout  time.Duration // bound on one tick; [DefaultTimeout] if zero

	Lease       time.Duration // of the workers; [DefaultLease] if zero
	TaskTimeout time.Duration // bound on a slice's whole run; [DefaultTaskTimeout] if zero

	// NowFunc is the clock that rows are compared with; time.Now if nil.
	// ElapsedFunc is the one that tells how long something has been seen, from any
	// moment on, and that nobody sets; the monotonic one if nil.
	NowFunc     func() time.Time
	ElapsedFunc func() time.Duration

	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// A Scheduler puts lost work back on the queue.
type Scheduler struct {
	opts    Options
	metrics *metrics
	failing bool // the last tick failed; only used by Run

	// What ticks remember, and only they use.
	sights sights
	doubts bool                  // something may be lost, and the next look tells
	queues map[string]QueueState // as last registered
	stuck  map[string]bool       // projects whose jobs wait for a fault to pass
	sweeps int                   // pages swept since the last from the start
	clock  clockSight
}

// New returns a scheduler that does nothing until [Scheduler.Run].
func New(o Options) (*Scheduler, error) {
	if o.Store == nil || o.Queue == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("scheduler: Store, Queue, Log and Registerer are required")
	}
	if o.Timeout < 0 || o.Lease < 0 || o.TaskTimeout < 0 {
		return nil, errors.New("scheduler: timeout of a tick, lease and timeout of tasks must not be negative")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, DefaultTaskTimeout)
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	if o.ElapsedFunc == nil {
		start := time.Now()
		o.ElapsedFunc = func() time.Duration { return time.Since(start) }
	}
	if o.Schedule == nil {
		var err error
		if o.Schedule, err = cron.ParseStandard(DefaultSpec); err != nil {
			return nil, fmt.Errorf("scheduler: default schedule %q: %w", DefaultSpec, err)
		}
	}
	o.Log = o.Log.Named("scheduler")
	return &Scheduler{opts: o, metrics: newMetrics(o.Registerer), sights: sights{}, queues: map[string]QueueState{}, stuck: map[string]bool{}}, nil
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
		wait := time.Until(next)
		if s.doubts { // however rare ticks are
			wait = min(wait, lookAgain)
		}
		timer := time.NewTimer(wait)
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
