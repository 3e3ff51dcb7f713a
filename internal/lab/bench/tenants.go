package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/rig"
	"headroom/jobs"
)

// tenants are a large tenant with many mailboxes and small ones with one mailbox
// each, which come later. Their project's limit is the sum of some users' limits.
type tenants struct {
	scale         int
	userLimit     int64 // units per user and minute
	users         int64 // the project's limit, in users' limits
	slice         time.Duration
	largeBoxes    int
	largeMessages int // in each
	small         int // tenants
	smallMessages int
	later         time.Duration // when the small ones come

	// impatient ends the run when the small tenants are done.
	impatient bool
}

const largeTenant = "large.example"

func (c tenants) accounts() (large, small []string) {
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
func (c tenants) ceiling() float64 { return 0.8 * float64(c.users*c.userLimit) / 60 * float64(c.scale) }

func (c tenants) measure(ctx context.Context, o Options, redisURL string) (report TenantsReport, err error) {
	large, small := c.accounts()
	set := siteSettings{scale: c.scale, limit: c.userLimit, projectLimit: c.users * c.userLimit, slice: c.slice, redisURL: redisURL}
	fill := func(fake *fakegoogle.Server) error {
		return errors.Join(load(fake, large, c.largeMessages), load(fake, small, c.smallMessages))
	}
	err = set.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		w := &tenantsWatch{tenants: c, site: s}
		if err := w.start(ctx, large); err != nil {
			return err
		}
		if err := w.until(ctx, func() bool { return time.Since(w.began) > c.later }); err != nil {
			return err
		}
		w.came, w.before, w.grown = time.Now(), s.Fake.Meter(), time.Now()
		if err := w.start(ctx, small); err != nil {
			return err
		}
		if err := w.until(ctx, w.over); err != nil {
			return err
		}
		report = w.report()
		return nil
	})
	return report, err
}

// tenantsWatch looks at the jobs while the tenants' backfills run.
type tenantsWatch struct {
	tenants
	*site
	began time.Time

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

// start adds all accounts first, so that their backfills start close together.
func (w *tenantsWatch) start(ctx context.Context, accounts []string) error {
	for _, account := range accounts {
		if err := w.AddAccount(ctx, account, rig.Project, w.Log); err != nil {
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

// until looks at the jobs every tenth of a second until over reports true.
func (w *tenantsWatch) until(ctx context.Context, over func() bool) error {
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

func (w *tenantsWatch) look(all []jobs.Job) {
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
	w.progress(float64(stored)/float64(messages), "%d of %d messages of all tenants stored, %d places held", stored, messages, held)
	if w.came.IsZero() || !w.first.IsZero() {
		return
	}
	if large > w.stored {
		w.grown, w.stored = now, large
	}
	w.stalled = max(w.stalled, now.Sub(w.grown))
	if done {
		w.first, w.after = now, w.Fake.Meter()
	}
}

// over reports whether all watched backfills have ended.
func (w *tenantsWatch) over() bool {
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

func (w *tenantsWatch) report() TenantsReport {
	r := TenantsReport{
		Tenants: w.small + 1, Units: map[string]int64{}, Scale: w.scale, MostPlaces: w.most,
		Places: int(math.Ceil(1.2 * float64(w.users))), Messages: int64(w.largeBoxes*w.largeMessages + w.small*w.smallMessages),
		Overlap: round(w.first.Sub(w.came).Seconds()), Stalled: round(w.stalled.Seconds()),
	}
	meter := w.Fake.Meter()
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
