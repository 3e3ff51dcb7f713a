package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/rig"
	"headroom/internal/lab/traffic"
	"headroom/jobs"
	"headroom/quota/price"
)

// project is the Google Cloud project that the demo's accounts belong to.
const project = "demo"

// accounts are the users of the demo.
var accounts = []string{"ann@example.com", "ben@example.com", "cleo@example.com"}

// messagesPerAccount is the size of a generated mailbox.
const messagesPerAccount = 800

const (
	minCalls  = 100 // interactive calls are at least so many in all
	lookEvery = 100 * time.Millisecond
)

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

	// Watch is called with the state of the run, some times a second, by one goroutine.
	Watch func(Snapshot)
}

// Snapshot is the state of a run.
type Snapshot struct {
	Jobs   []jobs.Job // in the order of the accounts
	People traffic.Figures
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
	var dealt map[string]dealtMessage
	r, err := rig.Start(ctx, rig.Options{
		Fake:  fakegoogle.Options{Prices: o.Prices, Meter: o.Meter, Scale: o.Scale, Log: o.Log},
		Fill:  func(fake *fakegoogle.Server) (err error) { dealt, err = deal(fake, o.Mail); return err },
		Redis: server.url, Folder: folder, Prefix: server.prefix,
		Settings: func(cfg *config.Config) {
			cfg.Google.Projects = map[string]config.Project{project: cfg.Google.Projects[rig.Project]}
		},
	})
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	registry := app.NewRegistry()
	options := app.Options{Version: "demo", Log: o.Log, Registry: registry, FreshRedis: true}
	err = r.Run(ctx, options, func(ctx context.Context, process *app.App) (err error) {
		// Only now may there be keys, and a Redis to remove them from.
		r.Cleanup("keys of the run", server.clean)
		d := &demo{opts: o, rig: r, list: list, dealt: dealt, process: process, registry: registry}
		d.users = traffic.New(traffic.Options{URL: r.URL, Project: project, Ledger: process.Ledger(), Scale: o.Scale})
		if err := d.work(ctx); err != nil {
			return err
		}
		summary, err = d.judge(ctx)
		return err
	})
	if err != nil {
		return Summary{}, err
	}
	summary.Seconds = math.Round(10*time.Since(began).Seconds()) / 10
	return summary, nil
}

// demo is a run that is under way.
type demo struct {
	opts     Options
	rig      *rig.Rig
	list     *price.List
	dealt    map[string]dealtMessage // by account and id
	users    *traffic.Traffic
	process  *app.App
	registry *prometheus.Registry
	jobs     []jobs.Job // as they ended
}

// work starts the backfills and interactive calls, and waits until the backfills
// have ended and enough calls were made to tell how they fared.
func (d *demo) work(ctx context.Context) error {
	var ids []string
	for _, email := range accounts {
		if err := d.rig.AddAccount(ctx, email, project, d.opts.Log); err != nil {
			return err
		}
	}
	for _, email := range accounts {
		job, err := d.rig.StartBackfill(ctx, email, project, jobs.Filter{}, d.opts.Log)
		if err != nil {
			return err
		}
		ids = append(ids, job.ID)
	}
	enough := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.users.Click(ctx, enough, d.list, accounts) })
	group.Go(func() error {
		defer close(enough)
		return d.watch(ctx, ids)
	})
	return group.Wait()
}

// watch looks at the jobs until they have ended.
func (d *demo) watch(ctx context.Context, ids []string) (err error) {
	d.jobs, err = rig.Follow(ctx, d.process.Store(), ids, lookEvery, func(_ time.Time, all []jobs.Job) error {
		d.jobs = all
		d.tell()
		return nil
	})
	if err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for d.users.Figures().Calls < minCalls {
		select {
		case <-tick.C:
			d.tell()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tell calls Watch.
func (d *demo) tell() {
	if d.opts.Watch != nil {
		d.opts.Watch(Snapshot{Jobs: d.jobs, People: d.users.Figures(), Pages: "http://" + d.process.Addr().String(), Folder: d.rig.Folder})
	}
}
