package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/internal/service"
	"headroom/jobs"
)

// A WatchStore knows of which changes Google notifies us, and until when.
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
	Watched    []jobs.WatchKind // what the settings ask for; no alarm is raised for others
	Tick       time.Duration    // between two looks; 5s if zero
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// Watches raises the alarm for watches that ended before they were renewed. Syncs,
// which [Schedules] ask for, renew them. Any number of Watches may run.
type Watches struct {
	opts    WatchOptions
	watches *prometheus.GaugeVec   // by kind, state
	lapsed  *prometheus.CounterVec // by kind
	failed  prometheus.Counter
}

// NewWatches returns Watches that do nothing until [Watches.Run].
func NewWatches(o WatchOptions) (*Watches, error) {
	if err := service.CheckOptions("scheduler: watches", o, "Store", "Log", "Registerer"); err != nil {
		return nil, err
	}
	o.Tick = cmp.Or(o.Tick, 5*time.Second)
	o.Log = o.Log.Named("watches")
	f := service.NewMetrics(o.Registerer)
	w := &Watches{
		opts: o,
		watches: f.GaugeBy("headroom_scheduler_watches",
			"Watches at Google, by kind and state.", "kind", "state"),
		lapsed: f.CounterBy("headroom_scheduler_watches_lapsed_total",
			"Watches that ended before they were renewed, by kind.", "kind"),
		failed: f.Counter("headroom_scheduler_watch_errors_total",
			"Failed checks for lapsed watches."),
	}
	for _, kind := range jobs.WatchKinds {
		w.lapsed.WithLabelValues(string(kind)) // so that the first shows as an increase
	}
	return w, nil
}

// Run looks at once and then with every tick, until ctx ends, see [service.Loop].
func (w *Watches) Run(ctx context.Context) error {
	return service.Loop{
		Name: "look for lapsed watches", Every: w.opts.Tick, Timeout: DefaultTimeout, RoundFunc: w.look,
		Failed: w.failed, Log: w.opts.Log,
	}.Run(ctx)
}

func (w *Watches) look(ctx context.Context) error {
	if err := w.opts.Store.PruneWatches(ctx); err != nil { // else what nobody wants would raise an alarm
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
		w.opts.Log.Error("a watch has lapsed: Google sends no notifications until it is renewed, and changes are found when a sync is due",
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
