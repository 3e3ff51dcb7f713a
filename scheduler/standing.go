package scheduler

import (
	"time"

	"headroom/jobs"
)

// A Standing is where a schedule stands with an account.
type Standing struct {
	Schedule jobs.Schedule
	Account  jobs.Account
	Timing   Timing
	Slot     jobs.Slot            // its row; of one that no scheduler has seen, only the slot that passed
	Pauses   []jobs.SchedulePause // that hold it, besides the timing's
	Next     time.Time            // zero: never, or not while it is paused
	Lag      time.Duration        // for how long a run has been due that has not begun
}

// Paused reports whether it does not run for now.
func (s Standing) Paused() bool { return s.Timing.Paused || len(s.Pauses) > 0 }

// Standings says where schedules stand with the accounts of a roll: what any
// scheduler that begins now would do. The order is that of the accounts and of
// [jobs.Schedules].
func Standings(roll jobs.ScheduleSnapshot, timingFunc func(s jobs.Schedule, tenant, account string) Timing, now time.Time) ([]Standing, error) {
	s := &Schedules{opts: SchedulesOptions{TimingFunc: timingFunc}, timings: map[Timing]*timing{}}
	rows := make(map[key]*jobs.Slot, len(roll.Slots))
	for i := range roll.Slots {
		rows[key{roll.Slots[i].Schedule, roll.Slots[i].Account}] = &roll.Slots[i]
	}
	all := make([]Standing, 0, len(roll.Accounts)*len(jobs.Schedules))
	for _, account := range roll.Accounts {
		for _, schedule := range jobs.Schedules {
			one, err := s.standing(schedule, account, rows[key{schedule, account.Email}], roll.Pauses, now)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func (s *Schedules) standing(schedule jobs.Schedule, account jobs.Account, row *jobs.Slot, pauses []jobs.SchedulePause, now time.Time) (Standing, error) {
	standing := Standing{Schedule: schedule, Account: account, Timing: s.opts.TimingFunc(schedule, account.Tenant, account.Email)}
	if row != nil {
		standing.Slot = *row
	}
	for _, p := range pauses {
		if p.ResumedAt.IsZero() && p.Covers(schedule, account.Tenant, account.Email) {
			standing.Pauses = append(standing.Pauses, p)
		}
	}
	t, err := s.timing(schedule, account)
	if err != nil || t == nil {
		return standing, err
	}
	one := &stream{key: key{schedule, account.Email}, tenant: account.Tenant, timing: t, place: placeOf(schedule, account.Email)}
	one.held(pauses)
	if row == nil {
		standing.Slot = jobs.Slot{Schedule: schedule, Account: account.Email, Spec: t.id(), Slot: one.passed(now)}
	}
	if standing.Paused() {
		return standing, nil
	}
	one.begin(&standing.Slot, nil, now)
	standing.Next = one.at
	if !one.due.IsZero() {
		standing.Lag = max(0, now.Sub(one.due))
	}
	return standing, nil
}
