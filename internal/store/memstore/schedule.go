package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// ScheduleRevision says whether what [Store.ScheduleSnapshot] returns has changed, apart
// from the slots.
func (s *Store) ScheduleRevision(ctx context.Context) (r jobs.ScheduleRevision, err error) {
	err = s.do(ctx, func(time.Time) error {
		r = s.revision
		return nil
	})
	return r, err
}

// ScheduleSnapshot returns the accounts, their slots, and what is or was paused.
func (s *Store) ScheduleSnapshot(ctx context.Context) (out jobs.ScheduleSnapshot, err error) {
	err = s.do(ctx, func(time.Time) error {
		out.Revision, out.Pauses = s.revision, slices.Clone(s.pauses)
		for _, a := range sorted(s.accounts) {
			out.Accounts = append(out.Accounts, a.shown())
			for _, slot := range sorted(a.slots) {
				out.Slots = append(out.Slots, *slot)
			}
		}
		return nil
	})
	return out, err
}

// InitSlots records slots of streams that have none yet.
func (s *Store) InitSlots(ctx context.Context, slots []jobs.Slot) error {
	return s.do(ctx, func(time.Time) error {
		for _, one := range slots {
			if a := s.accounts[one.Account]; a != nil && a.slots[one.Schedule] == nil {
				a.slots[one.Schedule] = &jobs.Slot{Schedule: one.Schedule, Account: one.Account, Spec: one.Spec, Slot: truncate(one.Slot)}
			}
		}
		return nil
	})
}

// ClaimSlots moves each stream's slot on and asks for its work, if the slot is still the
// one that the claim names. The error is [jobs.ErrStale] if something was paused or
// resumed since revision pauses, and a claim could be won.
func (s *Store) ClaimSlots(ctx context.Context, pauses int64, claims []jobs.SlotClaim) (answers []jobs.ClaimedSlot, err error) {
	err = s.do(ctx, func(now time.Time) error {
		slot := func(c jobs.SlotClaim) *jobs.Slot {
			if a := s.accounts[c.Account]; a != nil {
				return a.slots[c.Schedule]
			}
			return nil
		}
		open := func(c jobs.SlotClaim) bool { row := slot(c); return row != nil && row.Slot.Equal(c.After) }
		if pauses != s.revision.Pauses && slices.ContainsFunc(claims, open) {
			return fmt.Errorf("claim slots of schedules: %w", jobs.ErrStale)
		}
		for _, c := range claims {
			var answer jobs.ClaimedSlot
			row := slot(c)
			if open(c) {
				row.Slot, row.Spec, row.RanAt = truncate(c.Slot), c.Spec, truncate(c.At)
				row.Runs, row.Missed = row.Runs+1, row.Missed+c.Missed
				if c.CatchUp {
					row.CatchUps++
				}
				answer.Won, answer.Result = true, s.askFor(s.accounts[c.Account], c.Schedule, now)
			}
			if row != nil {
				answer.Slot = row.Slot
			}
			answers = append(answers, answer)
		}
		return nil
	})
	return answers, err
}

// askFor asks for the work of a schedule, and records what came of it.
func (s *Store) askFor(a *account, schedule jobs.Schedule, now time.Time) jobs.SlotResult {
	asked := false
	switch schedule {
	case jobs.ScheduleMail:
		asked = s.askMail(a, now)
	case jobs.ScheduleCalendar:
		asked = s.askCalendars(a, false, now)
	case jobs.ScheduleWatches:
		asked = s.askForWatches(a, now)
	case jobs.ScheduleReconcile:
		calendars := s.askCalendars(a, true, now)
		asked = s.askMailBy(a, func(ask *jobs.MailAsk) bool { return ask.AskWhole(now) }) || calendars
	}
	result := jobs.SlotNothing
	if asked {
		result = jobs.SlotAsked
	}
	if row := a.slots[schedule]; row != nil {
		row.Result = result
	}
	return result
}

// RunSchedule asks for the work of a schedule now, for each of some accounts, and leaves
// its slots as they are. It returns for how many there was anything to ask for.
func (s *Store) RunSchedule(ctx context.Context, schedule jobs.Schedule, accounts []string, at time.Time) (asked int, err error) {
	err = s.do(ctx, func(now time.Time) error {
		for _, email := range accounts {
			a := s.accounts[jobs.FoldAddress(email)]
			if a == nil {
				continue
			}
			if row := a.slots[schedule]; row != nil {
				row.RanAt, row.Runs = truncate(at), row.Runs+1
			}
			if schedule == jobs.ScheduleWatches {
				for _, w := range a.watches {
					if now.Before(w.RenewAt) {
						w.RenewAt = now
					}
					w.NextTry = time.Time{}
				}
			}
			if s.askFor(a, schedule, now) == jobs.SlotAsked {
				asked++
			}
		}
		return nil
	})
	return asked, err
}

// PauseSchedules keeps the schedules that p names from running, until they are resumed by
// the same names.
func (s *Store) PauseSchedules(ctx context.Context, p jobs.SchedulePause) error {
	return s.do(ctx, func(now time.Time) error {
		p.Account, p.PausedAt, p.ResumedAt = jobs.FoldAddress(p.Account), now, time.Time{}
		if i := s.pause(p); i < 0 {
			s.pauses = append(s.pauses, p)
		} else if !s.pauses[i].ResumedAt.IsZero() {
			s.pauses[i] = p
		}
		slices.SortFunc(s.pauses, func(a, b jobs.SchedulePause) int {
			return cmp.Or(cmp.Compare(a.Schedule, b.Schedule), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Account, b.Account))
		})
		s.revision.Pauses++
		return nil
	})
}

// ResumeSchedules ends a pause. The error is [jobs.ErrNotFound] if there is none by these
// names.
func (s *Store) ResumeSchedules(ctx context.Context, p jobs.SchedulePause) error {
	return s.do(ctx, func(now time.Time) error {
		i := s.pause(p)
		if i < 0 || !s.pauses[i].ResumedAt.IsZero() {
			return fmt.Errorf("resume schedules: %w", jobs.ErrNotFound)
		}
		s.pauses[i].ResumedAt = now
		s.revision.Pauses++
		return nil
	})
}

// pause is the index of the pause by the same names, or -1.
func (s *Store) pause(p jobs.SchedulePause) int {
	return slices.IndexFunc(s.pauses, func(one jobs.SchedulePause) bool {
		return one.Schedule == p.Schedule && one.Tenant == p.Tenant && one.Account == jobs.FoldAddress(p.Account)
	})
}
