package scheduler

import (
	"fmt"
	"time"

	"headroom/jobs"
)

// A ScheduleStatus is the state of a schedule for an account.
type ScheduleStatus struct {
	Schedule jobs.Schedule
	Account  jobs.Account
	Timing   Timing
	Slot     jobs.Slot            // its row; of one that no scheduler has seen, only the slot that passed
	Pauses   []jobs.SchedulePause // that hold it, besides the timing's
	Next     time.Time            // zero: never, or not while it is paused
	Lag      time.Duration        // for how long a run has been due that has not begun
}

// Paused reports whether it does not run for now.
func (s ScheduleStatus) Paused() bool { return s.Timing.Paused || len(s.Pauses) > 0 }

// Statuses returns the state of every schedule for the accounts of a snapshot: what any
// scheduler that starts now would do. The order is that of the accounts and of
// [jobs.Schedules].
func Statuses(snapshot jobs.ScheduleSnapshot, timingFunc func(s jobs.Schedule, tenant, account string) Timing, now time.Time) ([]ScheduleStatus, error) {
	all := make([]ScheduleStatus, 0, len(snapshot.Accounts)*len(jobs.Schedules))
	err := newTimetable(timingFunc).entries(snapshot, func(account jobs.Account, e *entry, row *jobs.Slot) {
		s := ScheduleStatus{Schedule: e.schedule, Account: account, Timing: timingFunc(e.schedule, account.Tenant, account.Email)}
		if row != nil {
			s.Slot = *row
		}
		for _, p := range snapshot.Pauses {
			if p.ResumedAt.IsZero() && p.Covers(e.schedule, account.Tenant, account.Email) {
				s.Pauses = append(s.Pauses, p)
			}
		}
		if e.timing != nil {
			s.Next, s.Lag = s.arrange(e, row == nil, snapshot.Pauses, now)
		}
		all = append(all, s)
	})
	return all, err
}

// arrange finds out when the next run is, and for how long one has been due.
func (s *ScheduleStatus) arrange(e *entry, unseen bool, pauses []jobs.SchedulePause, now time.Time) (next time.Time, lag time.Duration) {
	e.held(pauses)
	if unseen {
		s.Slot = *e.firstSlot(now)
	}
	if s.Paused() {
		return next, 0
	}
	e.begin(&s.Slot, nil, now)
	if !e.due.IsZero() {
		lag = max(0, now.Sub(e.due))
	}
	return e.at, lag
}

// A NextRun is when the run of a slot is due.
type NextRun struct {
	Slot   time.Time // in the zone of the specification
	Due    time.Time // of an account; of none in particular, the slot
	Spread time.Duration
}

// NextRuns lists when the next runs of a schedule after a moment are due for an account,
// at most n of them. An empty account stands for none in particular.
func NextRuns(t Timing, s jobs.Schedule, account string, after time.Time, n int) ([]NextRun, error) {
	read, err := newTiming(t)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(t.Zone) // "" is UTC
	if err != nil {
		return nil, fmt.Errorf("zone of schedule %s: %w", s, err)
	}
	var p position
	if account != "" {
		p = positionOf(s, account)
	}
	slot := read.lastDue(after, p)
	if slot.IsZero() { // there was none yet
		slot = after
	}
	var all []NextRun
	for slot = read.next(slot); len(all) < n && !slot.IsZero(); slot = read.next(slot) {
		all = append(all, NextRun{slot.In(zone), read.due(slot, p).UTC(), read.width(slot)})
	}
	return all, nil
}
