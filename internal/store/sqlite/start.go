package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"headroom/jobs"
)

// StartSync starts the live sync of a mailbox by [jobs.MailAsk.Start]. Started is
// false for one that is paused, and for one that is under way: then another is
// asked for. The error is [jobs.ErrNotFound] when there is no such account and
// [jobs.ErrNoCursor] when no backfill of the whole mailbox has begun.
func (s *Store) StartSync(ctx context.Context, email string) (job jobs.Job, started bool, err error) {
	return s.startSync(ctx, email, false)
}

// StartDueSync starts one of [Store.DueSyncs], as [Store.StartSync] does, unless it
// was cancelled or blocked meanwhile.
func (s *Store) StartDueSync(ctx context.Context, account string) (job jobs.Job, started bool, err error) {
	return s.startSync(ctx, account, true)
}

func (s *Store) startSync(ctx context.Context, email string, due bool) (job jobs.Job, started bool, err error) {
	for done := false; !done; {
		err := s.line.do(ctx, ahead, func(ctx context.Context, x *tx) (err error) {
			job, started, done, err = x.startSync(ctx, normal(email), due)
			return err
		})
		if err != nil {
			return jobs.Job{}, false, fmt.Errorf("start sync of %q: %w", email, err)
		}
	}
	return job, started, nil
}

// startSync is one step of [Store.StartSync]; it is not done while there are
// items of earlier runs left to clear.
func (x *tx) startSync(ctx context.Context, account string, due bool) (job jobs.Job, started, done bool, err error) {
	project, err := x.project(ctx, account)
	if err != nil {
		return jobs.Job{}, false, false, err
	}
	c, err := x.cursor(ctx, account)
	if err != nil {
		return jobs.Job{}, false, false, err
	}
	r, err := x.loadOrNil(ctx, jobs.SyncID(account))
	if err != nil {
		return jobs.Job{}, false, false, err
	}
	a := jobs.MailAsk{Cursor: c, Job: r.job()}
	how := a.Start(due)
	switch how {
	case jobs.StartNothing:
		return r.Job, false, true, nil
	case jobs.StartLater:
		a.Again(x.moment())
		err := x.saveAsk(ctx, a, r)
		return r.Job, false, true, err
	case jobs.StartOver:
		if done, err := x.clearDone(ctx, r); err != nil || !done {
			return jobs.Job{}, false, false, err
		}
	}
	if r, err = x.start(ctx, r, how, jobs.MailSync, jobs.SyncID(account), account, project); err != nil {
		return jobs.Job{}, false, false, err
	}
	if err := x.setFormat(ctx, r, c.Format); err != nil {
		return jobs.Job{}, false, false, err
	}
	return r.Job, true, true, x.saveCursor(ctx, c.BeginSync(x.moment()))
}

// start makes a sync's job queued in one of the ways that begin a run.
func (x *tx) start(ctx context.Context, r *row, how jobs.SyncStart, kind jobs.Kind, id, account, project string) (*row, error) {
	switch how {
	case jobs.StartFirst:
		return x.insertJob(ctx, kind, id, account, project)
	case jobs.StartAtOnce:
		r.Wake()
	default:
		r.Restart(project, false)
	}
	return r, x.save(ctx, r)
}

// setFormat makes a sync fetch bodies in a format.
func (x *tx) setFormat(ctx context.Context, r *row, f jobs.Format) error {
	r.Filter = jobs.Filter{Format: f}
	text, err := json.Marshal(r.Filter)
	if err != nil {
		return fmt.Errorf("encode filter: %w", err)
	}
	_, err = x.ExecContext(ctx, "UPDATE jobs SET filter = ? WHERE num = ?", string(text), r.num)
	return err
}

func (x *tx) insertJob(ctx context.Context, kind jobs.Kind, id, email, project string) (*row, error) {
	_, err := x.ExecContext(ctx, `INSERT INTO jobs (id, kind, account, project, state, live, epoch, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, TRUE, 1, ?, ?)`, id, kind, email, project, jobs.Queued, x.now, x.now)
	if err != nil {
		return nil, fmt.Errorf("insert job %q: %w", id, err)
	}
	return x.load(ctx, id)
}

// clearDone drops the items that earlier runs are done with. Those that were
// given up stay in the failure list, and those that are pending go on.
func (x *tx) clearDone(ctx context.Context, r *row) (done bool, err error) {
	res, err := x.ExecContext(ctx, `DELETE FROM items WHERE job = ? AND id IN
		(SELECT id FROM items WHERE job = ? AND state NOT IN ('pending', 'failed') LIMIT ?)`, r.num, r.num, clearAtOnce)
	if err != nil {
		return false, fmt.Errorf("clear items: %w", err)
	}
	n, err := res.RowsAffected()
	return n < clearAtOnce, err
}

// StartCalendarSync asks for a sync of an account's calendars and starts it by
// [jobs.CalendarAsk.Start]. Started is false for one that is paused, and for one that
// is under way, which another follows. Calendars that were left alone for their
// troubles are tried again. The error is [jobs.ErrNotFound] when there is no such
// account.
func (s *Store) StartCalendarSync(ctx context.Context, email string) (job jobs.Job, started bool, err error) {
	return s.startCalendars(ctx, email, func(ctx context.Context, x *tx, account string) (jobs.CalendarAsk, error) {
		a, err := x.calendarAskOrNew(ctx, account)
		if err != nil {
			return a, err
		}
		a.List.Ask(x.moment(), false)
		a.List.Stream.TryNow()
		if err := x.saveCalendarList(ctx, a.List); err != nil {
			return a, err
		}
		return a, x.changeCalendars(ctx, account, func(c *jobs.Calendar) { c.Stream.TryNow() })
	}, false)
}

// StartDueCalendarSync starts one of [Store.DueCalendarSyncs], unless it was
// cancelled or blocked meanwhile.
func (s *Store) StartDueCalendarSync(ctx context.Context, account string) (job jobs.Job, started bool, err error) {
	return s.startCalendars(ctx, account, func(ctx context.Context, x *tx, account string) (jobs.CalendarAsk, error) {
		return x.calendarAsk(ctx, account)
	}, true)
}

func (s *Store) startCalendars(ctx context.Context, email string, load func(context.Context, *tx, string) (jobs.CalendarAsk, error),
	due bool) (job jobs.Job, started bool, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		account := normal(email)
		project, err := x.project(ctx, account)
		if err != nil {
			return err
		}
		a, err := load(ctx, x, account)
		if err != nil {
			return err
		}
		r, err := x.loadOrNil(ctx, jobs.CalendarID(account))
		if err != nil {
			return err
		}
		a.Job = r.job()
		how := a.Start(due)
		if how == jobs.StartNothing || how == jobs.StartLater {
			job = r.Job
			return nil
		}
		if r, err = x.start(ctx, r, how, jobs.CalendarSync, jobs.CalendarID(account), account, project); err != nil {
			return err
		}
		job, started = r.Job, true
		return x.beginRound(ctx, &a.List)
	})
	if err != nil {
		return jobs.Job{}, false, fmt.Errorf("start calendar sync of %q: %w", email, err)
	}
	return job, started, nil
}

// beginRound begins a round by [jobs.CalendarList.BeginRound].
func (x *tx) beginRound(ctx context.Context, l *jobs.CalendarList) error {
	all := l.BeginRound(x.moment())
	if err := x.saveCalendarList(ctx, *l); err != nil || !all {
		return err
	}
	return x.changeCalendars(ctx, l.Account, func(c *jobs.Calendar) { c.Stream.ReadAll() })
}

// loadOrNil is load, with nil for a job that there is not.
func (x *tx) loadOrNil(ctx context.Context, id string) (*row, error) {
	r, err := x.load(ctx, id)
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// project is the project of an account, or [jobs.ErrNotFound].
func (x *tx) project(ctx context.Context, account string) (project string, err error) {
	if err := x.QueryRowContext(ctx, "SELECT project FROM accounts WHERE email = ?", account).Scan(&project); err != nil {
		return "", fmt.Errorf("account: %w", notFound(err))
	}
	return project, nil
}
