package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/scheduler"
)

// Sizes of the benchmark. Tests make them smaller.
type scheduleSize struct {
	accounts int
	tick     time.Duration // of each scheduler, in virtual time
}

// The simulated day, in hours and seconds from its begin. All schedulers are away
// in the middle of it for six hours; one is killed two seconds before an hour.
const (
	dayEnds    = 24 * time.Hour
	killedAt   = 3*time.Hour - 2*time.Second
	awayFrom   = 8*time.Hour + 30*time.Minute
	awayUntil  = awayFrom + 6*time.Hour
	normalFrom = 4 * time.Hour // an hour in which nothing happens
	window     = 10 * time.Minute
)

// ScheduleFigures are what bench schedule measures.
type ScheduleFigures struct {
	Accounts     int     `json:"accounts"`
	Replicas     int     `json:"replicas"`
	RunsExpected int     `json:"runs_expected"`  // slots due while schedulers ran, and one for each account after the outage
	Runs         int     `json:"runs"`           // that began: a task was put
	Doubles      int     `json:"doubles"`        // runs of a slot beyond the first, and tasks put beyond the first
	Missed       int     `json:"missed"`         // expected runs that never began
	PeakOverMean float64 `json:"peak_over_mean"` // busiest 10 s of a normal hour over its mean
	CatchUpRuns  int     `json:"catch_up_runs"`
	CatchUpPeak  float64 `json:"catch_up_peak_over_mean"` // in the ten minutes after the outage
	Seconds      float64 `json:"seconds"`
}

// Broken implements [Figures].
func (f ScheduleFigures) Broken() string {
	switch {
	case f.Doubles > 0:
		return fmt.Sprintf("%d runs were done twice", f.Doubles)
	case f.Missed > 0 || f.Runs != f.RunsExpected:
		return fmt.Sprintf("%d runs of %d, %d missed", f.Runs, f.RunsExpected, f.Missed)
	case f.PeakOverMean > 2:
		return fmt.Sprintf("the busiest 10 s have %.2f times the mean's runs, want at most 2", f.PeakOverMean)
	case f.CatchUpRuns != f.Accounts:
		return fmt.Sprintf("%d runs caught up, want one for each of %d accounts", f.CatchUpRuns, f.Accounts)
	}
	return ""
}

func schedule(ctx context.Context, o Options) (Figures, error) {
	return simulateDay(ctx, o, scheduleSize{accounts: 10_000, tick: 10 * time.Second})
}

// hourly is the schedule of every account.
var hourly = scheduler.Timing{Spec: "0 * * * *", Spread: -1, CatchUp: true}

// A day is the simulation: real stores on one database, a clock that is moved by
// hand, and workers that are done within a minute.
type day struct {
	size     scheduleSize
	begin    time.Time
	now      time.Time
	ticks    []time.Time // of all replicas
	replicas []*replica

	mu      sync.Mutex // syncs start side by side
	put     map[jobs.TaskRef]int
	at      map[string][]time.Time // when runs of each account began
	pending []jobs.TaskRef         // tasks that no worker has done
	worked  time.Time              // when the last were
}

// A replica is a scheduler process.
type replica struct {
	phase     time.Duration
	store     *sqlite.Store
	schedules *scheduler.Schedules
	syncs     *scheduler.Syncs
}

func simulateDay(ctx context.Context, o Options, size scheduleSize) (f ScheduleFigures, err error) {
	folder, err := os.MkdirTemp("", "headroom-bench-")
	if err != nil {
		return f, fmt.Errorf("folder for the store: %w", err)
	}
	defer os.RemoveAll(folder)
	start := time.Now()
	d := &day{size: size, begin: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), put: map[jobs.TaskRef]int{}, at: map[string][]time.Time{}}
	d.now = d.begin
	path := filepath.Join(folder, "headroom.db")
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.create(ctx, o, path); err != nil {
		return f, err
	}
	if err := d.pass(ctx, o, path); err != nil {
		return f, err
	}
	if f, err = d.figures(ctx); err != nil {
		return f, err
	}
	f.Seconds = time.Since(start).Seconds()
	return f, nil
}

// create makes the store with its accounts, each with a mailbox to be synced.
func (d *day) create(ctx context.Context, o Options, path string) error {
	if err := d.launch(ctx, o, path, 0); err != nil {
		return err
	}
	all := make([]string, d.size.accounts)
	for i := range all {
		all[i] = account(i)
	}
	return sideBySide(all, func(email string) error { return addMailbox(ctx, d.replicas[0].store, email) })
}

func account(i int) string { return fmt.Sprintf("user%05d@example.com", i) }

// addMailbox adds an account whose mailbox has a cursor: a backfill has begun there,
// and was cancelled.
func addMailbox(ctx context.Context, s *sqlite.Store, email string) error {
	if err := s.AddAccount(ctx, jobs.Account{Email: email, Project: "main"}); err != nil {
		return err
	}
	job, _, err := s.StartBackfill(ctx, email, jobs.Filter{})
	if err != nil {
		return err
	}
	if job, err = s.Claim(ctx, job.Ref(), time.Minute); err != nil {
		return err
	}
	if err := s.SaveProfile(ctx, job.Ref(), jobs.Profile{HistoryID: 1}); err != nil {
		return err
	}
	_, err = s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Cancelled})
	return err
}

// work does a task as a worker does that finds nothing new in the mailbox.
func work(ctx context.Context, s *sqlite.Store, ref jobs.TaskRef) error {
	if _, err := s.Claim(ctx, ref, time.Minute); err != nil {
		return err
	}
	if _, _, err := s.EndSync(ctx, ref); err != nil {
		return err
	}
	_, err := s.Finish(ctx, ref, jobs.Finish{State: jobs.Completed})
	return err
}

// sideBySide calls f for each of all, several at a time, so that a store can write
// for them together.
func sideBySide[T any](all []T, f func(T) error) error {
	var g errgroup.Group
	g.SetLimit(64)
	for _, one := range all {
		g.Go(func() error { return f(one) })
	}
	return g.Wait()
}

// launch starts a scheduler process.
func (d *day) launch(ctx context.Context, o Options, path string, phase time.Duration) error {
	s, err := sqlite.Open(ctx, sqlite.Options{Path: path, Log: o.Log})
	if err != nil {
		return err
	}
	r := &replica{phase: phase, store: s}
	d.replicas = append(d.replicas, r)
	timing := func(s jobs.Schedule, _, _ string) scheduler.Timing {
		if s != jobs.ScheduleMail {
			return scheduler.Timing{}
		}
		return hourly
	}
	r.schedules, err = scheduler.NewSchedules(scheduler.SchedulesOptions{Store: s, TimingFunc: timing, NowFunc: func() time.Time { return d.now },
		Tick: d.size.tick, Log: o.Log, Registerer: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	r.syncs, err = scheduler.NewSyncs(scheduler.SyncOptions{Store: s, Queue: d, Log: o.Log, Registerer: prometheus.NewRegistry()})
	return err
}

// Put implements [scheduler.Putter]: here a run has begun.
func (d *day) Put(_ context.Context, ref jobs.TaskRef) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.put[ref]++; d.put[ref] == 1 {
		d.pending = append(d.pending, ref)
		d.at[ref.Job] = append(d.at[ref.Job], d.now)
	}
	return nil
}

// pass lets the day pass.
func (d *day) pass(ctx context.Context, o Options, path string) error {
	phases := []time.Duration{0, d.size.tick / 3, 2 * d.size.tick / 3}
	steps := []struct {
		until time.Duration
		then  func() error
	}{
		{killedAt, func() error { return d.kill(1) }},
		{awayFrom, func() error { return d.kill(len(d.replicas)) }},
		{awayUntil, func() error { return d.launchAll(ctx, o, path, phases) }},
		{dayEnds, func() error { return nil }},
	}
	if err := d.launchAll(ctx, o, path, phases[1:]); err != nil { // the first made the store
		return err
	}
	at := d.begin
	for _, step := range steps {
		for ; at.Before(d.begin.Add(step.until)); at = at.Add(d.size.tick) {
			for _, r := range d.replicas {
				if now := at.Add(r.phase); now.Before(d.begin.Add(step.until)) {
					if err := d.tick(ctx, r, now); err != nil {
						return err
					}
				}
			}
			o.progress(float64(at.Sub(d.begin))/float64(dayEnds), "it is %s of the day", at.Format(time.TimeOnly))
		}
		if err := step.then(); err != nil {
			return err
		}
	}
	return nil
}

func (d *day) launchAll(ctx context.Context, o Options, path string, phases []time.Duration) error {
	for _, phase := range phases {
		if err := d.launch(ctx, o, path, phase); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the first n replicas as a crash does: they hand nothing over.
func (d *day) kill(n int) error {
	var errs []error
	for _, r := range d.replicas[:n] {
		errs = append(errs, r.store.Close())
	}
	d.replicas = slices.Clone(d.replicas[n:])
	return errors.Join(errs...)
}

func (d *day) close() error {
	return d.kill(len(d.replicas))
}

// tick is one look of a replica. Every minute the workers have done all that there
// is to do.
func (d *day) tick(ctx context.Context, r *replica, now time.Time) error {
	d.now = now
	d.ticks = append(d.ticks, now)
	if err := errors.Join(r.schedules.Look(ctx), r.syncs.Look(ctx)); err != nil {
		return err
	}
	if now.Sub(d.worked) < time.Minute {
		return nil
	}
	begun := d.pending
	d.pending, d.worked = nil, now
	return sideBySide(begun, func(ref jobs.TaskRef) error { return work(ctx, r.store, ref) })
}

// figures compares what ran with what had to, which is worked out from the
// accounts' places in the spread.
func (d *day) figures(ctx context.Context) (ScheduleFigures, error) {
	f := ScheduleFigures{Accounts: d.size.accounts, Replicas: 3}
	for _, n := range d.put {
		f.Doubles += n - 1
	}
	var normal, caught []time.Time
	for i := range d.size.accounts {
		coming, err := scheduler.NextRuns(hourly, jobs.ScheduleMail, account(i), d.begin, 24)
		if err != nil {
			return f, err
		}
		var due []time.Time
		for _, m := range coming {
			due = append(due, m.Due)
		}
		ran := d.at[jobs.SyncID(account(i))]
		expected := d.expected(due)
		f.RunsExpected += len(expected)
		f.Runs += len(ran)
		for _, e := range expected {
			j := slices.IndexFunc(ran, func(t time.Time) bool { return !t.Before(e.from) && !t.After(e.until) })
			if j < 0 {
				f.Missed++
				continue
			}
			for _, group := range []struct {
				times *[]time.Time
				from  time.Duration
				long  time.Duration
			}{{&normal, normalFrom, time.Hour}, {&caught, awayUntil, window}} {
				if since := ran[j].Sub(d.begin) - group.from; since >= 0 && since < group.long {
					*group.times = append(*group.times, ran[j])
				}
			}
			ran = slices.Delete(slices.Clone(ran), j, j+1)
		}
		f.Doubles += len(ran) // unexpected
	}
	f.PeakOverMean, f.CatchUpPeak = peakOverMean(normal, time.Hour), peakOverMean(caught, window)
	snapshot, err := d.replicas[0].store.ScheduleSnapshot(ctx)
	for _, slot := range snapshot.Slots {
		f.CatchUpRuns += int(slot.CatchUps)
	}
	return f, err
}

// A span is when a run has to begin.
type span struct{ from, until time.Time }

// expected lists the runs of an account whose slots are due at these moments:
// those that were due while schedulers ran, and one after the outage, which is the
// next regular one if that is within the window.
func (d *day) expected(due []time.Time) (all []span) {
	slack := 2 * d.size.tick
	gone, _ := slices.BinarySearchFunc(d.ticks, d.begin.Add(awayFrom), time.Time.Compare)
	last, back, end := d.ticks[gone-1], d.ticks[gone], d.ticks[len(d.ticks)-1]
	caught := false
	for _, t := range due {
		if t.After(last) && !t.After(back) || t.After(end) {
			continue
		}
		all = append(all, span{t, t.Add(slack)})
		caught = caught || t.After(back) && !t.After(back.Add(window))
	}
	if !caught {
		all = append(all, span{back, back.Add(window + slack)})
	}
	return all
}

// peakOverMean is the most of ten seconds over the mean of a time.
func peakOverMean(times []time.Time, long time.Duration) float64 {
	tens := map[int64]int{}
	most := 0
	for _, t := range times {
		tens[t.Unix()/10]++
		most = max(most, tens[t.Unix()/10])
	}
	if most == 0 {
		return 0
	}
	return float64(most) / (float64(len(times)) / long.Seconds() * 10)
}
