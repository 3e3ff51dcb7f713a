package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/internal/service"
	"headroom/jobs"
)

// A ScheduleStore keeps which slots have run.
type ScheduleStore interface {
	// ScheduleRevision says whether the snapshot must be read again.
	ScheduleRevision(ctx context.Context) (jobs.ScheduleRevision, error)
	// ScheduleSnapshot returns the accounts, their slots and what is paused.
	ScheduleSnapshot(ctx context.Context) (jobs.ScheduleSnapshot, error)
	// InitSlots notes slots of schedules of accounts that have none yet.
	InitSlots(ctx context.Context, slots []jobs.Slot) error
	// ClaimSlots moves the slot of each schedule and account on and asks for its work, in one
	// transaction, where the row's slot is still the one that the claim names. The
	// error is jobs.ErrStale, and nothing was done, when something was paused or
	// resumed since revision pauses.
	ClaimSlots(ctx context.Context, pauses int64, claims []jobs.SlotClaim) ([]jobs.ClaimedSlot, error)
}

// SchedulesOptions configures [NewSchedules]. Store, TimingFunc, Log and
// Registerer are required.
type SchedulesOptions struct {
	Store      ScheduleStore
	TimingFunc func(s jobs.Schedule, tenant, account string) Timing
	NowFunc    func() time.Time // the clock; time.Now if nil
	Tick       time.Duration    // between two looks; a second if zero
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

const (
	claimsAtOnce  = 200  // in one transaction, which others wait for
	claimsPerTick = 4000 // the rest waits for the next tick
)

// Schedules runs the schedules of all accounts. Any number of them may run, in any
// number of processes: the row of a schedule and account makes each slot run once. It does no
// work itself, but asks for it.
type Schedules struct {
	opts      SchedulesOptions
	metrics   *scheduleMetrics
	timetable *timetable
	timeline  *timeline // nil: the snapshot has to be read
	looked    time.Time // when the last tick began
}

// NewSchedules returns Schedules that do nothing until [Schedules.Run].
func NewSchedules(o SchedulesOptions) (*Schedules, error) {
	if err := service.CheckOptions("scheduler: schedules", o, "Store", "TimingFunc", "Log", "Registerer"); err != nil {
		return nil, err
	}
	o.Tick = cmp.Or(o.Tick, time.Second)
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	o.Log = o.Log.Named("schedules")
	return &Schedules{opts: o, metrics: newScheduleMetrics(o.Registerer), timetable: newTimetable(o.TimingFunc)}, nil
}

// Run looks at once and then with every tick, until ctx ends, see [service.Loop].
func (s *Schedules) Run(ctx context.Context) error {
	return service.Loop{
		Name: "look for due schedules", Every: s.opts.Tick, RoundFunc: s.Look,
		Failed: s.metrics.errors, Log: s.opts.Log,
	}.Run(ctx)
}

// Look is one tick: it runs what is due by now. It must not be called twice at the
// same time, nor beside [Schedules.Run].
func (s *Schedules) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	now := s.opts.NowFunc().UTC()
	if now.Sub(s.looked) > latePatience+s.opts.Tick {
		s.timeline = nil // the process, or its machine, stood still: what is late now is spread
	}
	s.looked = now
	if err := s.refresh(ctx, now); err != nil {
		return err
	}
	for claimed := 0; claimed < claimsPerTick; {
		due := s.timeline.pop(now, claimsAtOnce)
		if len(due) == 0 {
			break
		}
		claimed += len(due)
		err := s.run(ctx, now, due)
		if errors.Is(err, jobs.ErrStale) {
			break // the next tick reads what was paused or resumed
		}
		if err != nil {
			return err
		}
	}
	s.measure(now)
	return nil
}

// refresh reads the snapshot again when something in it has changed.
func (s *Schedules) refresh(ctx context.Context, now time.Time) error {
	revision, err := s.opts.Store.ScheduleRevision(ctx)
	if err != nil {
		return err
	}
	if s.timeline != nil && s.timeline.revision == revision {
		return nil
	}
	snapshot, err := s.opts.Store.ScheduleSnapshot(ctx)
	if err != nil {
		return err
	}
	l, unseen, err := s.arrange(snapshot, now)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(unseen, claimsAtOnce) {
		if err := s.opts.Store.InitSlots(ctx, some); err != nil {
			return err
		}
	}
	s.timeline = l
	return nil
}

// arrange makes the timeline of a snapshot. Unseen are the entries that the store has no
// slot of: what was before they were seen is not run.
func (s *Schedules) arrange(snapshot jobs.ScheduleSnapshot, now time.Time) (l *timeline, unseen []jobs.Slot, err error) {
	l = newTimeline()
	l.revision = snapshot.Revision
	err = s.timetable.entries(snapshot, func(_ jobs.Account, e *entry, row *jobs.Slot) {
		if e.timing == nil {
			return
		}
		paused := e.timing.Paused || e.held(snapshot.Pauses)
		if row == nil {
			row = e.firstSlot(now)
			unseen = append(unseen, *row)
		}
		if !paused {
			e.begin(row, s.timeline, now)
			l.add(e)
		}
	})
	return l, unseen, err
}

// run claims what is due for the entries, and arranges their next runs.
func (s *Schedules) run(ctx context.Context, now time.Time, due []*entry) error {
	var claims []jobs.SlotClaim
	var claimants []*entry
	for _, one := range due {
		c, ok := one.claim(now)
		if !ok {
			one.arrange(now)
			s.timeline.push(one)
			continue
		}
		claims, claimants = append(claims, c), append(claimants, one)
	}
	if len(claims) == 0 {
		return nil
	}
	answers, err := s.opts.Store.ClaimSlots(ctx, s.timeline.revision.Pauses, claims)
	if err != nil {
		for _, one := range claimants {
			s.timeline.push(one)
		}
		return err
	}
	for i, one := range claimants {
		if answers[i].Won {
			s.note(claims[i], one.timing.due(claims[i].Slot, one.position), answers[i].Result)
		}
		if answers[i].Slot.IsZero() { // the account is gone
			s.timeline.remove(one)
			continue
		}
		one.row, one.base = answers[i].Slot, answers[i].Slot
		one.arrange(now)
		s.timeline.push(one)
	}
	return nil
}

// note counts and logs a run.
func (s *Schedules) note(c jobs.SlotClaim, due time.Time, result jobs.SlotResult) {
	s.metrics.note(c, due, result)
	log := s.opts.Log.Debug
	if c.Missed > 0 {
		log = s.opts.Log.Info
	}
	log("schedule ran", zap.String("run", c.ID()), zap.String("result", string(result)), zap.Time("due", due),
		zap.Bool("catch_up", c.CatchUp), zap.Int64("missed", c.Missed))
}

// measure shows how late the latest run is that has not begun.
func (s *Schedules) measure(now time.Time) {
	lag := s.timeline.lag(now)
	for _, schedule := range jobs.Schedules {
		s.metrics.lag.WithLabelValues(string(schedule)).Set(lag[schedule].Seconds())
		s.metrics.streams.WithLabelValues(string(schedule)).Set(float64(s.timeline.count[schedule]))
	}
}
