package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// A moment is a column by which the store decides when something happens next. If
// a clock was ahead for a while, moments of that time stand in the future, and what
// depends on them would not happen until then.
type moment struct {
	what   string // in log and metric
	table  string
	column string
	ahead  time.Duration // the furthest from now that any rule sets it; zero: it tells of what has happened
	rows   string        // which rows count; "" for all
	set    string        // what becomes of a row, where ?1 is now; the moment is now if empty
}

// A row that says when it was written tells by how much the clock was ahead, and so
// how long the wait was meant to be.
const (
	liveItems = "state = 'pending' AND job IN (SELECT num FROM jobs WHERE live)"
	setWait   = "wait_until = CASE WHEN wait_until = 0 THEN 0 WHEN wait_until < updated_at THEN ?1 ELSE wait_until - updated_at + ?1 END, updated_at = ?1"
	setRenew  = "renew_at = ?1, renewed_at = ?1"
)

var moments = []moment{
	{"job", "jobs", "updated_at", 0, "live", setWait},
	{"job", "jobs", "failing_since", 0, "live", ""},
	{"item", "items", "not_before", jobs.LongestItemWait, liveItems, ""},
	{"mail-sync", "mailboxes", "asked_at", 0, "", ""},
	{"mail-sync", "mailboxes", "begun_at", 0, "", ""},
	{"mail-sync", "mailboxes", "synced_at", 0, "", ""},
	{"reconciliation", "mailboxes", "reconciled_at", 0, "", ""},
	{"reconciliation", "mailboxes", "resume_at", jobs.ReconcileEvery, "", ""},
	{"calendar-sync", "calendar_lists", "asked_at", 0, "", ""},
	{"calendar-sync", "calendar_lists", "begun_at", 0, "", ""},
	{"calendar-sync", "calendar_lists", "done_at", 0, "", ""},
	{"calendar-sync", "calendar_lists", "synced_at", 0, "", ""},
	{"calendar-sync", "calendar_lists", "resynced_at", 0, "", ""},
	{"calendar-sync", "calendar_lists", "resume_at", jobs.LongestStreamWait, "", ""},
	{"calendar-sync", "calendar_lists", "next_try", jobs.LongestStreamWait, "", ""},
	{"calendar", "calendars", "synced_at", 0, "", ""},
	{"calendar", "calendars", "resynced_at", 0, "", ""},
	{"calendar", "calendars", "next_try", jobs.LongestStreamWait, "", ""},
	{"watch", "watches", "renewed_at", 0, "", setRenew},
	{"watch", "watches", "next_try", jobs.LongestWatchWait, "", ""},
	{"schedule-slot", "schedule_slots", "slot", 0, "", ""},
	{"schedule-run", "schedule_slots", "ran_at", 0, "", ""},
	{"schedule-pause", "schedule_pauses", "resumed_at", 0, "", ""},
}

// RepairMoments sets back stored moments that are further in the future than any
// rule sets them, which a clock that was ahead for a while leaves behind, and
// returns what it found. What has a wait waits as long as it was meant to, at most;
// a schedule runs at its next slot. Any number of processes may do so.
func (s *Store) RepairMoments(ctx context.Context) ([]jobs.RepairedMoment, error) {
	found, err := s.wrongMoments(ctx)
	if err == nil && len(found) > 0 {
		err = s.write(ctx, func(ctx context.Context, x *tx) error {
			for _, m := range moments {
				query := "UPDATE " + m.table + " SET " + cmp.Or(m.set, m.column+" = ?1") + m.wrong()
				if _, err := x.ExecContext(ctx, query, x.now, x.now+m.bound()); err != nil {
					return fmt.Errorf("%s.%s: %w", m.table, m.column, err)
				}
			}
			return x.reviseAccounts(ctx) // schedulers read the slots again
		})
	}
	if err != nil {
		return nil, fmt.Errorf("set back moments in the future: %w", err)
	}
	return found, nil
}

// wrongMoments returns what is further ahead than it can be, by kind.
func (s *Store) wrongMoments(ctx context.Context) (found []jobs.RepairedMoment, err error) {
	at := map[string]int{}
	err = s.read(ctx, func(x *tx) error {
		for _, m := range moments {
			one := jobs.RepairedMoment{What: m.what}
			query := "SELECT COUNT(*), COALESCE(MAX(" + m.column + "), 0) FROM " + m.table + m.wrong()
			err := x.QueryRowContext(ctx, query, x.now, x.now+m.bound()).Scan(&one.Count, millis{&one.Furthest})
			if err != nil {
				return fmt.Errorf("%s.%s: %w", m.table, m.column, err)
			}
			if one.Count == 0 {
				continue
			}
			i, known := at[m.what]
			if !known {
				at[m.what] = len(found)
				found = append(found, one)
				continue
			}
			found[i].Count += one.Count
			if one.Furthest.After(found[i].Furthest) {
				found[i].Furthest = one.Furthest
			}
		}
		return nil
	})
	return found, err
}

// wrong is the condition for rows whose moment is after ?2.
func (m moment) wrong() string {
	if m.rows == "" {
		return " WHERE " + m.column + " > ?2"
	}
	return " WHERE " + m.column + " > ?2 AND " + m.rows
}

// bound is the furthest ahead that the moment may be, in milliseconds.
func (m moment) bound() int64 { return (m.ahead + jobs.ClockTolerance).Milliseconds() }
