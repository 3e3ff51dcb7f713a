// Package rig starts whole installations, for the demo, the benchmarks and the
// end-to-end tests: a fake Google, a Redis, and settings that name them and a
// store of their own. Processes are assembled on it as in production, and
// everything is taken apart in reverse, each part within a bound.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/localredis"
)

// Project is the Google Cloud project of a rig's accounts where none is named.
const Project = "main"

// cleanupBound is how long each part may take to stop.
const cleanupBound = 10 * time.Second

// Options configures a [Rig]. The zero value is an empty Gmail with today's prices.
type Options struct {
	Fake fakegoogle.Options
	// Fill makes the fake's accounts, before anybody can reach it.
	Fill func(*fakegoogle.Server) error
	// Redis is the URL of a running Redis; empty: a redis-server of the rig's own.
	Redis string
	// Folder is where store and bodies are; empty: one of the rig's own, which Stop removes.
	Folder string
	// Prefix begins the names of queues and keys, so that rigs can share a Redis.
	Prefix string
	// Settings changes the settings: those by default, with the fake as Google, one
	// project that has the fake's price list and limits, and the rig's Redis and store.
	Settings func(*config.Config)
}

// A Rig is an installation on which processes can run. Stop it.
type Rig struct {
	Fake   *fakegoogle.Server
	URL    string             // of the fake
	Redis  *localredis.Server // nil where the Redis was running before
	Folder string
	Config config.Config // complete

	cleanups []cleanup
}

type cleanup struct {
	name string
	run  func(context.Context) error
}

// Start starts all but processes.
func Start(ctx context.Context, o Options) (*Rig, error) {
	r := &Rig{Folder: o.Folder}
	if err := r.start(ctx, o); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context, o Options) (err error) {
	if r.Fake, err = fakegoogle.New(o.Fake); err != nil {
		return err
	}
	if o.Fill != nil {
		if err := o.Fill(r.Fake); err != nil {
			return err
		}
	}
	url, stop, err := r.Fake.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	r.URL = url
	r.Cleanup("the fake Google", stop)
	if o.Redis == "" {
		if r.Redis, err = localredis.Start(ctx); err != nil {
			return err
		}
		o.Redis = r.Redis.URL()
		r.Cleanup("redis-server", func(context.Context) error { r.Redis.Stop(); return nil })
	}
	if r.Folder == "" {
		if r.Folder, err = os.MkdirTemp("", "headroom-lab-"); err != nil {
			return fmt.Errorf("folder for the store: %w", err)
		}
		r.Cleanup("the folder of the store", func(context.Context) error { return os.RemoveAll(r.Folder) })
	}
	return r.Configure(func(cfg *config.Config) {
		*cfg = settings(o, url, r.Folder)
		if o.Settings != nil {
			o.Settings(cfg)
		}
	})
}

// settings are those of a rig that changes none.
func settings(o Options, url, folder string) config.Config {
	cfg := config.Default()
	cfg.Scale = max(o.Fake.Scale, 1)
	prices := o.Fake.Prices
	if prices == "" {
		prices = fakegoogle.DefaultPrices
	}
	project := config.Project{Prices: []string{prices}}
	if o.Fake.UserLimit > 0 || o.Fake.ProjectLimit > 0 {
		project.Limits = map[string]config.Limits{prices: {UserMinute: o.Fake.UserLimit, ProjectMinute: o.Fake.ProjectLimit}}
	}
	cfg.Google = config.Google{Endpoint: config.URL(url), Projects: map[string]config.Project{Project: project}}
	cfg.Redis = config.Redis{URL: config.URL(o.Redis), QueuePrefix: o.Prefix, LedgerPrefix: o.Prefix}
	cfg.Store = config.Store{Path: filepath.Join(folder, "headroom.db"), Blobs: filepath.Join(folder, "blobs")}
	cfg.Web.Listen = "127.0.0.1:0"
	return cfg
}

// Configure changes the settings of processes that are assembled from now on.
func (r *Rig) Configure(change func(*config.Config)) (err error) {
	change(&r.Config)
	r.Config, err = r.Config.Completed()
	return err
}

// WriteSettings writes the settings, but for what is secret in them, into a file
// for processes of the operating system, and returns its path.
func (r *Rig) WriteSettings() (path string, err error) {
	text, err := yaml.Marshal(r.Config)
	if err != nil {
		return "", fmt.Errorf("write the settings: %w", err)
	}
	path = filepath.Join(r.Folder, "headroom.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the settings: %w", err)
	}
	return path, nil
}

// Run assembles a process on the rig and runs it until use returns; the process
// has stopped when Run returns. The context of use ends when the process does.
func (r *Rig) Run(ctx context.Context, o app.Options, use func(context.Context, *app.App) error) error {
	process, err := app.New(ctx, r.Config, o)
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	group, runCtx := errgroup.WithContext(runCtx)
	group.Go(func() error { return process.Run(runCtx) })
	group.Go(func() error {
		defer stop()
		return use(runCtx, process)
	})
	return errors.Join(group.Wait(), ctx.Err())
}

// Cleanup has something stopped or removed by Stop, before what came earlier.
func (r *Rig) Cleanup(name string, run func(context.Context) error) {
	r.cleanups = append(r.cleanups, cleanup{name, run})
}

// Stop takes the rig apart. Processes have to be gone.
func (r *Rig) Stop() error {
	var errs []error
	for _, c := range slices.Backward(r.cleanups) {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupBound)
		if err := c.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		cancel()
	}
	r.cleanups = nil
	return errors.Join(errs...)
}
