package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/internal/service"
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
	lookAgain      = 2 * time.Second // to the next tick, if one has seen what may be lost
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
	// ElapsedFunc is the clock that measures how long something has been seen, from
	// any moment on, and that nobody sets; the monotonic one if nil.
	NowFunc     func() time.Time
	ElapsedFunc func() time.Duration

	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// A Scheduler puts lost work back on the queue.
type Scheduler struct {
	opts    Options
	metrics *metrics

	// What ticks remember, and only they use.
	observations observations
	suspicion    bool                  // something may be lost, and the next tick tells
	queues       map[string]QueueState // as last registered
	stuck        map[string]bool       // projects whose jobs wait for a fault to pass
	sweeps       int                   // pages swept since the last from the start
	clock        clockSeen
}

// New returns a scheduler that does nothing until [Scheduler.Run].
func New(o Options) (*Scheduler, error) {
	if err := service.CheckOptions("scheduler", o, "Store", "Queue", "Log", "Registerer"); err != nil {
		return nil, err
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
	return &Scheduler{opts: o, metrics: newMetrics(o.Registerer), observations: observations{}, queues: map[string]QueueState{}, stuck: map[string]bool{}}, nil
}

// Run ticks until ctx ends, see [service.Loop].
func (s *Scheduler) Run(ctx context.Context) error {
	return service.Loop{
		Name: "look for lost work", WaitFunc: s.wait, Timeout: s.opts.Timeout, Seconds: s.metrics.seconds,
		Failed: s.metrics.ticks.WithLabelValues("failed"), Log: s.opts.Log,
		RoundFunc: func(ctx context.Context) error {
			err := s.tick(ctx)
			if err == nil {
				s.metrics.ticks.WithLabelValues("ok").Inc()
			}
			return err
		},
	}.Run(ctx)
}

// wait returns how long it is until the next tick.
func (s *Scheduler) wait(time.Duration) time.Duration {
	now := s.opts.NowFunc()
	next := s.opts.Schedule.Next(now)
	if next.IsZero() { // a spec that never comes, such as 30 February
		return -1
	}
	wait := max(0, next.Sub(now))
	if s.suspicion { // however rare ticks are
		wait = min(wait, lookAgain)
	}
	return wait
}

// failures gathers errors. The first one stands for all, so that an outage does not make
// a message of as many lines as there are jobs. It is safe for concurrent use.
type failures struct {
	mu    sync.Mutex
	first error
	n     int
}

// forEach calls do for all items, limit at a time, and gathers the errors.
func forEach[T any](f *failures, limit int, items []T, do func(T) error) {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, item := range items {
		group.Go(func() error {
			f.add(do(item))
			return nil
		})
	}
	_ = group.Wait() // errors are gathered
}

// add notes an error, unless it is nil.
func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.first == nil {
		f.first = err
	}
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n > 1 {
		return fmt.Errorf("%w (and %d more errors)", f.first, f.n-1)
	}
	return f.first
}
