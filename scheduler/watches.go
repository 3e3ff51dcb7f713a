package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"headroom/jobs"
)

// A WatchStore knows what Google tells of, and for how long it does.
type WatchStore interface {
	// PruneWatches forgets watches that nobody wants any more.
	PruneWatches(ctx context.Context) error
	// LapseWatches returns watches whose time has ended, each once.
	LapseWatches(ctx context.Context) ([]jobs.WatchKey, error)
	// CountWatches counts watches by kind and state.
	CountWatches(ctx context.Context) (map[jobs.WatchKind]map[jobs.WatchState]int, error)
}

// WatchOptions configures [NewWatches]. Store, Log and Registerer are required.
type WatchOptions struct {
	Store      WatchStore
	Watched    []jobs.WatchKind // what the settings ask for; of others no alarm is raised
	Tick       time.Duration    // between two looks; 5s if zero
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// Watches raises the alarm for watches that ended before they were renewed. That
// they are renewed is the matter of syncs, which [Schedules] ask for. Any number of
// them may run.
type Watches struct {
	opts    WatchOptions
	watches *prometheus.GaugeVec   // by kind, state
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
		lapsed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_watches_lapsed_total",
			Help: "Watches that ended before they were renewed, by kind.",
		}, []string{"kind"}),
		failed: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_watch_errors_total",
			Help: "Looks for watches that have lapsed that failed.",
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
				w.opts.Log.Error("look for lapsed watches failed, trying again with the next", zap.Error(err))
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

func (w *Watches) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	if err := w.opts.Store.PruneWatches(ctx); err != nil { // else what nobody wants would be alarmed for
		return err
	}
	return errors.Join(w.alarm(ctx), w.count(ctx))
}

func (w *Watches) alarm(ctx context.Context) error {
	lapsed, err := w.opts.Store.LapseWatches(ctx)
	for _, k := range lapsed {
		if !slices.Contains(w.opts.Watched, k.Kind) { // somebody has switched it off
			continue
		}
		w.lapsed.WithLabelValues(string(k.Kind)).Inc()
		w.opts.Log.Error("a watch has lapsed: Google tells of no changes until it is renewed, and they are found when a sync is due",
			zap.String("kind", string(k.Kind)), zap.String("account", k.Account), zap.String("calendar", k.Calendar))
	}
	return err
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
