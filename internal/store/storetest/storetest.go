// Package storetest holds what every store of Headroom must do: the interface by
// which workers, the scheduler and the receiver of pushes use a store, and one suite
// of tests that each implementation passes.
//
// What is particular to one implementation, such as files, migrations and a full
// disk, is tested beside it.
package storetest

import (
	"sync"
	"testing"
	"time"

	"headroom/jobs"
)

// Options say how a test wants its store.
type Options struct {
	// Handles is how many handles of one empty store to open, at least one. Each
	// stands for a process. A store that lives in one process returns the same
	// handle several times.
	Handles int
	// NowFunc is the store's clock.
	NowFunc func() time.Time
	// Watched are the kinds that workers have Google watch.
	Watched []jobs.WatchKind
}

// An Opener opens a store for a test, and closes it with the test.
type Opener func(t testing.TB, opts Options) []Store

// Run runs the suite on stores that open opens.
func Run(t *testing.T, open Opener) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"accounts", accountTests},
		{"jobs", jobTests},
		{"leases", leaseTests},
		{"steering", steerTests},
		{"admission", admissionTests},
		{"listing", listingTests},
		{"commit", commitTests},
		{"failures", failureTests},
		{"history", historyTests},
		{"asks", askTests},
		{"snapshots", snapshotTests},
		{"calendars", calendarTests},
		{"schedules", scheduleTests},
		{"watches", watchTests},
		{"channels", channelTests},
		{"moments", momentTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) { one.run(&T{T: t, open: open}) })
			}
		})
	}
}

type test struct {
	name string
	run  func(*T)
}

// T is a test of the suite, which opens its stores.
type T struct {
	*testing.T
	clock
	open Opener
}

// Run runs a subtest, with a clock and stores of its own.
func (t *T) Run(name string, run func(*T)) bool {
	return t.T.Run(name, func(sub *testing.T) { run(&T{T: sub, open: t.open}) })
}

// handles opens n handles of one empty store.
func handles(t *T, n int) []Store {
	t.Helper()
	return t.open(t, Options{Handles: n, NowFunc: t.now, Watched: jobs.WatchKinds})
}

// fresh opens an empty store.
func fresh(t *T) Store {
	t.Helper()
	return handles(t, 1)[0]
}

// A clock is the local clock, until it is moved.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// pass lets time pass on the store's clock.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
