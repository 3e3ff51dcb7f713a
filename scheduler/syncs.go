package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/internal/service"
	"headroom/jobs"
)

// A SyncStore knows which mailboxes a live sync is due for.
type SyncStore interface {
	// DueSyncs returns the accounts whose sync should start now, mostly because it
	// was asked for.
	DueSyncs(ctx context.Context) ([]string, error)
	// StartDueSync starts one, and reports whether it was not under way already.
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

// Syncs starts the syncs that [Schedules], pushes or users ask for. Any number of them
// may run: the row of the job makes each sync start once.
type Syncs struct {
	opts    SyncOptions
	started prometheus.Counter
	failed  prometheus.Counter
}

// NewSyncs returns Syncs that do nothing until [Syncs.Run].
func NewSyncs(o SyncOptions) (*Syncs, error) {
	if err := service.CheckOptions("scheduler: syncs", o, "Store", "Queue", "Log", "Registerer"); err != nil {
		return nil, err
	}
	o.Tick = cmp.Or(o.Tick, time.Second)
	o.Log = o.Log.Named("syncs")
	f := service.NewMetrics(o.Registerer)
	return &Syncs{
		opts: o,
		started: f.Counter("headroom_scheduler_syncs_started_total",
			"Syncs of mailboxes and calendars started because they were due, or asked for while another ran."),
		failed: f.Counter("headroom_scheduler_sync_errors_total",
			"Failed checks for due syncs."),
	}, nil
}

// Run looks for due syncs at once and then with every tick, until ctx ends, see
// [service.Loop].
func (s *Syncs) Run(ctx context.Context) error {
	return service.Loop{Name: "look for due syncs", Every: s.opts.Tick, RoundFunc: s.Look, Failed: s.failed, Log: s.opts.Log}.Run(ctx)
}

// Look is one tick: it starts what is due. One account's error does not keep the
// others waiting.
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
