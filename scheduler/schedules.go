package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/jobs"
)

// A ScheduleStore keeps which slots have run.
type ScheduleStore interface {
	// ScheduleRevision says whether the roll must be read again.
	ScheduleRevision(ctx context.Context) (jobs.ScheduleRevision, error)
	// ScheduleSnapshot returns the accounts, their slots and what is paused.
	ScheduleSnapshot(ctx context.Context) (jobs.ScheduleSnapshot, error)
	// InitSlots notes slots of streams that have none yet.
	InitSlots(ctx context.Context, slots []jobs.Slot) error
	// ClaimSlots moves each stream's slot on and asks for its work, in one
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
// number of processes: the row of a stream makes each slot run once. It does no
// work itself, but asks for it.
type Schedules struct {
	opts    SchedulesOptions
	metrics *scheduleMetrics
	plan    *plan // nil: the roll has to be read
	timings map[Timing]*timing
	looked  time.Time // when the last tick began
	failing bool      // the last tick failed
}

// NewSchedules returns Schedules that do nothing until [Schedules.Run].
func NewSchedules(o SchedulesOptions) (*Schedules, error) {
	if o.Store == nil || o.TimingFunc == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("scheduler: Store, TimingFunc, Log and Registerer of schedules are required")
	}
	if o.Tick < 0 {
		return nil, errors.New("scheduler: tick of schedules must not be negative")
	}
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	o.Log = o.Log.Named("schedules")
	return &Schedules{opts: o, metrics: newScheduleMetrics(o.Registerer), timings: map[Timing]*timing{}}, nil
}

// Run ticks until ctx ends, and returns nil then. A tick that fails is logged and
// counted, and the next one tries again.
func (s *Schedules) Run(ctx context.Context) error {
	tick := time.NewTicker(s.opts.Tick)
	defer tick.Stop()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.metrics.errors.Inc()
			if !s.failing { // a row of them is said once
				s.opts.Log.Error("look for due schedules failed, trying again with the next", zap.Error(err))
			}
			s.failing = true
		} else {
			s.failing = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look is one tick: it runs what is due by now. It must not be called twice at the
// same time, nor beside [Schedules.Run].
func (s *Schedules) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	now := s.opts.NowFunc().UTC()
	if now.Sub(s.looked) > latePatience+s.opts.Tick {
		s.plan = nil // the process, or its machine, stood still: what is late now is spread
	}
	s.looked = now
	if err := s.refresh(ctx, now); err != nil {
		return err
	}
	for claimed := 0; claimed < claimsPerTick; {
		due := s.plan.pop(now, claimsAtOnce)
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

// refresh reads the roll again when something in it has changed.
func (s *Schedules) refresh(ctx context.Context, now time.Time) error {
	revision, err := s.opts.Store.ScheduleRevision(ctx)
	if err != nil {
		return err
	}
	if s.plan != nil && s.plan.revision == revision {
		return nil
	}
	roll, err := s.opts.Store.ScheduleSnapshot(ctx)
	if err != nil {
		return err
	}
	p, unseen, err := s.draw(roll, now)
	if err != nil {
		return err
	}
	for len(unseen) > 0 {
		n := min(len(unseen), claimsAtOnce)
		if err := s.opts.Store.InitSlots(ctx, unseen[:n]); err != nil {
			return err
		}
		unseen = unseen[n:]
	}
	s.plan = p
	return nil
}

// draw makes a plan of a roll. Unseen are the streams that the store has no slot
// of: what was before they were seen is not run.
func (s *Schedules) draw(roll jobs.ScheduleSnapshot, now time.Time) (p *plan, unseen []jobs.Slot, err error) {
	rows := make(map[key]*jobs.Slot, len(roll.Slots))
	for i := range roll.Slots {
		r := &roll.Slots[i]
		rows[key{r.Schedule, r.Account}] = r
	}
	p = newPlan()
	p.revision = roll.Revision
	for _, account := range roll.Accounts {
		for _, schedule := range jobs.Schedules {
			t, err := s.timing(schedule, account)
			if err != nil {
				return nil, nil, err
			}
			if t == nil {
				continue
			}
			one := &stream{key: key{schedule, account.Email}, tenant: account.Tenant, timing: t, place: placeOf(schedule, account.Email)}
			paused := t.Paused || one.held(roll.Pauses)
			row := rows[one.key]
			if row == nil {
				row = &jobs.Slot{Schedule: schedule, Account: account.Email, Spec: t.id(), Slot: one.passed(now)}
				unseen = append(unseen, *row)
			}
			if !paused {
				one.begin(row, s.plan, now)
				p.add(one)
			}
		}
	}
	return p, unseen, nil
}

// timing is that of a schedule and an account, or nil when there is none.
func (s *Schedules) timing(schedule jobs.Schedule, account jobs.Account) (*timing, error) {
	want := s.opts.TimingFunc(schedule, account.Tenant, account.Email)
	if want.Spec == "" {
		return nil, nil
	}
	if t, ok := s.timings[want]; ok {
		return t, nil
	}
	t, err := newTiming(want)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", schedule, account.Email, err)
	}
	s.timings[want] = t
	return t, nil
}

// held reports whether the stream is paused, and notes when it was last resumed.
func (s *stream) held(pauses []jobs.SchedulePause) bool {
	for _, p := range pauses {
		if !p.Covers(s.schedule, s.tenant, s.account) {
			continue
		}
		if p.ResumedAt.IsZero() {
			return true
		}
		if p.ResumedAt.After(s.resumed) {
			s.resumed = p.ResumedAt
		}
	}
	return false
}

// passed is the slot of a stream that is seen for the first time.
func (s *stream) passed(now time.Time) time.Time {
	if slot := s.timing.lastDue(now, s.place); !slot.IsZero() {
		return slot
	}
	return now.Truncate(time.Second) // there was none yet
}

// begin arranges the stream from its row. What the plan before knew of it holds
// while the row is the same, so that a run that waits its turn does not begin to
// wait anew.
func (s *stream) begin(row *jobs.Slot, before *plan, now time.Time) {
	s.row, s.base = row.Slot, row.Slot
	if row.Spec != s.timing.id() { // it is another schedule now, which has missed nothing
		if slot := s.passed(now); slot.After(s.base) {
			s.base = slot
		}
	}
	if before != nil {
		if old := before.streams[s.key]; old != nil && old.row.Equal(s.row) && old.timing == s.timing && old.resumed.Equal(s.resumed) {
			s.base, s.due, s.at = old.base, old.due, old.at
			return
		}
	}
	s.arrange(now)
}

// run claims what is due for the streams, and arranges their next runs.
func (s *Schedules) run(ctx context.Context, now time.Time, due []*stream) error {
	var claims []jobs.SlotClaim
	var claimants []*stream
	for _, one := range due {
		c, ok := one.claim(now)
		if !ok {
			one.arrange(now)
			s.plan.push(one)
			continue
		}
		claims, claimants = append(claims, c), append(claimants, one)
	}
	if len(claims) == 0 {
		return nil
	}
	answers, err := s.opts.Store.ClaimSlots(ctx, s.plan.revision.Pauses, claims)
	if err != nil {
		for _, one := range claimants {
			s.plan.push(one)
		}
		return err
	}
	for i, one := range claimants {
		if answers[i].Won {
			s.note(claims[i], one.timing.due(claims[i].Slot, one.place), answers[i].Result)
		}
		if answers[i].Slot.IsZero() { // the account is gone
			s.plan.remove(one)
			continue
		}
		one.row, one.base = answers[i].Slot, answers[i].Slot
		one.arrange(now)
		s.plan.push(one)
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

// measure says how late the latest run is that has yet to come.
func (s *Schedules) measure(now time.Time) {
	lag := s.plan.lag(now)
	for _, schedule := range jobs.Schedules {
		s.metrics.lag.WithLabelValues(string(schedule)).Set(lag[schedule].Seconds())
		s.metrics.streams.WithLabelValues(string(schedule)).Set(float64(s.plan.count[schedule]))
	}
}
