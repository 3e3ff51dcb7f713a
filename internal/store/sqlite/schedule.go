package sqlite

import (
	"context"
	"fmt"

	"headroom/jobs"
)

// ScheduleRevision says whether what [Store.ScheduleSnapshot] returns has changed,
// apart from the slots.
func (s *Store) ScheduleRevision(ctx context.Context) (r jobs.ScheduleRevision, err error) {
	one, err := poll(ctx, s, scanRevision, selectRevision)
	if err != nil || len(one) == 0 {
		return r, fmt.Errorf("read the revision of schedules: %w", orElse(err, jobs.ErrNotFound))
	}
	return one[0], nil
}

const selectRevision = "SELECT accounts, pauses FROM schedule_revision"

func scanRevision(scan func(...any) error, r *jobs.ScheduleRevision) error {
	return scan(&r.Accounts, &r.Pauses)
}

func (x *tx) scheduleRevision(ctx context.Context) (r jobs.ScheduleRevision, err error) {
	err = scanRevision(x.QueryRowContext(ctx, selectRevision).Scan, &r)
	return r, err
}

// reviseAccounts says that schedules run for other accounts now.
func (x *tx) reviseAccounts(ctx context.Context) error {
	_, err := x.ExecContext(ctx, "UPDATE schedule_revision SET accounts = accounts + 1")
	return err
}

// ScheduleSnapshot returns the accounts, their slots, and what is or was paused.
func (s *Store) ScheduleSnapshot(ctx context.Context) (roll jobs.ScheduleSnapshot, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		if roll.Revision, err = x.scheduleRevision(ctx); err != nil {
			return err
		}
		if roll.Accounts, err = rows(ctx, x, scanAccount, selectAccount+"ORDER BY email"); err != nil {
			return err
		}
		if roll.Slots, err = rows(ctx, x, scanSlot, selectSlot+"ORDER BY account, schedule"); err != nil {
			return err
		}
		roll.Pauses, err = rows(ctx, x, scanPause, selectPause+"ORDER BY schedule, tenant, account")
		return err
	})
	if err != nil {
		return jobs.ScheduleSnapshot{}, fmt.Errorf("read what schedules run for: %w", err)
	}
	return roll, nil
}

const selectSlot = "SELECT schedule, account, spec, slot, ran_at, result, runs, catch_ups, missed FROM schedule_slots "

func scanSlot(scan func(...any) error, s *jobs.Slot) error {
	return scan(&s.Schedule, &s.Account, &s.Spec, millis{&s.Slot}, millis{&s.RanAt}, &s.Result, &s.Runs, &s.CatchUps, &s.Missed)
}

const selectPause = "SELECT schedule, tenant, account, paused_at, resumed_at FROM schedule_pauses "

func scanPause(scan func(...any) error, p *jobs.SchedulePause) error {
	return scan(&p.Schedule, &p.Tenant, &p.Account, millis{&p.PausedAt}, millis{&p.ResumedAt})
}

// rows reads all rows of a query within a transaction.
func rows[T any](ctx context.Context, x *tx, scan func(func(...any) error, *T) error, query string, args ...any) ([]T, error) {
	found, err := x.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanAll(found, scan)
}

// PauseSchedules keeps the schedules that p names from running, until they are
// resumed by the same names.
func (s *Store) PauseSchedules(ctx context.Context, p jobs.SchedulePause) error {
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		_, err := x.ExecContext(ctx, `INSERT INTO schedule_pauses (schedule, tenant, account, paused_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (schedule, tenant, account) DO UPDATE SET resumed_at = 0,
				paused_at = CASE WHEN schedule_pauses.resumed_at = 0 THEN schedule_pauses.paused_at ELSE excluded.paused_at END`,
			p.Schedule, clean(p.Tenant), normal(p.Account), x.now)
		if err != nil {
			return err
		}
		return x.revisePauses(ctx)
	})
	if err != nil {
		return fmt.Errorf("pause schedules: %w", err)
	}
	return nil
}

// ResumeSchedules ends a pause. The error is [jobs.ErrNotFound] when there is none
// by these names.
func (s *Store) ResumeSchedules(ctx context.Context, p jobs.SchedulePause) error {
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		res, err := x.ExecContext(ctx, `UPDATE schedule_pauses SET resumed_at = ?
			WHERE schedule = ? AND tenant = ? AND account = ? AND resumed_at = 0`, x.now, p.Schedule, clean(p.Tenant), normal(p.Account))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return orElse(err, jobs.ErrNotFound)
		}
		return x.revisePauses(ctx)
	})
	if err != nil {
		return fmt.Errorf("resume schedules: %w", err)
	}
	return nil
}

func (x *tx) revisePauses(ctx context.Context) error {
	_, err := x.ExecContext(ctx, "UPDATE schedule_revision SET pauses = pauses + 1")
	return err
}

// ScheduleOutcomes returns how the work stands that schedules ask for, of one account
// or, if it is empty, of all. There is none of [jobs.ScheduleReconcile], whose work
// is that of the two syncs.
func (s *Store) ScheduleOutcomes(ctx context.Context, account string) (all []jobs.ScheduleOutcome, err error) {
	account = normal(account)
	err = s.read(ctx, func(x *tx) error {
		syncs, err := rows(ctx, x, func(scan func(...any) error, o *jobs.ScheduleOutcome) error {
			var j jobs.Job
			err := scan(&j.Kind, &j.Account, &j.State, millis{&j.FinishedAt}, &j.LastError)
			*o = jobs.OutcomeOfSync(j)
			return err
		}, `SELECT kind, account, state, finished_at, last_error FROM jobs
			WHERE kind IN (?, ?) AND (? = '' OR account = ?)`, jobs.MailSync, jobs.CalendarSync, account, account)
		if err != nil {
			return err
		}
		watches, err := rows(ctx, x, func(scan func(...any) error, o *jobs.ScheduleOutcome) error {
			var w jobs.AccountWatches
			err := scan(&w.Account, &w.Failures, &w.Lapsed, millis{&w.RenewAt}, millis{&w.RenewedAt}, &w.LastError)
			*o = w.Outcome(x.moment())
			return err
		}, `SELECT account, MAX(failures), SUM(CASE WHEN state = ? THEN 1 ELSE 0 END), MIN(renew_at), MAX(renewed_at), MAX(last_error)
			FROM watches WHERE (? = '' OR account = ?) GROUP BY account`, jobs.WatchLapsed, account, account)
		all = append(syncs, watches...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what schedules came to: %w", err)
	}
	return all, nil
}
