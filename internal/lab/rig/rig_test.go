package rig_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/rig"
	"headroom/internal/redisconn"
	"headroom/jobs"
)

func TestMain(m *testing.M) {
	redisconn.RouteLog(zap.NewNop())
	goleak.VerifyTestMain(m)
}

const ann = "ann@example.com"

func TestARigRunsAProcessAndLeavesNothing(t *testing.T) {
	r, err := rig.Start(t.Context(), rig.Options{
		Fake: fakegoogle.Options{Scale: 20},
		Fill: func(fake *fakegoogle.Server) error { return fake.Load(ann, "generate:20") },
	})
	if err != nil {
		t.Fatal(err)
	}
	options := app.Options{Roles: []app.Role{app.RoleScheduler, app.RoleWorker}, Log: zap.NewNop(), FreshRedis: true}
	err = r.Run(t.Context(), options, func(ctx context.Context, process *app.App) error {
		job, err := r.StartBackfill(ctx, ann, rig.Project, jobs.Filter{}, zap.NewNop())
		if err != nil {
			return err
		}
		all, err := rig.Follow(ctx, process.Store(), []string{job.ID}, 10*time.Millisecond, func(time.Time, []jobs.Job) error { return nil })
		if err == nil && all[0].Progress.Stored != 20 {
			t.Errorf("job = %+v, want 20 messages stored", all[0])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var order []string
	for _, name := range []string{"first", "second"} {
		r.Cleanup(name, func(context.Context) error { order = append(order, name); return nil })
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("stopped in the order %q, want it reversed", order)
	}
	if _, err := os.Stat(r.Folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the store is left: %v", err)
	}
	if resp, err := http.Get(r.URL); err == nil {
		resp.Body.Close()
		t.Error("the fake still answers")
	}
}

// What had been started when a rig could not be made is stopped, which TestMain
// sees.
func TestARigThatCannotBeMadeStopsWhatItHas(t *testing.T) {
	_, err := rig.Start(t.Context(), rig.Options{Settings: func(cfg *config.Config) { cfg.Worker.Slice = -1 }})
	if err == nil {
		t.Error("a slice of a negative length was taken")
	}
}
