package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"
)

// recorder notes what happens in order.
type recorder struct {
	mu    sync.Mutex
	notes []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, s)
}

// obedient is a part that stops when told to.
func (r *recorder) obedient(name string) part {
	return part{name, func(ctx context.Context) error {
		<-ctx.Done()
		r.note("stop " + name)
		return nil
	}}
}

func TestPartsStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		err := runParts(ctx, zaptest.NewLogger(t), []part{r.obedient("web"), r.obedient("workers"), r.obedient("scheduler")})
		if err != nil {
			t.Errorf("runParts = %v, want nil", err)
		}
		if want := []string{"stop scheduler", "stop workers", "stop web"}; !slices.Equal(r.notes, want) {
			t.Errorf("order = %q, want %q", r.notes, want)
		}
	})
}

func TestAFailingPartStopsTheOthersAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		broken := errors.New("broken")
		failing := part{"workers", func(context.Context) error {
			time.Sleep(time.Minute) // virtual
			return broken
		}}
		err := runParts(t.Context(), zaptest.NewLogger(t), []part{r.obedient("web"), failing, r.obedient("scheduler")})
		if !errors.Is(err, broken) || err.Error() != "workers: broken" {
			t.Errorf("runParts = %v, want workers: broken", err)
		}
		if want := []string{"stop scheduler", "stop web"}; !slices.Equal(r.notes, want) {
			t.Errorf("order = %q, want %q", r.notes, want)
		}
	})
}

func TestAPartThatEndsUnaskedIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		err := runParts(t.Context(), zaptest.NewLogger(t), []part{r.obedient("web"), {"scheduler", func(context.Context) error { return nil }}})
		if err == nil || err.Error() != "scheduler: stopped by itself" {
			t.Errorf("runParts = %v, want scheduler: stopped by itself", err)
		}
	})
}

func TestAPartThatDoesNotStopIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		release := make(chan struct{})
		stubborn := part{"workers", func(context.Context) error { <-release; return nil }}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := runParts(ctx, zaptest.NewLogger(t), []part{r.obedient("web"), stubborn})
		if err == nil || err.Error() != "workers did not stop within 20s" {
			t.Errorf("runParts = %v, want workers did not stop within 20s", err)
		}
		if took := time.Since(start); took != stopTimeout {
			t.Errorf("took %s, want %s", took, stopTimeout)
		}
		if !slices.Equal(r.notes, []string{"stop web"}) {
			t.Errorf("notes = %q, want the web stopped all the same", r.notes)
		}
		close(release)
	})
}

func TestCleanupsRunOnceTheLastFirst(t *testing.T) {
	var r recorder
	var c cleanups
	c.add("close store", func() error { r.note("store"); return errors.New("disk full") })
	c.add("close redis", func() error { r.note("redis"); return nil })
	err := c.run()
	if err == nil || !strings.Contains(err.Error(), "close store: disk full") {
		t.Errorf("run = %v, want the error by name", err)
	}
	if err := c.run(); err != nil {
		t.Errorf("the second run = %v, want nil", err)
	}
	if !slices.Equal(r.notes, []string{"redis", "store"}) {
		t.Errorf("order = %q", r.notes)
	}
}
