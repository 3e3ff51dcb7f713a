package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

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
	var failed failures
	s.start(ctx, &failed, s.opts.Store.DueSyncs, s.opts.Store.StartDueSync)
	if c := s.opts.Calendars; c != nil {
		s.start(ctx, &failed, c.DueCalendarSyncs, c.StartDueCalendarSync)
	}
	return failed.err()
}

type startFunc func(ctx context.Context, account string) (job jobs.Job, started bool, err error)

// start starts the syncs that are due.
func (s *Syncs) start(ctx context.Context, failed *failures, due func(context.Context) ([]string, error), start startFunc) {
	accounts, err := due(ctx)
	failed.add(err)
	forEach(failed, startsAtOnce, accounts, func(account string) error { return s.startOne(ctx, account, start) })
}

func (s *Syncs) startOne(ctx context.Context, account string, start startFunc) error {
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
