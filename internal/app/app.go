// Package app assembles a process from its parts, runs it, and takes it apart
// again; and it does what an operator's commands ask for. It decides nothing
// about the work: which part does what stands in the parts.
//
// Everything that can be wrong with the surroundings is looked at before
// anything is written: settings, then Redis, then the port, then the store.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/api"
	"headroom/internal/blob"
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

	// FreshRedis says that Redis was started for this run, or its prefix made for
	// it, so that windows that are missing are empty and not lost.
	FreshRedis bool

	// LedgerFunc, if set, changes how the ledger is made. It is for measurements
	// of what no setting offers, such as [quota.WithoutGuard].
	LedgerFunc func(*quota.Options)
}

// An App is an assembled process. Make it with [New], then either [App.Run] or
// [App.Close] it.
type App struct {
	opts   Options
	cfg    config.Config
	redis  *redisconn.Clients
	store  *sqlite.Store
	ledger *quota.Ledger
	addr   net.Addr
	parts  []part
	undo   cleanups

	settings *publisher
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
func (a *App) assemble(ctx context.Context) error {
	if err := CheckSettings(a.cfg, a.opts.Roles); err != nil {
		return err
	}
	projects, err := Projects(a.cfg)
	if err != nil {
		return err
	}
	if a.redis, err = connect(ctx, a.cfg.Redis.URL, a.cfg.Worker.Concurrency, a.opts.Log); err != nil {
		return err
	}
	a.undo.add("close redis", a.redis.Close)

	journal := quota.NewJournal(quota.JournalOptions{Process: processName(), Registerer: a.opts.Registry})
	ledger := quota.Options{
		Redis: a.redis.Ledger, Projects: projects, Scale: a.cfg.Scale, KeyPrefix: a.cfg.Redis.LedgerPrefix,
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
		if gmail, err = a.newGoogle(); err != nil {
			return err
		}
		a.undo.add("close google", func() error { gmail.Close(); return nil })
	}
	if err := a.addWeb(ctx); err != nil {
		return err
	}
	if a.store, err = makeStore(ctx, a.cfg, a.opts.Log); err != nil {
		return err
	}
	a.undo.add("close store", a.store.Close)
	owner, err := newOwner(ctx, a.redis, a.cfg, a.store, a.opts.Log)
	if err != nil {
		return err
	}
	if err := owner.Claim(ctx, true); err != nil {
		return err
	}
	a.parts = append(a.parts, part{"queue owner", owner.Run})
	a.settings = newPublisher(a.store, a.ledger, projects, a.opts.Log)
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

// addWeb adds the pages of a process with [RoleWeb], or the metrics of one
// without, if the settings say where.
func (a *App) addWeb(ctx context.Context) error {
	o := web.Options{
		Listen: a.cfg.Web.Listen, Setting: "web.listen", Version: a.opts.Version,
		Checks: []web.Check{
			{Name: "redis", Func: func(ctx context.Context) error {
				return a.redis.Writable(ctx, queueowner.Key(a.cfg.Redis.QueuePrefix, "ready"))
			}},
			// The store is opened later, but before anything is served.
			{Name: "store", Func: func(ctx context.Context) error { return a.store.Ping(ctx) }},
		},
		Gatherer: a.opts.Registry, Registerer: a.opts.Registry, Log: a.opts.Log,
		Hosts: a.cfg.Web.Hosts, RefuseAPI: api.Refuse,
	}
	if !a.has(RoleWeb) {
		if a.cfg.Metrics.Listen == "" {
			return nil
		}
		o.Listen, o.Setting = a.cfg.Metrics.Listen, "metrics.listen"
		return a.listen(ctx, "metrics", web.NewMetrics(o))
	}
	o.Redis = a.redis.Short
	o.API = a.newAPI()
	taker, err := a.newPush()
	if err != nil {
		return err
	}
	if taker != nil { // a nil *push.Handler is no nil http.Handler
		o.Push = taker
	}
	o.JobsFunc = func(ctx context.Context, limit int) ([]jobs.Job, int, error) {
		return a.store.NewestJobs(ctx, limit) // the store is opened later
	}
	for _, lane := range quota.Lanes {
		o.Lanes = append(o.Lanes, web.Lane{Name: string(lane), Queue: jobs.QueueName(a.cfg.Redis.QueuePrefix, string(lane))})
	}
	server, err := web.New(o)
	if err != nil {
		return err
	}
	return a.listen(ctx, "web", server)
}

// listen takes the server's address now, and adds it as a part.
func (a *App) listen(ctx context.Context, name string, server *web.Server) error {
	ln, err := server.Listen(ctx)
	if err != nil {
		return err
	}
	a.addr = ln.Addr()
	a.undo.add("stop listening", func() error {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // the server has closed it
	})
	a.parts = append(a.parts, part{name, func(ctx context.Context) error { return server.Serve(ctx, ln) }})
	return nil
}

func (a *App) addScheduler() error {
	schedule, err := config.ParseTick(a.cfg.Scheduler.Tick)
	if err != nil {
		return fmt.Errorf("scheduler.tick: %w", err)
	}
	queues := a.queues()
	s, err := scheduler.New(scheduler.Options{
		Store:    a.store,
		Queue:    queues,
		Schedule: schedule, Log: a.opts.Log, Registerer: a.opts.Registry,
		Lease: a.cfg.Worker.Lease, TaskTimeout: workers.DefaultTaskTimeout(a.cfg.Worker.Slice),
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"scheduler", s.Run})
	if err := a.addAdmission(queues); err != nil {
		return err
	}
	if err := a.addSchedules(); err != nil {
		return err
	}
	if err := a.addSyncs(queues); err != nil {
		return err
	}
	return a.addWatches()
}

func (a *App) addWorkers(gmail *google.Google) error {
	w := a.cfg.Worker
	projects, err := Projects(a.cfg)
	if err != nil {
		return err
	}
	workers, err := workers.New(workers.Options{
		Redis: a.redis.Queue, QueuePrefix: a.cfg.Redis.QueuePrefix,
		Store: a.store, Blobs: Blobs(a.cfg), Google: mailboxes{gmail}, Parser: google.Parse,
		Calendars: calendars{gmail}, CalendarStore: a.store, Watching: a.watching(),
		Concurrency: w.Concurrency, InFlight: w.InFlight, SliceTime: w.Slice, Lease: w.Lease, Scale: a.cfg.Scale,
		PricesFunc: func(project string) *price.List { return gmailList(projects[project]) }, MaxMessageBytes: int64(w.MaxMessageBytes),
		Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"workers", workers.Run})
	return nil
}

// backfillQueue is where slices of backfills go.
func (a *App) backfillQueue() *jobs.Queue { return backfillQueue(a.redis, a.cfg) }

func backfillQueue(c *redisconn.Clients, cfg config.Config) *jobs.Queue {
	return &jobs.Queue{
		Client: asynq.NewClientFromRedisClient(c.Short),
		Name:   jobs.QueueName(cfg.Redis.QueuePrefix, string(quota.Backfill)),
	}
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
func (a *App) Blobs() *blob.Folder { return Blobs(a.cfg) }

// Ledger is the process' ledger, for callers of their own beside the workers.
func (a *App) Ledger() *quota.Ledger { return a.ledger }

// failOpen is the share of the settings, where 0 stands for none.
func failOpen(cfg config.Config) float64 {
	if cfg.Quota.FailOpen == 0 {
		return quota.NoFailOpen
	}
	return cfg.Quota.FailOpen
}
