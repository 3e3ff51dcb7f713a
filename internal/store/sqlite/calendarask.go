package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// AskCalendarSync asks for a sync of an account's calendars: the scheduler starts
// it within a second or two, or, where one is under way, another after it. All
// has it read everything again, and not only what changed. The error is
// [jobs.ErrNotFound] when there is no such account.
func (s *Store) AskCalendarSync(ctx context.Context, email string, all bool) error {
	err := s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error { return x.askCalendars(ctx, normal(email), all) })
	if err != nil {
		return fmt.Errorf("ask for a calendar sync of %q: %w", email, err)
	}
	return nil
}

// askCalendars is [Store.AskCalendarSync] within a transaction. What was asked for
// before and has not begun stays asked for since then.
func (x *tx) askCalendars(ctx context.Context, account string, all bool) error {
	if ok, err := x.exists(ctx, "SELECT 1 FROM accounts WHERE email = ?", account); err != nil || !ok {
		return fmt.Errorf("account: %w", orElse(err, jobs.ErrNotFound))
	}
	_, err := x.ExecContext(ctx, `INSERT INTO calendar_lists (account, asked_at, asked_all) VALUES (?, ?, ?)
		ON CONFLICT (account) DO UPDATE SET asked_all = calendar_lists.asked_all OR excluded.asked_all,
			asked_at = CASE WHEN calendar_lists.asked_at > 0 THEN calendar_lists.asked_at ELSE excluded.asked_at END`,
		account, x.now, all)
	return err
}

// onlyWhole holds for a job that waits for quota with nothing left in its round
// but calendars to be read as a whole: those wait in lane backfill, for which what
// has changed elsewhere need not wait.
const onlyWhole = `(j.state = 'waiting' AND j.lease_until = 0 AND j.failures = 0 AND l.listed = l.round AND NOT EXISTS
		(SELECT 1 FROM calendars AS c WHERE c.account = l.account AND c.round < l.round AND c.pass = '' AND c.state <> 'removed'))`

const dueCalendars = `SELECT l.account FROM calendar_lists AS l LEFT JOIN jobs AS j ON j.id = 'calendar:' || l.account
	WHERE (l.asked_at > 0 AND (j.id IS NULL OR NOT j.live AND j.state <> 'paused' OR ` + onlyWhole + `))
		OR (l.resume_at BETWEEN 1 AND ? AND NOT j.live AND j.state NOT IN ('paused', 'blocked', 'cancelled'))
	ORDER BY l.asked_at = 0, l.asked_at, l.resume_at LIMIT ?`

// DueCalendarSyncs returns the accounts the sync of whose calendars should start
// now: those that it was asked for, and those where a calendar was left alone
// until now.
func (s *Store) DueCalendarSyncs(ctx context.Context) (accounts []string, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		accounts, err = x.ids(ctx, dueCalendars, x.now, DefaultPage)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list due calendar syncs: %w", err)
	}
	return accounts, nil
}

// StartCalendarSync asks for a sync of an account's calendars and starts it, under
// the next epoch where it ran before. Of one that is live already it is remembered
// that another was asked for, which begins at the latest after it; the job is then
// returned with started false, as is one that is paused. Calendars that were left
// alone for their troubles are tried again. The error is [jobs.ErrNotFound] when
// there is no such account.
func (s *Store) StartCalendarSync(ctx context.Context, email string) (job jobs.Job, started bool, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		account := normal(email)
		if err := x.askCalendars(ctx, account, false); err != nil {
			return err
		}
		if _, err := x.ExecContext(ctx, "UPDATE calendars SET next_try = 0 WHERE account = ?", account); err != nil {
			return err
		}
		if _, err := x.ExecContext(ctx, "UPDATE calendar_lists SET next_try = 0 WHERE account = ?", account); err != nil {
			return err
		}
		job, started, err = x.startCalendars(ctx, account)
		return err
	})
	if err != nil {
		return jobs.Job{}, false, fmt.Errorf("start calendar sync of %q: %w", email, err)
	}
	return job, started, nil
}

// StartDueCalendarSync starts one of [Store.DueCalendarSyncs], unless it was
// cancelled or blocked meanwhile.
func (s *Store) StartDueCalendarSync(ctx context.Context, account string) (job jobs.Job, started bool, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, jobs.CalendarID(account))
		if err == nil && (r.State == jobs.Cancelled || r.State == jobs.Blocked) {
			if l, err := x.calendarList(ctx, r.Account); err != nil || l.AskedAt.IsZero() {
				job = r.Job
				return err
			}
		}
		job, started, err = x.startCalendars(ctx, normal(account))
		return err
	})
	if err != nil {
		return jobs.Job{}, false, fmt.Errorf("start calendar sync of %q: %w", account, err)
	}
	return job, started, nil
}

// startCalendars starts the job that answers what was asked for, or that goes on
// with what was left. One that waits with nothing to do but whole calendars is
// woken, under the next epoch: the task that it waits in is void then.
func (x *tx) startCalendars(ctx context.Context, account string) (job jobs.Job, started bool, err error) {
	var project string
	if err := x.QueryRowContext(ctx, "SELECT project FROM accounts WHERE email = ?", account).Scan(&project); err != nil {
		return jobs.Job{}, false, fmt.Errorf("account: %w", notFound(err))
	}
	r, err := x.load(ctx, jobs.CalendarID(account))
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		r, err = x.insertJob(ctx, jobs.CalendarSync, jobs.CalendarID(account), account, project)
	case err != nil:
	case r.State == jobs.Paused:
		return r.Job, false, nil
	case r.State.Live():
		if wakes, err := x.exists(ctx, "SELECT 1 FROM calendar_lists AS l JOIN jobs AS j ON j.id = ? WHERE l.account = ? AND l.asked_at > 0 AND "+onlyWhole, r.ID, account); err != nil || !wakes {
			return r.Job, false, err
		}
		r.Wake()
		err = x.save(ctx, r)
	default:
		r.Restart(project, false)
		err = x.save(ctx, r)
	}
	if err != nil {
		return jobs.Job{}, false, err
	}
	_, err = x.beginRound(ctx, account)
	return r.Job, err == nil, err
}

// beginRound begins the round that was asked for, if one was, and else goes on
// with the last.
func (x *tx) beginRound(ctx context.Context, account string) (l jobs.CalendarList, err error) {
	if l, err = x.calendarList(ctx, account); err != nil {
		return l, err
	}
	if l.AskedAt.IsZero() && l.Round > 0 {
		_, err := x.ExecContext(ctx, "UPDATE calendar_lists SET resume_at = 0 WHERE account = ?", account)
		return l, err
	}
	if l.AskedAll {
		l.Stream.ReadAll()
		if err := x.saveListStream(ctx, l); err != nil {
			return l, err
		}
		_, err := x.ExecContext(ctx, `UPDATE calendars SET pass = ?, gen = gen + 1, page_token = '', pages = 0, restarts = 0, barren = 0
			WHERE account = ? AND pass = ''`, jobs.PassAsked, account)
		if err != nil {
			return l, err
		}
	}
	_, err = x.ExecContext(ctx, `UPDATE calendar_lists SET asked_at = 0, asked_all = FALSE, resume_at = 0, begun_at = ?, round = round + 1
		WHERE account = ?`, x.now, account)
	l.AskedAt, l.AskedAll, l.Listed, l.Round = time.Time{}, false, false, l.Round+1
	return l, err
}
