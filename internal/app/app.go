// Package app assembles a process from its parts, runs it, and takes it apart again
// in reverse.
//
// Everything that can be wrong with the surroundings is checked before anything is
// written: settings, then Redis, then the port, then the store.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/api"
	"headroom/internal/blob"
	"headroom/internal/control"
	"headroom/internal/google"
	"headroom/internal/queueowner"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/internal/web"
	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
	"headroom/scheduler"
	"headroom/workers"
)

// Role is a part of Headroom that a process can run.
type Role string

// The roles. Any number of processes may run any of them.
const (
	RoleScheduler Role = "scheduler"
	RoleWorker    Role = "worker"
	RoleWeb       Role = "web"
)

// Roles lists all roles.
var Roles = []Role{RoleScheduler, RoleWorker, RoleWeb}

// ParseRoles checks the names of roles. No names are all roles.
func ParseRoles(names []string) ([]Role, error) {
	if len(names) == 0 {
		return slices.Clone(Roles), nil
	}
	var roles []Role
	for _, name := range names {
		role := Role(strings.TrimSpace(name))
		if !slices.Contains(Roles, role) {
			return nil, fmt.Errorf("no role %q; there are scheduler, worker and web", name)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// Options configures an [App]. Log is required.
type Options struct {
	Roles    []Role // all if empty
	Version  string
	Log      *zap.Logger
	Registry *prometheus.Registry // of all metrics; a new one if nil

	// FreshRedis reports that Redis was started for this run, or its prefix made for
	// it, so that windows that are missing are empty and not lost.
	FreshRedis bool

	// LedgerFunc, if set, changes how the ledger is made. It is for measurements
	// of what no setting offers, such as [quota.WithoutGuard].
	LedgerFunc func(*quota.Options)
}

// An App is an assembled process. Make it with [New], then either [App.Run] or
// [App.Close] it.
type App struct {
	opts     Options
	cfg      config.Config
	projects map[string]quota.Project
	redis    *redisconn.Clients
	store    *sqlite.Store
	ledger   *quota.Ledger
	control  *control.Control
	settings *publisher
	addr     net.Addr
	parts    []part
	undo     cleanups
}

// New checks the surroundings and assembles the parts of the roles; nothing
// runs yet. The error is one line with cause and next step; a
// *[config.InvalidError] when the settings are at fault.
func New(ctx context.Context, cfg config.Config, o Options) (*App, error) {
	if len(o.Roles) == 0 {
		o.Roles = slices.Clone(Roles)
	}
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	redisconn.RouteLog(o.Log)
	a := &App{opts: o, cfg: cfg}
	if err := a.assemble(ctx); err != nil {
		return nil, errors.Join(err, a.undo.run())
	}
	return a, nil
}

// NewRegistry returns a registry with the metrics of the Go runtime and of the
// process.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

func (a *App) has(role Role) bool { return slices.Contains(a.opts.Roles, role) }

// assemble is one straight line, since its order is the point: what may fail
// comes before what leaves traces, and each thing's undoing is noted when it
// exists.
func (a *App) assemble(ctx context.Context) (err error) {
	if a.projects, err = checkSettings(a.cfg, a.opts.Roles); err != nil {
		return err
	}
	if a.redis, err = redisconn.New(a.cfg.Redis.URL, a.cfg.Worker.Concurrency); err != nil {
		return err
	}
	a.undo.add("close redis", a.redis.Close)
	if err := a.redis.Check(ctx, a.opts.Log); err != nil {
		return err
	}

	journal := quota.NewJournal(quota.JournalOptions{Process: processName(), Registerer: a.opts.Registry})
	ledger := quota.Options{
		Redis: a.redis.Ledger, Projects: a.projects, Scale: a.cfg.Scale, KeyPrefix: a.cfg.Redis.LedgerPrefix,
		Fresh: a.opts.FreshRedis, FailOpen: failOpen(a.cfg), Journal: journal, Log: a.opts.Log, Registerer: a.opts.Registry,
	}
	if a.opts.LedgerFunc != nil {
		a.opts.LedgerFunc(&ledger)
	}
	if a.ledger, err = quota.NewLedger(ledger); err != nil {
		return err
	}
	// The first part to run, so the last to stop: it writes down what the others did.
	a.parts = append(a.parts, part{"quota journal", journal.Run})
	var gmail *google.Google
	if a.has(RoleWorker) {
		if gmail, err = control.OpenGoogle(a.cfg, a.ledger, a.opts.Log, a.opts.Registry); err != nil {
			return err
		}
		a.undo.add("close google", func() error { gmail.Close(); return nil })
	}
	ln, err := a.listen(ctx)
	if err != nil {
		return err
	}
	if a.store, err = control.MakeStore(ctx, a.cfg, a.opts.Log); err != nil {
		return err
	}
	a.undo.add("close store", a.store.Close)
	owner, err := control.QueueOwner(ctx, a.cfg, a.redis, a.store, a.opts.Log)
	if err != nil {
		return err
	}
	if err := owner.Claim(ctx, true); err != nil {
		return err
	}
	a.control = control.New(control.Options{
		Config: a.cfg, Log: a.opts.Log, Projects: a.projects, Store: a.store, Redis: a.redis, Ledger: a.ledger, Google: gmail,
	})
	a.undo.add("close control", a.control.Close)
	if err := a.addWeb(ln); err != nil {
		return err
	}
	a.parts = append(a.parts, part{"queue owner", owner.Run})
	a.settings = newPublisher(a.store, a.ledger, a.projects, a.opts.Log)
	a.parts = append(a.parts, part{"settings", a.settings.Run})
	if a.has(RoleWorker) {
		if err := a.addWorkers(gmail); err != nil {
			return err
		}
	}
	if a.has(RoleScheduler) {
		return a.addScheduler()
	}
	return nil
}

// listen takes the address of the process' pages or, without [RoleWeb], of its
// metrics; nil if the settings name none.
func (a *App) listen(ctx context.Context) (net.Listener, error) {
	address, setting := a.cfg.Web.Listen, "web.listen"
	if !a.has(RoleWeb) {
		address, setting = a.cfg.Metrics.Listen, "metrics.listen"
	}
	if address == "" {
		return nil, nil
	}
	ln, err := web.Listen(ctx, address, setting)
	if err != nil {
		return nil, err
	}
	a.addr = ln.Addr()
	a.undo.add("stop listening", func() error {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // the server has closed it
	})
	return ln, nil
}

// addWeb adds the pages of a process with [RoleWeb], or the metrics of one without,
// if it listens.
func (a *App) addWeb(ln net.Listener) error {
	if ln == nil {
		return nil
	}
	o := web.Options{
		Listen: a.cfg.Web.Listen, Version: a.opts.Version,
		Checks: []web.Check{
			{Name: "redis", Func: func(ctx context.Context) error {
				return a.redis.Writable(ctx, queueowner.Key(a.cfg.Redis.QueuePrefix, "ready"))
			}},
			{Name: "store", Func: a.store.Ping},
		},
		Gatherer: a.opts.Registry, Registerer: a.opts.Registry, Log: a.opts.Log,
		Hosts: a.cfg.Web.Hosts, RefuseAPI: api.Refuse,
	}
	if !a.has(RoleWeb) {
		o.Listen = a.cfg.Metrics.Listen
		server := web.NewMetrics(o)
		a.parts = append(a.parts, part{"metrics", func(ctx context.Context) error { return server.Serve(ctx, ln) }})
		return nil
	}
	o.Redis, o.JobsFunc = a.redis.Short, a.store.NewestJobs
	o.API = api.New(api.Options{Control: a.control, Version: a.opts.Version, Log: a.opts.Log})
	taker, err := a.newPush()
	if err != nil {
		return err
	}
	if taker != nil { // a nil *push.Handler is no nil http.Handler
		o.Push = taker
	}
	for _, lane := range quota.Lanes {
		o.Lanes = append(o.Lanes, web.Lane{Name: string(lane), Queue: jobs.QueueName(a.cfg.Redis.QueuePrefix, string(lane))})
	}
	server, err := web.New(o)
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"web", func(ctx context.Context) error { return server.Serve(ctx, ln) }})
	return nil
}

// add adds a part that was made, or returns the error of making it.
func (a *App) add(name string, made interface{ Run(context.Context) error }, err error) error {
	if err == nil {
		a.parts = append(a.parts, part{name, made.Run})
	}
	return err
}

// addScheduler adds the loops of a process with [RoleScheduler].
func (a *App) addScheduler() error {
	tick, err := config.ParseTick(a.cfg.Scheduler.Tick)
	if err != nil {
		return fmt.Errorf("scheduler.tick: %w", err)
	}
	capacity, err := capacities(a.cfg, a.projects, a.ledger)
	if err != nil {
		return err
	}
	queues, log, registry := a.queues(), a.opts.Log, a.opts.Registry

	rescue, err := scheduler.New(scheduler.Options{
		Store: a.store, Queue: queues, Schedule: tick, Log: log, Registerer: registry,
		Lease: a.cfg.Worker.Lease, TaskTimeout: workers.DefaultTaskTimeout(a.cfg.Worker.Slice),
	})
	if err := a.add("scheduler", rescue, err); err != nil {
		return err
	}
	admission, err := scheduler.NewAdmission(scheduler.AdmissionOptions{
		Store: a.store, Queue: queues, Capacity: capacity, Weights: weights(a.cfg.Fairness),
		PerTenant: a.cfg.Fairness.PlacesPerTenant, Log: log, Registerer: registry,
	})
	if err := a.add("admission", admission, err); err != nil {
		return err
	}
	schedules, err := scheduler.NewSchedules(scheduler.SchedulesOptions{
		Store: a.store, TimingFunc: control.TimingFunc(a.cfg), Log: log, Registerer: registry,
	})
	if err := a.add("schedules", schedules, err); err != nil {
		return err
	}
	syncs, err := scheduler.NewSyncs(scheduler.SyncOptions{
		Store: a.store, Calendars: a.store, Queue: queues, Log: log, Registerer: registry,
	})
	if err := a.add("syncs", syncs, err); err != nil {
		return err
	}
	watches, err := scheduler.NewWatches(scheduler.WatchOptions{
		Store: a.store, Watched: control.Watched(a.cfg), Log: log, Registerer: registry,
	})
	return a.add("watches", watches, err)
}

func (a *App) addWorkers(gmail *google.Google) error {
	w := a.cfg.Worker
	workers, err := workers.New(workers.Options{
		Redis: a.redis.Queue, QueuePrefix: a.cfg.Redis.QueuePrefix,
		Store: a.store, Blobs: control.Blobs(a.cfg), Google: mailboxes{gmail}, Parser: google.Parse,
		Calendars: calendars{gmail}, CalendarStore: a.store, Watching: a.watching(),
		Concurrency: w.Concurrency, InFlight: w.InFlight, SliceTime: w.Slice, Lease: w.Lease, Scale: a.cfg.Scale,
		PricesFunc: func(project string) *price.List { return control.GmailList(a.projects[project]) }, MaxMessageBytes: int64(w.MaxMessageBytes),
		Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	return a.add("workers", workers, err)
}

// queues are those that the scheduler watches, by kind of job.
func (a *App) queues() scheduler.Queues {
	of := func(lane quota.Lane) *scheduler.AsynqQueue {
		return scheduler.NewAsynqQueue(control.TaskQueue(a.cfg, a.redis, lane), a.redis.Short)
	}
	backfills, syncs := of(quota.Backfill), of(quota.Sync)
	return scheduler.Queues{jobs.MailBackfill: backfills, jobs.MailSync: syncs, jobs.CalendarSync: syncs}
}

// Run runs the parts until ctx ends, and returns nil then, or until one fails.
// In any case it has taken everything apart when it returns.
func (a *App) Run(ctx context.Context) error {
	fields := []zap.Field{zap.String("version", a.opts.Version), zap.Any("roles", a.opts.Roles),
		zap.Stringer("redis", a.cfg.Redis.URL), zap.String("store", a.cfg.Store.Path)}
	if a.cfg.Scale > 1 {
		a.opts.Log.Warn("quota time runs faster than the clock; never do this against Google", zap.Int("scale", a.cfg.Scale))
	}
	a.opts.Log.Info("running", fields...)
	a.settings.look(ctx) // before the first decision
	err := runParts(ctx, a.opts.Log, a.parts)
	return errors.Join(err, a.Close())
}

// Close takes apart what [New] made, for an App that is not run.
func (a *App) Close() error { return a.undo.run() }

// Addr is where the process listens: with its pages if it has [RoleWeb], with
// metrics and health otherwise. It is nil when it does not listen.
func (a *App) Addr() net.Addr { return a.addr }

// Store is the open store.
func (a *App) Store() *sqlite.Store { return a.store }

// Blobs returns the bodies of the stored messages, valid until the process ends.
func (a *App) Blobs() *blob.Folder { return control.Blobs(a.cfg) }

// Control is what operators can do, with what the process has open.
func (a *App) Control() *control.Control { return a.control }

// Ledger is the process' ledger, for callers of their own beside the workers.
func (a *App) Ledger() *quota.Ledger { return a.ledger }

// failOpen is the share of the settings, in which 0 means none.
func failOpen(cfg config.Config) float64 {
	if cfg.Quota.FailOpen == 0 {
		return quota.NoFailOpen
	}
	return cfg.Quota.FailOpen
}

// processName identifies the process in the quota journal.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
