package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/rig"
	"headroom/internal/lab/traffic"
	"headroom/jobs"
	"headroom/quota"
)

// A site is an installation to measure, with a process that schedules and works.
// Only the end of a backfill starts a live sync, so that backfills spend nearly all
// of the quota.
type site struct {
	Options
	*rig.Rig
	process *app.App
}

// siteSettings are what sites differ in.
type siteSettings struct {
	prices, meter string
	scale         int
	jitter        time.Duration // median on the way to the fake
	limit         int64         // units per user and minute; the price list's if zero
	projectLimit  int64         // units per project and minute; the price list's if zero
	ceiling       *float64      // of lane backfill; the mode's if nil
	slice         time.Duration // of a worker; the settings' own if zero
	roles         []app.Role    // of the process; scheduler and worker if nil
	every         time.Duration // mail and calendars are synced so often; 0: never by themselves
	ledger        func(*quota.Options)
	redisURL      string
}

// run fills the fake, starts a process, and lets use measure until it returns.
func (set siteSettings) run(ctx context.Context, o Options, fill func(*fakegoogle.Server) error, use func(context.Context, *site) error) (err error) {
	r, err := rig.Start(ctx, rig.Options{
		Fake: fakegoogle.Options{Prices: set.prices, Meter: set.meter, Scale: set.scale, Jitter: set.jitter, UserLimit: set.limit, ProjectLimit: set.projectLimit},
		Fill: fill, Redis: set.redisURL, Prefix: fmt.Sprintf("bench-%d-", time.Now().UnixNano()), Settings: set.settings,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	roles := set.roles
	if roles == nil {
		roles = []app.Role{app.RoleScheduler, app.RoleWorker}
	}
	options := app.Options{Roles: roles, Version: "bench", Log: o.Log, FreshRedis: true, LedgerFunc: set.ledger}
	return r.Run(ctx, options, func(ctx context.Context, process *app.App) error {
		return use(ctx, &site{Options: o, Rig: r, process: process})
	})
}

func (set siteSettings) settings(cfg *config.Config) {
	project := cfg.Google.Projects[rig.Project]
	project.Lanes.Backfill.Ceiling = set.ceiling
	if set.slice > 0 {
		cfg.Worker.Slice = set.slice
	}
	cfg.Sync.Interval = 0
	if set.every > 0 {
		project.Prices = append(project.Prices, "calendar-2026-05")
		spec := config.Schedule{Spec: "@every " + set.every.String()}
		cfg.Schedules = config.Schedules{"mail-sync": spec, "calendar-sync": spec}
	}
	cfg.Google.Projects[rig.Project] = project
}

// traffic makes interactive calls through the ledger of the site's process.
func (s *site) traffic() *traffic.Traffic {
	return traffic.New(traffic.Options{URL: s.URL, Project: rig.Project, Ledger: s.process.Ledger(), Scale: s.Config.Scale})
}

// What interactive calls ask for, each for [traffic.ReadCost] units or one request.
const (
	listOfMessages = "/gmail/v1/users/me/messages?maxResults=10"
	listOfEvents   = "/calendar/v3/calendars/primary/events?maxResults=10"
)

// start adds an account, if it is not there, and starts its backfill.
func (s *site) start(ctx context.Context, email string, filter jobs.Filter) (jobs.Job, error) {
	return s.StartBackfill(ctx, email, rig.Project, filter, s.Log)
}

// startAll starts backfills of whole mailboxes, and returns the ids of their jobs.
func (s *site) startAll(ctx context.Context, accounts []string) (ids []string, err error) {
	for _, email := range accounts {
		job, err := s.start(ctx, email, jobs.Filter{})
		if err != nil {
			return nil, err
		}
		ids = append(ids, job.ID)
	}
	return ids, nil
}

// untilEnded polls jobs every tenth of a second until all have ended, and returns
// their last rows. look is called with each poll.
func (s *site) untilEnded(ctx context.Context, ids []string, look func(time.Time, []jobs.Job)) ([]jobs.Job, error) {
	return rig.Follow(ctx, s.process.Store(), ids, 100*time.Millisecond, func(at time.Time, all []jobs.Job) error {
		look(at, all)
		return nil
	})
}

// mailboxes fills the fake with so many mailboxes, and returns their addresses.
func mailboxes(n, messages int) (accounts []string, fill func(*fakegoogle.Server) error) {
	for i := range n {
		accounts = append(accounts, fmt.Sprintf("user-%d@example.com", i))
	}
	return accounts, func(fake *fakegoogle.Server) error { return load(fake, accounts, messages) }
}

// load puts so many made-up messages into each mailbox.
func load(fake *fakegoogle.Server, accounts []string, messages int) error {
	for _, email := range accounts {
		if err := fake.Load(email, fmt.Sprintf("generate:%d", messages)); err != nil {
			return err
		}
	}
	return nil
}

// storedOf sums up what jobs have stored.
func storedOf(all []jobs.Job) (stored int64) {
	for _, job := range all {
		stored += job.Progress.Stored
	}
	return stored
}
