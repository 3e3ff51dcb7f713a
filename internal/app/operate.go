package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/queueowner"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// AddAccount stores an account, making the store where there is none. The error
// is [jobs.ErrExists] when the account is there already.
func AddAccount(ctx context.Context, cfg config.Config, email, project string, log *zap.Logger) (jobs.Account, error) {
	return AddAccountAs(ctx, cfg, email, project, Assignment{}, log)
}

// AddAccountAs is [AddAccount] for an account with a tenant or priority class of its
// own.
func AddAccountAs(ctx context.Context, cfg config.Config, email, project string, as Assignment, log *zap.Logger) (account jobs.Account, err error) {
	if _, err := Projects(cfg); err != nil {
		return jobs.Account{}, err
	}
	if err := as.validate(cfg); err != nil { // before a store is made
		return jobs.Account{}, err
	}
	if err := knownProject(cfg, project); err != nil {
		return jobs.Account{}, err
	}
	s, err := makeStore(ctx, cfg, log)
	if err != nil {
		return jobs.Account{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return addAccount(ctx, cfg, s, email, project, as)
}

// addAccount is [AddAccountAs] where the store is open.
func addAccount(ctx context.Context, cfg config.Config, s *sqlite.Store, email, project string, as Assignment) (jobs.Account, error) {
	if err := as.validate(cfg); err != nil {
		return jobs.Account{}, err
	}
	if err := knownProject(cfg, project); err != nil {
		return jobs.Account{}, err
	}
	account := jobs.Account{Email: email, Project: project}
	if as.Tenant != nil {
		account.Tenant = *as.Tenant
	}
	if as.Class != nil {
		account.Class = *as.Class
	}
	err := s.AddAccount(ctx, account)
	if errors.Is(err, jobs.ErrExists) {
		return jobs.Account{}, fmt.Errorf("%w; start its backfill with: headroom backfill start %s", err, email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	return KnownAccount(ctx, cfg, s, email)
}

func knownProject(cfg config.Config, project string) error {
	if _, ok := cfg.Google.Projects[project]; ok {
		return nil
	}
	known := "none"
	if len(cfg.Google.Projects) > 0 {
		known = strings.Join(slices.Sorted(maps.Keys(cfg.Google.Projects)), ", ")
	}
	return &UnknownProjectError{fmt.Errorf("unknown project %s, the settings name %s; add google.projects.%s to the settings file", project, known, project)}
}

// Started is a backfill that was asked for.
type Started struct {
	Job     jobs.Job `json:"job"`
	Created bool     `json:"created"` // false: it was under way already
}

// StartBackfill starts the backfill of an account's mailbox, or of the part of it
// that the filter lets through: it makes the job's row and puts its first slice on
// the queue. A backfill that is under way or paused is left alone. Nothing is
// written unless account, project and Redis are there.
func StartBackfill(ctx context.Context, cfg config.Config, email string, filter jobs.Filter, log *zap.Logger) (started Started, err error) {
	if _, err := Projects(cfg); err != nil {
		return Started{}, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return Started{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return Started{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := mayStart(ctx, cfg, s, email); err != nil {
		return Started{}, err
	}
	redisconn.RouteLog(log)
	redis, err := connectQueues(ctx, cfg, s, log)
	if err != nil {
		return Started{}, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	return Operator{Store: s, Queue: backfillQueue(redis, cfg), Log: log}.Start(ctx, cfg, email, filter)
}

// Start is [StartBackfill] where the store and the queue are open.
func (o Operator) Start(ctx context.Context, cfg config.Config, email string, filter jobs.Filter) (Started, error) {
	if err := mayStart(ctx, cfg, o.Store, email); err != nil {
		return Started{}, err
	}
	job, created, err := o.Store.StartBackfill(ctx, email, filter)
	if err != nil {
		return Started{}, err
	}
	o.put(ctx, job)
	return Started{Job: job, Created: created}, nil
}

// mayStart reports why no backfill of an account can be started.
func mayStart(ctx context.Context, cfg config.Config, s *sqlite.Store, email string) error {
	account, err := s.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return unknownAccount(cfg, email)
	}
	if err != nil {
		return err
	}
	if err := knownProject(cfg, account.Project); err != nil {
		return fmt.Errorf("account %s: %w", account.Email, err)
	}
	return nil
}

// unknownAccount says how to make it known, with a project that exists.
func unknownAccount(cfg config.Config, email string) error {
	project := "PROJECT"
	if names := slices.Sorted(maps.Keys(cfg.Google.Projects)); len(names) > 0 {
		project = names[0]
	}
	return missing("unknown account %s; add it with: headroom account add %s --project %s", email, email, project)
}

// missing is a [jobs.ErrNotFound] that says more.
func missing(format string, args ...any) error {
	return missingError(fmt.Sprintf(format, args...))
}

type missingError string

func (e missingError) Error() string { return string(e) }

func (missingError) Unwrap() error { return jobs.ErrNotFound }

// connect makes clients of a Redis that is fit to be used.
func connect(ctx context.Context, url config.URL, conns int, log *zap.Logger) (*redisconn.Clients, error) {
	c, err := redisconn.New(url, conns)
	if err != nil {
		return nil, err
	}
	if err := c.Check(ctx, log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// newOwner claims queues for a store.
func newOwner(ctx context.Context, c *redisconn.Clients, cfg config.Config, s *sqlite.Store, log *zap.Logger) (*queueowner.Owner, error) {
	return queueowner.New(ctx, queueowner.Options{Redis: c.Short, URL: cfg.Redis.URL, Prefix: cfg.Redis.QueuePrefix, Store: s, Log: log})
}

// connectQueues is [connect] for a command that puts tasks on the queues of a store.
func connectQueues(ctx context.Context, cfg config.Config, s *sqlite.Store, log *zap.Logger) (*redisconn.Clients, error) {
	c, err := connect(ctx, cfg.Redis.URL, 1, log)
	if err != nil {
		return nil, err
	}
	q, err := newOwner(ctx, c, cfg, s, log)
	if err == nil {
		err = q.Claim(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// TakeQueues makes the settings' store the owner of the queues although they hold
// tasks of another, unless a process of that runs.
func TakeQueues(ctx context.Context, cfg config.Config, log *zap.Logger) (err error) {
	s, err := OpenStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := connect(ctx, cfg.Redis.URL, 1, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	q, err := newOwner(ctx, c, cfg, s, log)
	if err != nil {
		return err
	}
	return q.Take(ctx)
}
