package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
)

// A crowd is a large tenant with many mailboxes, and small ones with one each that
// come later, in a project whose limit is what some users' limits come to.
type crowd struct {
	scale         int
	userLimit     int64 // units per user and minute
	users         int64 // the project's limit, in users' limits
	slice         time.Duration
	largeBoxes    int
	largeMessages int // in each
	small         int // tenants
	smallMessages int
	later         time.Duration // when the small ones come

	// Impatient ends the run when the small ones are done.
	impatient bool
}

const largeTenant = "large.example"

func (c crowd) accounts() (large, small []string) {
	for n := range c.largeBoxes {
		large = append(large, fmt.Sprintf("user-%d@%s", n, largeTenant))
	}
	for n := range c.small {
		small = append(small, fmt.Sprintf("user@small-%d.example", n))
	}
	return large, small
}

func tenantOf(account string) string {
	_, domain, _ := strings.Cut(account, "@")
	return domain
}

// ceiling is what backfills may spend of the project's limit, in units a second of
// the clock.
func (c crowd) ceiling() float64 { return 0.8 * float64(c.users*c.userLimit) / 60 * float64(c.scale) }

func (c crowd) run(ctx context.Context, o Options, redisURL, folder string) (report CrowdReport, err error) {
	fake, err := fakegoogle.New(fakegoogle.Options{Scale: c.scale, UserLimit: c.userLimit, ProjectLimit: c.users * c.userLimit})
	if err != nil {
		return CrowdReport{}, err
	}
	large, small := c.accounts()
	for _, account := range append(large, small...) {
		messages := c.smallMessages
		if tenantOf(account) == largeTenant {
			messages = c.largeMessages
		}
		if err := fake.Load(account, fmt.Sprintf("generate:%d", messages)); err != nil {
			return CrowdReport{}, err
		}
	}
	url, stopFake, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		return CrowdReport{}, err
	}
	defer func() { err = errors.Join(err, stopFake(context.WithoutCancel(ctx))) }()
	cfg, err := c.config(url, redisURL, folder)
	if err != nil {
		return CrowdReport{}, err
	}
	process, err := app.New(ctx, cfg, app.Options{Roles: []app.Role{app.RoleScheduler, app.RoleWorker}, Version: "bench", Log: o.Log, FreshRedis: true})
	if err != nil {
		return CrowdReport{}, err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	group, runCtx := errgroup.WithContext(runCtx)
	group.Go(func() error { return process.Run(runCtx) })
	group.Go(func() error {
		defer stop()
		w := &crowdWatch{crowd: c, options: o, process: process, fake: fake}
		if err := w.start(runCtx, cfg, large); err != nil {
			return err
		}
		if err := w.until(runCtx, func() bool { return time.Since(w.began) > c.later }); err != nil {
			return err
		}
		w.came, w.before, w.grown = time.Now(), fake.Meter(), time.Now()
		if err := w.start(runCtx, cfg, small); err != nil {
			return err
		}
		if err := w.until(runCtx, w.over); err != nil {
			return err
		}
		report = w.report()
		return nil
	})
	if err := group.Wait(); err != nil {
		return CrowdReport{}, err
	}
	return report, ctx.Err()
}

func (c crowd) config(url, redisURL, folder string) (config.Config, error) {
	prefix := fmt.Sprintf("bench-%d-", time.Now().UnixNano())
	cfg := config.Default()
	cfg.Scale = c.scale
	cfg.Google = config.Google{Endpoint: config.URL(url), Projects: map[string]config.Project{benchProject: {
		Prices: []string{fakegoogle.DefaultPrices},
		Limits: map[string]config.Limits{fakegoogle.DefaultPrices: {UserMinute: c.userLimit, ProjectMinute: c.users * c.userLimit}},
	}}}
	cfg.Redis = config.Redis{URL: config.URL(redisURL), QueuePrefix: prefix, LedgerPrefix: prefix}
	cfg.Store = config.Store{Path: folder + "/headroom.db", Blobs: folder + "/blobs"}
	cfg.Worker.Slice = c.slice
	cfg.Sync.Interval = 0
	return cfg.Completed()
}

// crowdWatch looks at the jobs while a crowd is at work.
type crowdWatch struct {
	crowd
	options Options
	process *app.App
	fake    *fakegoogle.Server
	began   time.Time

	came   time.Time    // when the small tenants did
	before meter.Report // what was spent then
	grown  time.Time    // when the large tenant last stored something
	stored int64        // by it

	jobs    []jobs.Job
	first   time.Time    // when the first small tenant was done
	after   meter.Report // what was spent then
	stalled time.Duration
	most    int
	wrong   error
}

func (w *crowdWatch) start(ctx context.Context, cfg config.Config, accounts []string) error {
	for _, account := range accounts {
		if _, err := app.AddAccount(ctx, cfg, account, benchProject, w.options.Log); err != nil {
			return err
		}
	}
	if w.began.IsZero() {
		w.began = time.Now()
	}
	for _, account := range accounts {
		if _, _, err := w.process.Store().StartBackfill(ctx, account, jobs.Filter{}); err != nil {
			return err
		}
	}
	return nil
}

// until looks again and again until there is no more to see.
func (w *crowdWatch) until(ctx context.Context, over func() bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := w.process.Store().Jobs(ctx)
		if err != nil {
			return err
		}
		w.look(all)
		if w.wrong != nil || over() {
			return w.wrong
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not done in time: %w", context.Cause(ctx))
		}
	}
}

func (w *crowdWatch) look(all []jobs.Job) {
	now := time.Now()
	w.jobs = w.jobs[:0]
	var large, stored, messages int64
	held, done := 0, false
	for _, j := range all {
		if j.Kind != jobs.MailBackfill { // live syncs follow
			continue
		}
		w.jobs = append(w.jobs, j)
		stored += j.Progress.Stored
		switch {
		case j.State.Live() && j.Admission != jobs.NotAdmitted:
			held++
		case j.State == jobs.Failed || j.State == jobs.Blocked || j.State == jobs.Paused:
			w.wrong = fmt.Errorf("job %s is %s: %s", j.ID, j.State, j.LastError)
		}
		if tenantOf(j.Account) == largeTenant {
			large += j.Progress.Stored
		} else {
			done = done || j.State.Terminal()
		}
	}
	w.most = max(w.most, held)
	messages = int64(w.largeBoxes*w.largeMessages + w.small*w.smallMessages)
	w.options.progress(float64(stored)/float64(messages), "%d of %d messages of all tenants stored, %d places held", stored, messages, held)
	if w.came.IsZero() || !w.first.IsZero() {
		return
	}
	if large > w.stored {
		w.grown, w.stored = now, large
	}
	w.stalled = max(w.stalled, now.Sub(w.grown))
	if done {
		w.first, w.after = now, w.fake.Meter()
	}
}

// over reports whether all that is watched has ended.
func (w *crowdWatch) over() bool {
	if len(w.jobs) < w.largeBoxes+w.small {
		return false
	}
	for _, j := range w.jobs {
		if j.State.Live() && !(w.impatient && tenantOf(j.Account) == largeTenant) {
			return false
		}
	}
	return true
}

func (w *crowdWatch) report() CrowdReport {
	r := CrowdReport{
		Tenants: w.small + 1, Units: map[string]int64{}, Scale: w.scale, MostPlaces: w.most,
		Places: int(math.Ceil(1.2 * float64(w.users))), Messages: int64(w.largeBoxes*w.largeMessages + w.small*w.smallMessages),
		Overlap: round(w.first.Sub(w.came).Seconds()), Stalled: round(w.stalled.Seconds()),
	}
	meter := w.fake.Meter()
	r.Refused = meter.Refused()
	equal := w.ceiling() / float64(r.Tenants)
	for _, j := range w.jobs {
		r.Stored += j.Progress.Stored
		r.Units[tenantOf(j.Account)] += w.after.User(j.Account).UnitsAdmitted - w.before.User(j.Account).UnitsAdmitted
		if tenantOf(j.Account) != largeTenant {
			alone := float64(j.Units) / equal
			r.Slowdown = max(r.Slowdown, round(j.FinishedAt.Sub(j.CreatedAt).Seconds()/alone))
		}
	}
	var sum, squares float64
	for _, units := range r.Units {
		sum += float64(units)
		squares += float64(units) * float64(units)
	}
	r.Jain = round(sum * sum / (float64(r.Tenants) * squares))
	r.LargeShare = round(float64(r.Units[largeTenant]) / sum)
	r.Utilization = round(sum / (w.ceiling() * w.first.Sub(w.came).Seconds()))
	return r
}
