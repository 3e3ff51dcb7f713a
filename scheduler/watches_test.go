package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/jobs"
	"headroom/scheduler"
)

// watched is a store in which two watches end, and of which the first look fails.
type watched struct {
	looks  int
	pruned bool
}

func (w *watched) PruneWatches(context.Context) error {
	if w.looks++; w.looks == 1 {
		return errors.New("the store is away")
	}
	w.pruned = true
	return nil
}

func (w *watched) LapseWatches(context.Context) ([]jobs.WatchKey, error) {
	if w.looks != 2 || !w.pruned {
		return nil, nil
	}
	return []jobs.WatchKey{{Account: "ann@example.com", Kind: jobs.WatchMail}, {Account: "ann@example.com", Kind: jobs.WatchCalendar, Calendar: "c"}}, nil
}

func (w *watched) CountWatches(context.Context) (map[jobs.WatchKind]map[jobs.WatchState]int, error) {
	return map[jobs.WatchKind]map[jobs.WatchState]int{jobs.WatchMail: {jobs.WatchLapsed: 1}}, nil
}

// TestALapsedWatchIsAlarmedOnce: if it is still wanted, and although the store was
// away.
func TestALapsedWatchIsAlarmedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		store, reg := &watched{}, prometheus.NewPedanticRegistry()
		w, err := scheduler.NewWatches(scheduler.WatchOptions{Store: store, Watched: []jobs.WatchKind{jobs.WatchMail}, Log: zap.New(core), Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 22*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if store.looks != 5 {
			t.Errorf("%d looks, want one every five seconds", store.looks)
		}
		alarms := logs.FilterField(zap.String("kind", "mail")).All()
		if len(alarms) != 1 || logs.Len() != 2 {
			t.Errorf("%d alarms of %d errors, want that of the mailbox, and the failed look: %v", len(alarms), logs.Len(), logs.All())
		}
		for name, want := range map[string]float64{"headroom_scheduler_watches_lapsed_total": 1, "headroom_scheduler_watch_errors_total": 1, "headroom_scheduler_watches": 1} {
			if got := total(t, reg, name); got != want {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
	})
}

// total is the sum of a metric over its labels.
func total(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
