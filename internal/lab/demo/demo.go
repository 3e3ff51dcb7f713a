package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
	"headroom/quota/price"
)

// project is the Google Cloud project that the demo's accounts belong to.
const project = "demo"

// accounts are the people of the demo.
var accounts = []string{"ann@example.com", "ben@example.com", "cleo@example.com"}

// messagesPerAccount is the size of a generated mailbox.
const messagesPerAccount = 800

// Options configures a demo. The zero value is valid but for Log.
type Options struct {
	Mail    string // an mbox file, or a folder of mbox and eml files, dealt among the accounts; generated mail if empty
	Prices  string // gmail-2026-05 if empty
	Meter   string // how the fake refuses; sliding if empty
	Scale   int    // quota time runs so many times faster; 10 if zero
	Redis   string // URL of a Redis; an embedded one if empty
	Keep    bool   // keep the folder with the store when the demo has ended
	Verbose bool   // log what the parts log, from info up
	Log     *zap.Logger

	// Watch is told how things stand, some times a second, by one goroutine.
	Watch func(Snapshot)
}

// Snapshot is how things stand.
type Snapshot struct {
	Jobs   []jobs.Job // in the order of the accounts
	People People
	Pages  string // URL of the dashboard while the demo runs
	Folder string // of the store
}

// Run runs a demo from the first message to the last, and takes everything apart.
func Run(ctx context.Context, o Options) (summary Summary, err error) {
	if o.Scale == 0 {
		o.Scale = 10
	}
	if o.Prices == "" {
		o.Prices = fakegoogle.DefaultPrices
	}
	if o.Meter == "" {
		o.Meter = fakegoogle.DefaultMeter
	}
	list, err := price.Load(o.Prices)
	if err != nil {
		return Summary{}, err
	}
	began := time.Now()
	fake, dealt, err := deal(o)
	if err != nil {
		return Summary{}, err
	}
	url, stopFake, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, within(ctx, 10*time.Second, stopFake)) }()

	run, err := newRunID()
	if err != nil {
		return Summary{}, err
	}
	server, err := startRedis(o.Redis, run)
	if err != nil {
		return Summary{}, err
	}
	defer server.stop()

	folder, err := os.MkdirTemp("", "headroom-demo-")
	if err != nil {
		return Summary{}, fmt.Errorf("folder for the store: %w", err)
	}
	if !o.Keep {
		defer os.RemoveAll(folder)
	}

	cfg, err := settings(o, url, server, folder)
	if err != nil {
		return Summary{}, err
	}
	registry := app.NewRegistry()
	process, err := app.New(ctx, cfg, app.Options{Version: "demo", Log: o.Log, Registry: registry, FreshRedis: true})
	if err != nil {
		return Summary{}, err
	}
	// Only now may there be keys, and a Redis to remove them from.
	defer func() { err = errors.Join(err, within(ctx, 10*time.Second, server.clean)) }()
	d := &demo{opts: o, cfg: cfg, fake: fake, url: url, list: list, dealt: dealt, process: process, registry: registry, folder: folder}
	d.people = newPeople(url, process.Ledger(), list, o.Scale)

	partsCtx, stopParts := context.WithCancel(ctx)
	defer stopParts()
	group, workCtx := errgroup.WithContext(partsCtx)
	group.Go(func() error { return process.Run(workCtx) })
	group.Go(func() (err error) {
		defer stopParts()
		if err := d.work(workCtx); err != nil {
			return err
		}
		summary, err = d.judge(workCtx)
		return err
	})
	if err := group.Wait(); err != nil {
		return Summary{}, err
	}
	summary.Seconds = math.Round(10*time.Since(began).Seconds()) / 10
	return summary, ctx.Err()
}

// within calls f with a bounded context that outlives ctx.
func within(ctx context.Context, bound time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	return f(ctx)
}

func settings(o Options, url string, server *redisServer, folder string) (config.Config, error) {
	cfg := config.Default()
	cfg.Google.Endpoint = config.URL(url)
	cfg.Google.Projects = map[string]config.Project{project: {Prices: []string{o.Prices}}}
	cfg.Redis = config.Redis{URL: config.URL(server.url), QueuePrefix: server.prefix, LedgerPrefix: server.prefix}
	cfg.Store = config.Store{Path: filepath.Join(folder, "headroom.db"), Blobs: filepath.Join(folder, "blobs")}
	cfg.Web.Listen = "127.0.0.1:0"
	cfg.Scale = o.Scale
	return cfg.Completed()
}

// demo is a run that is under way.
type demo struct {
	opts     Options
	cfg      config.Config
	fake     *fakegoogle.Server
	url      string
	list     *price.List
	dealt    map[string]dealtMessage // by account and id
	people   *people
	process  *app.App
	registry *prometheus.Registry
	folder   string
	jobs     []jobs.Job // as they ended
}

// work starts the backfills and the people, and waits until the backfills have
// ended and people have done enough to tell how they fared.
func (d *demo) work(ctx context.Context) error {
	for _, email := range accounts {
		if _, err := app.AddAccount(ctx, d.cfg, email, project, d.opts.Log); err != nil {
			return err
		}
	}
	for _, email := range accounts {
		if _, err := app.StartBackfill(ctx, d.cfg, email, jobs.Filter{}, d.opts.Log); err != nil {
			return err
		}
	}
	enough := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.people.run(groupCtx, enough) })
	group.Go(func() error {
		defer close(enough)
		return d.watch(groupCtx)
	})
	return group.Wait()
}

// watch looks at the jobs until they have ended.
func (d *demo) watch(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		if d.jobs, err = d.look(ctx); err != nil {
			return err
		}
		ended := true
		for _, j := range d.jobs {
			ended = ended && j.State.Terminal()
		}
		figures := d.people.figures()
		if d.opts.Watch != nil {
			d.opts.Watch(Snapshot{Jobs: d.jobs, People: figures, Pages: "http://" + d.process.Addr().String(), Folder: d.folder})
		}
		if ended && figures.Calls >= minCalls {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *demo) look(ctx context.Context) ([]jobs.Job, error) {
	all := make([]jobs.Job, len(accounts))
	for i, email := range accounts {
		j, err := d.process.Store().Job(ctx, jobs.BackfillID(email))
		if err != nil {
			return nil, err
		}
		all[i] = j
	}
	return all, nil
}
