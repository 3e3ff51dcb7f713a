package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/jobs"
)

// A SyncStore knows which mailboxes a live sync is due for.
type SyncStore interface {
	// DueSyncs returns the accounts whose sync should start now, mostly because it
	// was asked for.
	DueSyncs(ctx context.Context) ([]string, error)
	// StartDueSync starts one, and says whether it was not under way already.
	StartDueSync(ctx context.Context, account string) (job jobs.Job, started bool, err error)
}

// A CalendarSyncStore knows which accounts a sync of calendars is due for.
type CalendarSyncStore interface {
	// DueCalendarSyncs returns the accounts whose sync should start now, because
	// somebody asked for it or a calendar may be tried again.
	DueCalendarSyncs(ctx context.Context) ([]string, error)
	// StartDueCalendarSync starts one, and says whether it was not under way
	// already.
	StartDueCalendarSync(ctx context.Context, account string) (job jobs.Job, started bool, err error)
}

// A Putter puts tasks on the queue.
type Putter interface {
	Put(ctx context.Context, ref jobs.TaskRef) error
}

// SyncOptions configures [NewSyncs]. Store, Queue, Log and Registerer are
// required.
type SyncOptions struct {
	Store      SyncStore
	Calendars  CalendarSyncStore // of calendars as well; none if nil
	Queue      Putter
	Tick       time.Duration // between two looks; a second if zero
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// startsAtOnce is how many syncs are started side by side: the store writes down
// what comes together in one transaction.
const startsAtOnce = 16

// Syncs makes syncs start that [Schedules], pushes or people ask for. Any number of them may run:
// the job's row makes each sync once.
type Syncs struct {
	opts    SyncOptions
	started prometheus.Counter
	failed  prometheus.Counter
	failing bool // the last look failed; only used by Run
}

// NewSyncs returns Syncs that do nothing until [Syncs.Run].
func NewSyncs(o SyncOptions) (*Syncs, error) {
	if o.Store == nil || o.Queue == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("scheduler: Store, Queue, Log and Registerer of syncs are required")
	}
	if o.Tick < 0 {
		return nil, errors.New("scheduler: tick of syncs must not be negative")
	}
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	o.Log = o.Log.Named("syncs")
	f := promauto.With(o.Registerer)
	return &Syncs{
		opts: o,
		started: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_syncs_started_total",
			Help: "Syncs of mailboxes and calendars started because they were due, or asked for while another ran.",
		}),
		failed: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_sync_errors_total",
			Help: "Looks for due live syncs that failed.",
		}),
	}, nil
}

// Run looks for due syncs until ctx ends, and returns nil then. A look that
// fails is logged and counted, and the next one tries again.
func (s *Syncs) Run(ctx context.Context) error {
	tick := time.NewTicker(s.opts.Tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.Look(ctx)
		if err != nil && ctx.Err() == nil {
			s.failed.Inc()
			if !s.failing { // a row of them is said once
				s.opts.Log.Error("look for due syncs failed, trying again with the next", zap.Error(err))
			}
		}
		s.failing = err != nil
	}
}

// Look is one tick: it starts what is due. One account's error does not keep the others waiting.
func (s *Syncs) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	due, err := s.opts.Store.DueSyncs(ctx)
	errs := s.start(ctx, due, err, s.opts.Store.StartDueSync)
	if c := s.opts.Calendars; c != nil {
		due, err := c.DueCalendarSyncs(ctx)
		errs = append(errs, s.start(ctx, due, err, c.StartDueCalendarSync)...)
	}
	if len(errs) > 1 {
		return fmt.Errorf("%w (and %d more errors)", errs[0], len(errs)-1)
	}
	return errors.Join(errs...)
}

// start starts the syncs that are due, unless err says that this is not known.
func (s *Syncs) start(ctx context.Context, due []string, err error, start func(context.Context, string) (jobs.Job, bool, error)) (errs []error) {
	if err != nil {
		return []error{err}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(startsAtOnce)
	for _, account := range due {
		group.Go(func() error {
			if err := s.startOne(ctx, account, start); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are gathered
	return errs
}

func (s *Syncs) startOne(ctx context.Context, account string, start func(context.Context, string) (jobs.Job, bool, error)) error {
	job, started, err := start(ctx, account)
	if err != nil || !started {
		return err
	}
	s.started.Inc()
	if err := s.opts.Queue.Put(ctx, job.Ref()); err != nil {
		// The row is the truth: the rescue makes its task.
		return fmt.Errorf("put %s on the queue: %w", job.ID, err)
	}
	return nil
}
