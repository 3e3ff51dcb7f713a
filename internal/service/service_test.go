package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/service"
)

// rounds are loops whose rounds take a second and fail as told.
type rounds struct {
	service.Loop
	began []time.Duration
	fails []int // which rounds fail
	logs  *observer.ObservedLogs
}

func newRounds() *rounds {
	core, logs := observer.New(zap.InfoLevel)
	r, start := &rounds{logs: logs}, time.Now()
	r.Loop = service.Loop{Name: "look", Every: 5 * time.Second, Log: zap.New(core),
		Failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "failed"}),
		RoundFunc: func(ctx context.Context) error {
			r.began = append(r.began, time.Since(start))
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
			if slices.Contains(r.fails, len(r.began)) {
				return errors.New("no store")
			}
			return nil
		}}
	return r
}

func (r *rounds) runFor(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestALoopBeginsAtOnceAndLogsARowOfFailuresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds()
		r.fails = []int{2, 3, 5}
		r.runFor(t, 25500*time.Millisecond) // the sixth round is cut off, which is no failure
		if want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 25 * time.Second}; !slices.Equal(r.began, want) {
			t.Errorf("rounds began after %v, want %v", r.began, want)
		}
		if n := testutil.ToFloat64(r.Failed); n != 3 {
			t.Errorf("%v failures counted, want 3", n)
		}
		var lines []string
		for _, e := range r.logs.All() {
			lines = append(lines, e.Message)
		}
		failed, again := "look failed; the next round tries again", "look succeeds again"
		if want := []string{failed, again, failed}; !slices.Equal(lines, want) {
			t.Errorf("the log is %q, want %q", lines, want)
		}
	})
}

func TestALoopWaitsAsItsFunctionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds()
		waits := []time.Duration{2 * time.Second, 3 * time.Second, -1}
		r.WaitFunc = func(took time.Duration) time.Duration {
			if first := len(r.began) == 0; first != (took < 0) || !first && took != time.Second {
				t.Errorf("round %d took %s", len(r.began), took)
			}
			wait := waits[0]
			waits = waits[1:]
			return wait
		}
		r.runFor(t, time.Hour)
		if want := []time.Duration{2 * time.Second, 6 * time.Second}; !slices.Equal(r.began, want) {
			t.Errorf("rounds began after %v, want %v", r.began, want)
		}
	})
}

func TestARoundIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds()
		r.Timeout = 500 * time.Millisecond
		r.runFor(t, 6*time.Second)
		if n := testutil.ToFloat64(r.Failed); n != 2 {
			t.Errorf("%v rounds failed, want both to have been cut off", n)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	type options struct {
		Log   *zap.Logger
		Store error
		Tick  time.Duration
		Count int
	}
	if err := service.CheckOptions("part", options{Log: zap.NewNop(), Store: errors.New("")}, "Log", "Store"); err != nil {
		t.Errorf("good options = %v", err)
	}
	err := service.CheckOptions("part", options{Tick: -1, Count: -1}, "Log", "Store")
	for _, want := range []string{"part: Options.Log is required", "Options.Store is required", "Options.Tick is negative", "Options.Count is negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckOptions = %v, want %q in it", err, want)
		}
	}
}
