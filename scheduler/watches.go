package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"headroom/jobs"
)

// A WatchStore knows what Google is to tell of, and for how long it does.
type WatchStore interface {
	// AskForMailWatches asks for a sync of mailboxes whose watch is to be made or
	// renewed, which the sync does, and returns of how many.
	AskForMailWatches(ctx context.Context, limit int) (int, error)
	// AskForChannels does the same for calendars.
	AskForChannels(ctx context.Context, limit int) (int, error)
	// LapseWatches returns watches whose time has ended, each once.
	LapseWatches(ctx context.Context) ([]jobs.WatchKey, error)
	// CountWatches counts watches by kind and state.
	CountWatches(ctx context.Context) (map[jobs.WatchKind]map[jobs.WatchState]int, error)
}

// WatchOptions configures [NewWatches]. Store, Log and Registerer are required.
type WatchOptions struct {
	Store           WatchStore
	Mail, Calendars bool          // what is watched
	Tick            time.Duration // between two looks; 5s if zero
	Log             *zap.Logger
	Registerer      prometheus.Registerer
}

// asksAtATime bounds how many syncs one look asks for, so that accounts that come to
// be watched all at once do not sync all at once.
const asksAtATime = 20

// Watches sees to it that Google goes on telling of changes: it has the sync begin
// that renews what is due, and raises the alarm for what has ended. Any number of
// them may run.
type Watches struct {
	opts    WatchOptions
	watches *prometheus.GaugeVec   // by kind, state
	asked   *prometheus.CounterVec // by kind
	lapsed  *prometheus.CounterVec // by kind
	failed  prometheus.Counter
	failing bool // the last look failed; only used by Run
}

// NewWatches returns Watches that do nothing until [Watches.Run].
func NewWatches(o WatchOptions) (*Watches, error) {
	if o.Store == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("scheduler: Store, Log and Registerer of watches are required")
	}
	if o.Tick < 0 {
		return nil, errors.New("scheduler: tick of watches must not be negative")
	}
	if o.Tick == 0 {
		o.Tick = 5 * time.Second
	}
	o.Log = o.Log.Named("watches")
	f := promauto.With(o.Registerer)
	w := &Watches{
		opts: o,
		watches: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_watches",
			Help: "Watches at Google, by kind and state.",
		}, []string{"kind", "state"}),
		asked: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_watch_syncs_total",
			Help: "Syncs asked for because a watch was to be made or renewed, by kind.",
		}, []string{"kind"}),
		lapsed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_watches_lapsed_total",
			Help: "Watches that ended before they were renewed, by kind.",
		}, []string{"kind"}),
		failed: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_watch_errors_total",
			Help: "Looks for due watches that failed.",
		}),
	}
	for _, kind := range jobs.WatchKinds {
		w.lapsed.WithLabelValues(string(kind)) // so that the first shows as an increase
	}
	return w, nil
}

// Run looks until ctx ends, and returns nil then. A look that fails is logged and
// counted, and the next one tries again.
func (w *Watches) Run(ctx context.Context) error {
	tick := time.NewTicker(w.opts.Tick)
	defer tick.Stop()
	for {
		err := w.look(ctx)
		if err != nil && ctx.Err() == nil {
			w.failed.Inc()
			if !w.failing { // a row of them is said once
				w.opts.Log.Error("look for due watches failed, trying again with the next", zap.Error(err))
			}
		}
		w.failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look raises alarms before it asks, so that what has ended is seen as such.
func (w *Watches) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	return errors.Join(w.alarm(ctx), w.ask(ctx), w.count(ctx))
}

func (w *Watches) alarm(ctx context.Context) error {
	lapsed, err := w.opts.Store.LapseWatches(ctx)
	for _, k := range lapsed {
		w.lapsed.WithLabelValues(string(k.Kind)).Inc()
		if w.on(k.Kind) { // else somebody has switched it off
			w.opts.Log.Error("a watch has lapsed: Google tells of no changes until it is renewed, and they are found when a sync is due",
				zap.String("kind", string(k.Kind)), zap.String("account", k.Account))
		}
	}
	return err
}

func (w *Watches) on(kind jobs.WatchKind) bool {
	if kind == jobs.WatchMail {
		return w.opts.Mail
	}
	return w.opts.Calendars
}

func (w *Watches) ask(ctx context.Context) error {
	var errs []error
	ask := func(kind jobs.WatchKind, do func(context.Context, int) (int, error)) {
		n, err := do(ctx, asksAtATime)
		w.asked.WithLabelValues(string(kind)).Add(float64(n))
		errs = append(errs, err)
	}
	if w.opts.Mail {
		ask(jobs.WatchMail, w.opts.Store.AskForMailWatches)
	}
	if w.opts.Calendars {
		ask(jobs.WatchCalendar, w.opts.Store.AskForChannels)
	}
	return errors.Join(errs...)
}

func (w *Watches) count(ctx context.Context) error {
	n, err := w.opts.Store.CountWatches(ctx)
	if err != nil {
		return err
	}
	for _, kind := range jobs.WatchKinds {
		for _, state := range jobs.WatchStates {
			w.watches.WithLabelValues(string(kind), string(state)).Set(float64(n[kind][state]))
		}
	}
	return nil
}
