package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
	"headroom/quota"
)

// A backlog is a backfill of some mailboxes by a worker process against a fake
// Google of its own.
type backlog struct {
	prices   string
	cost     int64 // of a message, by prices
	meter    string
	scale    int
	jitter   time.Duration // median on the way to Google, in quota time
	limit    int64         // units per user and minute
	ceiling  float64       // of the lane
	accounts int
	messages int // in each
	guard    bool
}

func (b backlog) account(n int) string { return fmt.Sprintf("user-%d@example.com", n) }

// run works the backlog off and asks the fake what it saw. Assembling happens
// under starting. Told is how many messages are stored.
func (b backlog) run(ctx context.Context, o Options, redisURL, folder string, starting *semaphore.Weighted, told func(stored int64)) (report BacklogReport, err error) {
	if err := starting.Acquire(ctx, 1); err != nil {
		return BacklogReport{}, err
	}
	release := sync.OnceFunc(func() { starting.Release(1) })
	defer release()
	fake, err := fakegoogle.New(fakegoogle.Options{
		Prices: b.prices, Meter: b.meter, Scale: b.scale, UserLimit: b.limit, Jitter: b.jitter / time.Duration(b.scale),
	})
	if err != nil {
		return BacklogReport{}, err
	}
	for n := range b.accounts {
		if err := fake.Load(b.account(n), fmt.Sprintf("generate:%d", b.messages)); err != nil {
			return BacklogReport{}, err
		}
	}
	url, stopFake, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		return BacklogReport{}, err
	}
	defer func() { err = errors.Join(err, stopFake(context.WithoutCancel(ctx))) }()
	cfg, err := b.config(url, redisURL, folder)
	if err != nil {
		return BacklogReport{}, err
	}
	options := app.Options{Roles: []app.Role{app.RoleScheduler, app.RoleWorker}, Version: "bench", Log: o.Log, FreshRedis: true}
	if !b.guard {
		options.LedgerFunc = quota.WithoutGuard
	}
	process, err := app.New(ctx, cfg, options)
	if err != nil {
		return BacklogReport{}, err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	group, runCtx := errgroup.WithContext(runCtx)
	group.Go(func() error { return process.Run(runCtx) })
	group.Go(func() error {
		defer stop()
		for n := range b.accounts {
			if _, err := app.AddAccount(runCtx, cfg, b.account(n), benchProject, o.Log); err != nil {
				return err
			}
			if _, err := app.StartBackfill(runCtx, cfg, b.account(n), jobs.Filter{}, o.Log); err != nil {
				return err
			}
		}
		release()
		done, err := b.untilDone(runCtx, process, told)
		if err != nil {
			return err
		}
		report = b.report(done, fake.Meter())
		return nil
	})
	if err := group.Wait(); err != nil {
		return BacklogReport{}, err
	}
	return report, ctx.Err()
}

// config is for queue, keys and store of the backlog's own.
func (b backlog) config(url, redisURL, folder string) (config.Config, error) {
	own, err := os.MkdirTemp(folder, "store-")
	if err != nil {
		return config.Config{}, fmt.Errorf("folder for the store: %w", err)
	}
	prefix := fmt.Sprintf("bench-%d-", time.Now().UnixNano())
	cfg := config.Default()
	cfg.Scale = b.scale
	cfg.Google = config.Google{Endpoint: config.URL(url), Projects: map[string]config.Project{benchProject: {
		Prices: []string{b.prices},
		Limits: map[string]config.Limits{b.prices: {UserMinute: b.limit}},
		Lanes:  config.Lanes{Backfill: config.BackfillLane{Ceiling: &b.ceiling}},
	}}}
	cfg.Redis = config.Redis{URL: config.URL(redisURL), QueuePrefix: prefix, LedgerPrefix: prefix}
	cfg.Store = config.Store{Path: own + "/headroom.db", Blobs: own + "/blobs"}
	return cfg.Completed()
}

// untilDone waits until every job has ended, and returns them.
func (b backlog) untilDone(ctx context.Context, process *app.App, told func(stored int64)) ([]jobs.Job, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := process.Store().Jobs(ctx)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(j jobs.Job) bool { return j.Kind != jobs.MailBackfill }) // live syncs follow
		stored, ended := int64(0), 0
		for _, job := range all {
			stored += job.Progress.Stored
			if job.State.Terminal() {
				ended++
			}
		}
		told(stored)
		if ended == b.accounts {
			return all, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("not done in time: %d of %d messages stored: %w", stored, b.accounts*b.messages, context.Cause(ctx))
		}
	}
}

func (b backlog) report(done []jobs.Job, meter meter.Report) BacklogReport {
	r := BacklogReport{
		Prices: b.prices, Cost: b.cost, Meter: b.meter, Scale: b.scale, Guard: b.guard,
		JitterMS: round(b.jitter.Seconds() * 1000), Limit: b.limit, Ceiling: b.ceiling,
		Accounts: b.accounts, Messages: int64(b.accounts * b.messages),
		Refused: meter.Refused(), Utilization: math.Inf(1),
	}
	for _, job := range done {
		user := meter.User(job.Account)
		r.Stored += job.Progress.Stored
		r.Units += user.UnitsAdmitted
		r.Most = max(r.Most, user.MostInWindow)
		seconds := job.FinishedAt.Sub(job.CreatedAt).Seconds()
		allowed := float64(b.limit) * b.ceiling / 60 * float64(b.scale) * seconds
		r.Utilization = min(r.Utilization, round(float64(user.UnitsAdmitted)/allowed))
		r.Seconds = max(r.Seconds, round(seconds))
	}
	return r
}

// share sums up how far backlogs are that run side by side.
type share struct {
	options Options

	mu    sync.Mutex
	parts []float64
	taken int
}

func newShare(o Options, parts int) *share { return &share{options: o, parts: make([]float64, parts)} }

// of returns what one backlog tells its progress to.
func (p *share) of(b backlog) func(stored int64) {
	return p.told(b.accounts*b.messages, fmt.Sprintf("backlogs at %g of the limit, %s and the meter %s", b.ceiling, b.prices, b.meter))
}

// told returns what one of those side by side tells its progress to. It is not safe
// for concurrent use; what it returns is.
func (p *share) told(messages int, what string) func(stored int64) {
	part := p.taken
	p.taken++
	return func(stored int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.parts[part] = float64(stored) / float64(messages)
		sum := 0.0
		for _, v := range p.parts {
			sum += v
		}
		p.options.progress(sum/float64(len(p.parts)), "%s: %d of %d stored", what, stored, messages)
	}
}
