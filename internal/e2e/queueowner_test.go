package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/jobs"
)

// other is the site with another store.
func (r *site) other(path string) config.Config {
	r.t.Helper()
	cfg := r.cfg
	cfg.Store = config.Store{Path: path, Blobs: filepath.Join(filepath.Dir(path), "blobs")}
	return cfg
}

// started makes a process, and ends it at once if there is one.
func (r *site) started(cfg config.Config) error {
	r.t.Helper()
	a, err := app.New(r.t.Context(), cfg, app.Options{Log: zaptest.NewLogger(r.t)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	return a.Run(ctx)
}

func (r *site) wantRefused(what string, err error, cfg config.Config) {
	r.t.Helper()
	if err == nil || !strings.Contains(err.Error(), r.cfg.Store.Path) || !strings.Contains(err.Error(), cfg.Store.Path) {
		r.t.Errorf("%s = %v, want an error that names %s and %s", what, err, r.cfg.Store.Path, cfg.Store.Path)
	}
}

// TestTheQueuesOfARunningStoreAreItsOwn: another store, or a copy of the same, is
// refused before it touches a task; several processes of one store are not.
func TestTheQueuesOfARunningStoreAreItsOwn(t *testing.T) {
	t.Parallel()
	r := newSite(t, 5)
	r.startBackfill()
	a := r.run()
	r.run(app.RoleWorker)

	second := r.other(filepath.Join(t.TempDir(), "headroom.db"))
	if _, err := r.controlOf(second).AddAccount(t.Context(), "zoe@example.com", "main", control.Assignment{}); err != nil {
		t.Fatal(err)
	}
	r.wantRefused("a process of a second store", r.started(second), second)
	_, err := r.controlOf(second).StartBackfill(t.Context(), "zoe@example.com", jobs.Filter{})
	r.wantRefused("a backfill of a second store", err, second)
	r.wantRefused("take-queues of a second store", r.controlOf(second).TakeQueues(t.Context()), second)

	second.Redis.QueuePrefix = "second:"
	if err := r.started(second); err != nil {
		t.Errorf("a process of a second store with queues of its own = %v", err)
	}
	if j := r.wait(a.Store(), "ended", terminal); j.State != jobs.Completed {
		t.Errorf("job = %+v", j)
	}
}

// TestACopyOfARunningStoreIsRefused: a copy has the same id.
func TestACopyOfARunningStoreIsRefused(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1)
	raw, err := os.ReadFile(r.cfg.Store.Path)
	if err != nil {
		t.Fatal(err)
	}
	clone := r.other(filepath.Join(t.TempDir(), "copy.db"))
	if err := os.WriteFile(clone.Store.Path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := app.New(t.Context(), r.cfg, app.Options{Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	r.wantRefused("a process of a copy", r.started(clone), clone)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// It was moved, or comes from a backup.
	start := time.Now()
	if err := r.started(clone); err != nil {
		t.Errorf("a process of a copy, when the store runs no more = %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it waited %s for a process that had said that it ended", took)
	}
}

// TestTasksOfAStoppedStoreAreKept: a second store may have the queues when nothing
// is in them, when the first was deleted, or when somebody says so.
func TestTasksOfAStoppedStoreAreKept(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1)
	rdb := redisAt(t, r.redis.Addr)
	second := r.other(filepath.Join(t.TempDir(), "headroom.db"))
	if err := r.started(r.cfg); err != nil {
		t.Fatal(err)
	}
	task := func() {
		t.Helper()
		if err := rdb.ZAdd(t.Context(), "asynq:{sync}:retry", redis.Z{Member: "sync:ann@example.com:1:0"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	task()
	r.wantRefused("a process of a second store", r.started(second), second)
	if err := r.controlOf(second).TakeQueues(t.Context()); err != nil {
		t.Errorf("take-queues = %v", err)
	}
	if err := r.started(second); err != nil {
		t.Errorf("a process of the store that took the queues = %v", err)
	}
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.started(r.cfg); err != nil {
		t.Errorf("a process after FLUSHALL = %v", err)
	}
	task()
	if err := os.Remove(r.cfg.Store.Path); err != nil {
		t.Fatal(err)
	}
	if err := r.started(second); err != nil {
		t.Errorf("a process of a store when the first was deleted = %v", err)
	}
}

// TestAProcessEndsWhenItsQueuesWereTaken: after FLUSHALL whoever comes first has
// them, and the other says so and ends.
func TestAProcessEndsWhenItsQueuesWereTaken(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1)
	first, err := app.New(t.Context(), r.cfg, app.Options{Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	second := r.other(filepath.Join(t.TempDir(), "headroom.db"))
	if err := redisAt(t, r.redis.Addr).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.started(second); err != nil {
		t.Fatal(err)
	}
	r.wantRefused("the first process", first.Run(t.Context()), second)
}
