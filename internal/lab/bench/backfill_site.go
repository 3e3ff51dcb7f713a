package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

// A site is a whole installation to measure: a fake Google, and a process that
// schedules and works, with queue, keys and store of its own. Live syncs run only
// where a backfill's end asks for one, so that what is spent is the backfills'.
type site struct {
	Options
	fake    *fakegoogle.Server
	url     string
	cfg     config.Config
	process *app.App
}

// siteSettings are what sites differ in.
type siteSettings struct {
	prices, meter string
	scale         int
	limit         int64         // units per user and minute; the price list's if zero
	ceiling       *float64      // of lane backfill; the mode's if nil
	roles         []app.Role    // of the process; scheduler and worker if nil
	every         time.Duration // mail and calendars are synced so often; 0: never by themselves
	redisURL      string
	folder        string // of the stores
}

// run fills the fake, starts a process, and lets use measure until it returns.
func (set siteSettings) run(ctx context.Context, o Options, fill func(*fakegoogle.Server) error, use func(context.Context, *site) error) (err error) {
	s := &site{Options: o}
	s.fake, err = fakegoogle.New(fakegoogle.Options{Prices: set.prices, Meter: set.meter, Scale: set.scale, UserLimit: set.limit})
	if err != nil {
		return err
	}
	if err := fill(s.fake); err != nil {
		return err
	}
	url, stopFake, err := s.fake.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopFake(context.WithoutCancel(ctx))) }()
	s.url = url
	if s.cfg, err = set.config(url); err != nil {
		return err
	}
	roles := set.roles
	if roles == nil {
		roles = []app.Role{app.RoleScheduler, app.RoleWorker}
	}
	s.process, err = app.New(ctx, s.cfg, app.Options{Roles: roles, Version: "bench", Log: o.Log, FreshRedis: true})
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	group, runCtx := errgroup.WithContext(runCtx)
	group.Go(func() error { return s.process.Run(runCtx) })
	group.Go(func() error {
		defer stop()
		return use(runCtx, s)
	})
	return errors.Join(group.Wait(), ctx.Err())
}

func (set siteSettings) config(url string) (config.Config, error) {
	own, err := os.MkdirTemp(set.folder, "store-")
	if err != nil {
		return config.Config{}, fmt.Errorf("folder for the store: %w", err)
	}
	prefix := fmt.Sprintf("bench-%d-", time.Now().UnixNano())
	cfg := config.Default()
	cfg.Scale = set.scale
	project := config.Project{Prices: []string{set.prices}, Lanes: config.Lanes{Backfill: config.BackfillLane{Ceiling: set.ceiling}}}
	if set.limit > 0 {
		project.Limits = map[string]config.Limits{set.prices: {UserMinute: set.limit}}
	}
	cfg.Google = config.Google{Endpoint: config.URL(url), Projects: map[string]config.Project{benchProject: project}}
	cfg.Redis = config.Redis{URL: config.URL(set.redisURL), QueuePrefix: prefix, LedgerPrefix: prefix}
	cfg.Store = config.Store{Path: own + "/headroom.db", Blobs: own + "/blobs"}
	cfg.Sync.Interval = 0
	if set.every > 0 {
		project.Prices = append(project.Prices, "calendar-2026-05")
		cfg.Google.Projects[benchProject] = project
		spec := config.Schedule{Spec: "@every " + set.every.String()}
		cfg.Schedules = config.Schedules{"mail-sync": spec, "calendar-sync": spec}
	}
	return cfg.Completed()
}

// start adds an account, if it is not there, and starts a backfill of its.
func (s *site) start(ctx context.Context, email string, filter jobs.Filter) (jobs.Job, error) {
	_, err := app.AddAccount(ctx, s.cfg, email, benchProject, s.Log)
	if err != nil && !errors.Is(err, jobs.ErrExists) {
		return jobs.Job{}, err
	}
	started, err := app.StartBackfill(ctx, s.cfg, email, filter, s.Log)
	return started.Job, err
}

// untilEnded looks at jobs every tenth of a second until all have ended, and
// returns their last rows. Each look is told.
func (s *site) untilEnded(ctx context.Context, ids []string, told func(time.Time, []jobs.Job)) ([]jobs.Job, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		all, ended := make([]jobs.Job, len(ids)), 0
		for i, id := range ids {
			job, err := s.process.Store().Job(ctx, id)
			if err != nil {
				return nil, err
			}
			if all[i] = job; job.State.Terminal() {
				ended++
			}
		}
		told(time.Now(), all)
		if ended == len(ids) {
			return all, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d backfills had not ended: %w", len(ids)-ended, len(ids), context.Cause(ctx))
		}
	}
}
