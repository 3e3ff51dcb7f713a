package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"headroom/jobs"
)

// InitSlots notes slots of streams that have none yet; of those that have one, it
// stays.
func (s *Store) InitSlots(ctx context.Context, slots []jobs.Slot) error {
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		for _, one := range slots {
			_, err := x.ExecContext(ctx, `INSERT INTO schedule_slots (account, schedule, spec, slot)
				SELECT email, ?, ?, ? FROM accounts WHERE email = ? ON CONFLICT (account, schedule) DO NOTHING`,
				one.Schedule, one.Spec, toMillis(one.Slot), one.Account)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note slots of schedules: %w", err)
	}
	return nil
}

type slotKey struct {
	schedule jobs.Schedule
	account  string
}

// ClaimSlots moves each stream's slot on and asks for its work, all in one
// transaction, where the row's slot is still the one that the claim names: so of
// any number of schedulers one runs it. The answers are in the order of the
// claims. The error is [jobs.ErrStale], and nothing was done, when something was
// paused or resumed since revision pauses.
func (s *Store) ClaimSlots(ctx context.Context, pauses int64, claims []jobs.SlotClaim) ([]jobs.ClaimedSlot, error) {
	answers := make([]jobs.ClaimedSlot, len(claims))
	open, err := s.openClaims(ctx, claims, answers)
	if err != nil {
		return nil, fmt.Errorf("claim slots of schedules: %w", err)
	}
	if len(open) == 0 { // somebody else was faster with all of them
		return answers, nil
	}
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		if now, err := x.scheduleRevision(ctx); err != nil || now.Pauses != pauses {
			return orElse(err, jobs.ErrStale)
		}
		for _, i := range open {
			if answers[i], err = s.claimSlot(ctx, x, claims[i]); err != nil {
				return fmt.Errorf("%s: %w", claims[i].ID(), err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim slots of schedules: %w", err)
	}
	return answers, nil
}

// slotsOf has one text for any number of accounts.
const slotsOf = selectSlot + "WHERE schedule = ? AND account IN (SELECT value FROM json_each(?))"

// openClaims returns which claims may still be won. To the others it answers: with
// many schedulers most claims are such, and they need no turn to write.
func (s *Store) openClaims(ctx context.Context, claims []jobs.SlotClaim, answers []jobs.ClaimedSlot) (open []int, err error) {
	byKey := make(map[slotKey]int, len(claims))
	accounts := map[jobs.Schedule][]string{}
	for i, c := range claims {
		byKey[slotKey{c.Schedule, c.Account}] = i
		accounts[c.Schedule] = append(accounts[c.Schedule], c.Account)
	}
	for schedule, names := range accounts {
		text, err := json.Marshal(names)
		if err != nil {
			return nil, fmt.Errorf("encode accounts: %w", err)
		}
		found, err := poll(ctx, s, scanSlot, slotsOf, schedule, string(text))
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			i := byKey[slotKey{schedule, row.Account}]
			if answers[i].Slot = row.Slot; row.Slot.Equal(claims[i].After) {
				open = append(open, i)
			}
		}
	}
	return open, nil
}

func (s *Store) claimSlot(ctx context.Context, x *tx, c jobs.SlotClaim) (jobs.ClaimedSlot, error) {
	catchUps := 0
	if c.CatchUp {
		catchUps = 1
	}
	res, err := x.ExecContext(ctx, `UPDATE schedule_slots SET slot = ?, spec = ?, ran_at = ?, runs = runs + 1,
			catch_ups = catch_ups + ?, missed = missed + ? WHERE account = ? AND schedule = ? AND slot = ?`,
		toMillis(c.Slot), c.Spec, toMillis(c.At), catchUps, c.Missed, c.Account, c.Schedule, toMillis(c.After))
	if err != nil {
		return jobs.ClaimedSlot{}, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return x.lostSlot(ctx, c, err)
	}
	result, err := s.askFor(ctx, x, c.Schedule, c.Account)
	if err != nil {
		return jobs.ClaimedSlot{}, err
	}
	return jobs.ClaimedSlot{Won: true, Result: result, Slot: c.Slot}, nil
}

func (x *tx) lostSlot(ctx context.Context, c jobs.SlotClaim, err error) (jobs.ClaimedSlot, error) {
	var answer jobs.ClaimedSlot
	if err == nil {
		err = x.QueryRowContext(ctx, "SELECT slot FROM schedule_slots WHERE account = ? AND schedule = ?", c.Account, c.Schedule).
			Scan(millis{&answer.Slot})
	}
	return answer, err
}

// askFor asks for the work of a schedule, and notes what came of it.
func (s *Store) askFor(ctx context.Context, x *tx, schedule jobs.Schedule, account string) (jobs.SlotResult, error) {
	asked, err := s.ask(ctx, x, schedule, account)
	if err != nil {
		return "", err
	}
	result := jobs.SlotNothing
	if asked {
		result = jobs.SlotAsked
	}
	_, err = x.ExecContext(ctx, "UPDATE schedule_slots SET result = ? WHERE account = ? AND schedule = ? AND result <> ?",
		result, account, schedule, result)
	return result, err
}

// ask asks for the work of a schedule. What it asks for starts within seconds or,
// where it is under way, once more after that. It reports whether there was
// anything to ask for.
func (s *Store) ask(ctx context.Context, x *tx, schedule jobs.Schedule, account string) (bool, error) {
	switch schedule {
	case jobs.ScheduleMail:
		return x.askMail(ctx, account)
	case jobs.ScheduleCalendar:
		return x.askCalendars(ctx, account, false)
	case jobs.ScheduleWatches:
		return s.askForWatches(ctx, x, account)
	case jobs.ScheduleReconcile:
		return x.askWhole(ctx, account)
	}
	return false, nil
}

// changed runs a statement, and reports whether it changed a row.
func (x *tx) changed(ctx context.Context, query string, args ...any) (bool, error) {
	res, err := x.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// RunSchedule asks for the work of a schedule now, for each of some accounts, and
// leaves its slots as they are. Watches are renewed then whether they are due or
// not. It returns for how many there was anything to ask for.
func (s *Store) RunSchedule(ctx context.Context, schedule jobs.Schedule, accounts []string, at time.Time) (asked int, err error) {
	for len(accounts) > 0 && err == nil {
		some := accounts[:min(len(accounts), DefaultPage)]
		accounts = accounts[len(some):]
		n := 0
		err = s.write(ctx, func(ctx context.Context, x *tx) error {
			n = 0
			for _, account := range some {
				_, err := x.ExecContext(ctx, "UPDATE schedule_slots SET ran_at = ?, runs = runs + 1 WHERE account = ? AND schedule = ?",
					toMillis(at), normal(account), schedule)
				if err != nil {
					return err
				}
				if schedule == jobs.ScheduleWatches {
					if err := x.makeWatchesDue(ctx, normal(account)); err != nil {
						return err
					}
				}
				result, err := s.askFor(ctx, x, schedule, normal(account))
				if err != nil {
					return err
				}
				if result == jobs.SlotAsked {
					n++
				}
			}
			return nil
		})
		asked += n
	}
	if err != nil {
		return asked, fmt.Errorf("run %s: %w", schedule, err)
	}
	return asked, nil
}
