// Package control is what operators can do: add accounts, start and steer backfills,
// ask for syncs, read what is stored, see and set quota, run schedules. Commands and
// the HTTP interface show what it returns; neither adds a rule of its own.
//
// The text of an error ends in the next step; [KindOf] sorts errors for exit codes and
// HTTP statuses.
package control

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/hibiken/asynq"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/google"
	"headroom/internal/queueowner"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

// Options configures a [Control]. Config and Log are required. The rest is what the
// process has open already; it stays open when the Control is closed.
type Options struct {
	Config config.Config
	Log    *zap.Logger

	Projects map[string]quota.Project
	Store    *sqlite.Store
	Redis    *redisconn.Clients // whose queues belong to the store
	Ledger   *quota.Ledger
	Google   *google.Google
}

// A Control holds the use cases of operators. What it was not given it opens when a
// use case first needs it, so that a command that only reads the store works without
// Redis, and none opens anything twice. It is safe for concurrent use. Make it with
// [New], and [Control.Close] it.
type Control struct {
	cfg config.Config
	log *zap.Logger

	projects func() (map[string]quota.Project, error)

	ready atomic.Bool // Redis was found fit

	mu      sync.Mutex // of what follows
	db      *sqlite.Store
	redis   *redisconn.Clients
	owner   bool // the queues belong to the store
	quota   *quota.Ledger
	gmail   *google.Google
	closers []func() error // of what it opened
}

// New makes a Control. It opens nothing.
func New(o Options) *Control {
	c := &Control{
		cfg: o.Config, log: o.Log,
		db: o.Store, redis: o.Redis, owner: o.Redis != nil, quota: o.Ledger, gmail: o.Google,
	}
	c.ready.Store(o.Redis != nil)
	c.projects = sync.OnceValues(func() (map[string]quota.Project, error) {
		if o.Projects != nil {
			return o.Projects, nil
		}
		return Projects(o.Config)
	})
	return c
}

// Close closes what the Control has opened, the last first.
func (c *Control) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for i := len(c.closers) - 1; i >= 0; i-- {
		errs = append(errs, c.closers[i]())
	}
	c.closers = nil
	return errors.Join(errs...)
}

// store opens the store. If there is no store, it makes neither a store nor a folder and
// returns [ErrNoStore].
func (c *Control) store(ctx context.Context) (*sqlite.Store, error) { return c.open(ctx, openStore) }

// newStore opens the store, and makes it if it does not exist.
func (c *Control) newStore(ctx context.Context) (*sqlite.Store, error) { return c.open(ctx, MakeStore) }

func (c *Control) open(ctx context.Context, open func(context.Context, config.Config, *zap.Logger) (*sqlite.Store, error)) (*sqlite.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db != nil {
		return c.db, nil
	}
	s, err := open(ctx, c.cfg, c.log)
	if err != nil {
		return nil, err
	}
	c.db, c.closers = s, append(c.closers, s.Close)
	return s, nil
}

// read reads from the store.
func read[T any](ctx context.Context, c *Control, from func(*sqlite.Store) (T, error)) (v T, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return v, err
	}
	return from(s)
}

// clients makes the clients of Redis, without asking Redis anything.
func (c *Control) clients() (*redisconn.Clients, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis != nil {
		return c.redis, nil
	}
	redisconn.RouteLog(c.log)
	r, err := redisconn.New(c.cfg.Redis.URL, 1)
	if err != nil {
		return nil, err
	}
	c.redis, c.closers = r, append(c.closers, r.Close)
	return r, nil
}

// reach checks that Redis answers now, and the first time that it is fit for use. A use
// case that needs Redis writes nothing before.
func (c *Control) reach(ctx context.Context) (*redisconn.Clients, error) {
	r, err := c.clients()
	if err != nil {
		return nil, err
	}
	if c.ready.Load() {
		err = r.Ping(ctx)
	} else {
		err = r.Check(ctx, c.log)
	}
	if err != nil {
		return nil, &Error{Kind: Unavailable, Err: err}
	}
	c.ready.Store(true)
	return r, nil
}

// claim reaches Redis for a use case that puts tasks on the queues. The error names the
// other store if they belong to one.
func (c *Control) claim(ctx context.Context, s *sqlite.Store) error {
	r, err := c.reach(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner {
		return nil
	}
	q, err := QueueOwner(ctx, c.cfg, r, s, c.log)
	if err == nil {
		err = q.Claim(ctx, false)
	}
	c.owner = err == nil
	return err
}

// QueueOwner makes what claims the settings' queues for a store.
func QueueOwner(ctx context.Context, cfg config.Config, r *redisconn.Clients, s *sqlite.Store, log *zap.Logger) (*queueowner.Owner, error) {
	return queueowner.New(ctx, queueowner.Options{Redis: r.Short, URL: cfg.Redis.URL, Prefix: cfg.Redis.QueuePrefix, Store: s, Log: log})
}

// ledger makes the ledger, without asking Redis anything.
func (c *Control) ledger() (*quota.Ledger, error) {
	projects, err := c.projects()
	if err != nil {
		return nil, err
	}
	r, err := c.clients()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quota == nil {
		c.quota, err = quota.NewLedger(quota.Options{Redis: r.Ledger, Projects: projects, Scale: c.cfg.Scale, KeyPrefix: c.cfg.Redis.LedgerPrefix, Plain: true})
	}
	return c.quota, err
}

// google opens Google with the projects' credentials.
func (c *Control) google() (*google.Google, error) {
	ledger, err := c.ledger()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gmail != nil {
		return c.gmail, nil
	}
	g, err := OpenGoogle(c.cfg, ledger, c.log, nil)
	if err != nil {
		return nil, err
	}
	c.gmail, c.closers = g, append(c.closers, func() error { g.Close(); return nil })
	return g, nil
}

// LaneOf is the lane in which jobs of a kind wait for a worker.
func LaneOf(k jobs.Kind) quota.Lane {
	if k == jobs.MailBackfill {
		return quota.Backfill
	}
	return quota.Sync
}

// TaskQueue is the queue of a lane.
func TaskQueue(cfg config.Config, r *redisconn.Clients, lane quota.Lane) *jobs.Queue {
	return &jobs.Queue{Client: asynq.NewClientFromRedisClient(r.Short), Name: jobs.QueueName(cfg.Redis.QueuePrefix, string(lane))}
}

// put puts the next slice of a job on the queue, if the job waits for nothing. The
// row is the truth: where this fails, the scheduler makes the task.
func (c *Control) put(ctx context.Context, job jobs.Job) {
	if job.State != jobs.Queued || job.Admission == jobs.NotAdmitted { // or the scheduler admits it first
		return
	}
	r, err := c.clients()
	if err == nil {
		err = TaskQueue(c.cfg, r, LaneOf(job.Kind)).Put(ctx, job.Ref())
	}
	if err != nil {
		c.log.Warn("job recorded, but not put on the queue; the scheduler will do it", zap.String("job", job.ID), zap.Error(err))
	}
}
