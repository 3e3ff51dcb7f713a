package sqlite

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

// askJob are the columns of the job that decide about an ask. A sync that never ran
// has none.
const askJob = `COALESCE(j.id, ''), COALESCE(j.state, ''), COALESCE(j.wanted, ''), COALESCE(j.lease_until, 0), COALESCE(j.refusals, 0), COALESCE(j.failures, 0)`

func askJobFields(j *jobs.Job) []any {
	return []any{&j.ID, &j.State, &j.Wanted, millis{&j.LeaseUntil}, &j.Refusals, &j.Failures}
}

// jobOrNil is nil for a job that there is not.
func jobOrNil(j *jobs.Job) *jobs.Job {
	if j.ID == "" {
		return nil
	}
	return j
}

const (
	withSync   = "LEFT JOIN jobs AS j ON j.account = m.account AND j.kind = 'mail-sync' "
	selectMail = "SELECT FALSE, " + cursorColumns + ", " + askJob + " FROM mailboxes AS m " + withSync

	changesLeft   = `EXISTS (SELECT 1 FROM calendars AS c WHERE c.account = l.account AND c.round < l.round AND c.pass = '' AND c.state <> 'removed')`
	withCalendars = "LEFT JOIN jobs AS j ON j.account = l.account AND j.kind = 'calendar-sync' "
)

var selectCalendars = "SELECT " + changesLeft + ", " + listColumns + ", " + askJob + " FROM calendar_lists AS l " + withCalendars

func scanMail(scan func(...any) error, a *jobs.MailAsk) error {
	var history int64
	j := new(jobs.Job)
	err := scan(append(append([]any{&a.Crawled}, cursorFields(&a.Cursor, &history)...), askJobFields(j)...)...)
	a.Cursor.HistoryID, a.Job = uint64(history), jobOrNil(j)
	return err
}

func scanCalendars(scan func(...any) error, a *jobs.CalendarAsk) error {
	j := new(jobs.Job)
	err := scan(append(append([]any{&a.ChangesLeft}, listFields(&a.List)...), askJobFields(j)...)...)
	a.Job = jobOrNil(j)
	return err
}

// mailAsk reads what decides about the live sync of a mailbox, or fails with
// [jobs.ErrNoCursor]. Of the job it has only what decides.
func (x *tx) mailAsk(ctx context.Context, account string) (a jobs.MailAsk, err error) {
	err = scanMail(x.QueryRowContext(ctx, selectMail+"WHERE m.account = ? AND m.history_id <> 0", account).Scan, &a)
	return a, noCursor(err)
}

// calendarAsk reads what decides about the sync of an account's calendars, or fails
// with [jobs.ErrNotFound]. Of the job it has only what decides.
func (x *tx) calendarAsk(ctx context.Context, account string) (a jobs.CalendarAsk, err error) {
	err = scanCalendars(x.QueryRowContext(ctx, selectCalendars+"WHERE l.account = ?", account).Scan, &a)
	return a, notFound(err)
}

// calendarAskOrNew is calendarAsk, with a new list for an account that has none. The
// error is [jobs.ErrNotFound] when there is no such account.
func (x *tx) calendarAskOrNew(ctx context.Context, account string) (jobs.CalendarAsk, error) {
	a, err := x.calendarAsk(ctx, account)
	if !errors.Is(err, jobs.ErrNotFound) {
		return a, err
	}
	_, err = x.project(ctx, account)
	return jobs.CalendarAsk{List: jobs.NewCalendarList(account)}, err
}

// askMail asks for the live sync of a mailbox by [jobs.MailAsk.Ask]. It reports false
// for a mailbox without a cursor, too.
func (x *tx) askMail(ctx context.Context, account string) (bool, error) {
	return x.askMailBy(ctx, account, func(a *jobs.MailAsk) bool { return a.Ask(x.moment()) })
}

func (x *tx) askMailBy(ctx context.Context, account string, ask func(*jobs.MailAsk) bool) (bool, error) {
	a, err := x.mailAsk(ctx, account)
	if errors.Is(err, jobs.ErrNoCursor) {
		return false, nil
	}
	if err != nil || !ask(&a) {
		return false, err
	}
	return true, x.saveCursor(ctx, a.Cursor)
}

// askCalendars asks for the sync of calendars that were synced before, or are to be.
func (x *tx) askCalendars(ctx context.Context, account string, all bool) (bool, error) {
	a, err := x.calendarAsk(ctx, account)
	if errors.Is(err, jobs.ErrNotFound) {
		return false, nil
	}
	if err != nil || !a.Ask(x.moment(), all) {
		return false, err
	}
	return true, x.saveCalendarList(ctx, a.List)
}

// askWhole asks for the mailbox and the calendars to be read as a whole.
func (x *tx) askWhole(ctx context.Context, account string) (bool, error) {
	calendars, err := x.askCalendars(ctx, account, true)
	if err != nil {
		return false, err
	}
	mail, err := x.askMailBy(ctx, account, func(a *jobs.MailAsk) bool { return a.AskWhole(x.moment()) })
	return mail || calendars, err
}

// forgetAsk forgets what was asked of a sync.
func (x *tx) forgetAsk(ctx context.Context, r *row) error {
	switch r.Kind {
	case jobs.MailSync:
		c, err := x.cursor(ctx, r.Account)
		if errors.Is(err, jobs.ErrNoCursor) || err == nil && c.AskedAt.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		return x.saveCursor(ctx, c.Forget())
	case jobs.CalendarSync:
		l, err := x.calendarList(ctx, r.Account)
		if errors.Is(err, jobs.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		l.Forget()
		return x.saveCalendarList(ctx, l)
	}
	return nil
}

// AskCalendarSync asks for a sync of an account's calendars: the scheduler starts
// it within a second or two, or, if one is under way, another after it. All has it
// read everything again, and not only what changed. The error is [jobs.ErrNotFound]
// when there is no such account.
func (s *Store) AskCalendarSync(ctx context.Context, email string, all bool) error {
	err := s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		a, err := x.calendarAskOrNew(ctx, normal(email))
		if err != nil {
			return err
		}
		a.List.Ask(x.moment(), all)
		return x.saveCalendarList(ctx, a.List)
	})
	if err != nil {
		return fmt.Errorf("ask for a calendar sync of %q: %w", email, err)
	}
	return nil
}

// PushMail asks for a live sync because Gmail reported a change with a history id, by
// [jobs.MailAsk.Push].
func (s *Store) PushMail(ctx context.Context, email string, historyID uint64) (outcome jobs.PushOutcome, err error) {
	account := normal(email)
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		c, err := x.cursor(ctx, account)
		if errors.Is(err, jobs.ErrNoCursor) {
			outcome = jobs.PushUnknown
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.notePush(ctx, jobs.WatchKey{Account: account, Kind: jobs.WatchMail}); err != nil {
			return err
		}
		r, err := x.loadOrNil(ctx, jobs.SyncID(account))
		if err != nil {
			return err
		}
		a := jobs.MailAsk{Cursor: c, Job: r.job()}
		if outcome = a.Push(historyID, x.moment()); outcome != jobs.PushAsked {
			return nil
		}
		return x.saveAsk(ctx, a, r)
	})
	if err != nil {
		return "", fmt.Errorf("take a push for %q: %w", account, err)
	}
	return outcome, nil
}

// saveAsk saves a mailbox's ask, and the row of its job if that is under way.
func (x *tx) saveAsk(ctx context.Context, a jobs.MailAsk, r *row) error {
	if r != nil && r.State.Live() {
		if err := x.save(ctx, r); err != nil {
			return err
		}
	}
	return x.saveCursor(ctx, a.Cursor)
}

// notePush notes when Google last reported changes.
func (x *tx) notePush(ctx context.Context, k jobs.WatchKey) error {
	_, err := x.ExecContext(ctx, "UPDATE watches SET last_push_at = ? WHERE account = ? AND kind = ? AND calendar = ?",
		x.now, k.Account, k.Kind, k.Calendar)
	return err
}

// The queries of what may be due, each in the order in which it starts. They find
// rows by an index; whether one is due, jobs decides. There are fewer live backfills
// than mailboxes that were not read for an hour, so crawledSyncs avoids the index of
// begun_at.
const (
	askedSyncs   = selectMail + "WHERE m.asked_at > 0 AND m.history_id <> 0 ORDER BY m.asked_at"
	resumedSyncs = selectMail + "WHERE m.resume_at > 0 AND m.resume_at <= ? AND m.history_id <> 0 ORDER BY m.resume_at"
	crawledSyncs = "SELECT TRUE, " + cursorColumns + ", " + askJob + " FROM jobs AS b JOIN mailboxes AS m ON m.account = b.account " + withSync + `
		WHERE b.live AND b.kind = 'mail-backfill' AND m.asked_at = 0 AND m.begun_at + 0 <= ? AND m.history_id <> 0 ORDER BY m.begun_at + 0`
)

var (
	askedCalendars   = selectCalendars + "WHERE l.asked_at > 0 ORDER BY l.asked_at"
	resumedCalendars = selectCalendars + "WHERE l.resume_at > 0 AND l.resume_at <= ? ORDER BY l.resume_at"
)

// DueSyncs returns the accounts whose live sync should start now by
// [jobs.MailAsk.Due], in this order, at most [DefaultPage].
func (s *Store) DueSyncs(ctx context.Context) ([]string, error) {
	due, now := dueAccounts{seen: map[string]bool{}}, s.clock()
	add := func(a *jobs.MailAsk) bool { return due.add(a.Cursor.Account, a.Due(fromMillis(now))) }
	err := pollUntil(ctx, s, scanMail, add, askedSyncs)
	if err == nil {
		err = pollUntil(ctx, s, scanMail, add, crawledSyncs, now-jobs.CrawlAdvance.Milliseconds())
	}
	if err == nil {
		err = pollUntil(ctx, s, scanMail, add, resumedSyncs, now)
	}
	if err != nil {
		return nil, fmt.Errorf("list due syncs: %w", err)
	}
	return due.accounts, nil
}

// DueCalendarSyncs returns the accounts the sync of whose calendars should start now
// by [jobs.CalendarAsk.Due], in this order, at most [DefaultPage].
func (s *Store) DueCalendarSyncs(ctx context.Context) ([]string, error) {
	due, now := dueAccounts{seen: map[string]bool{}}, s.clock()
	add := func(a *jobs.CalendarAsk) bool { return due.add(a.List.Account, a.Due(fromMillis(now))) }
	err := pollUntil(ctx, s, scanCalendars, add, askedCalendars)
	if err == nil {
		err = pollUntil(ctx, s, scanCalendars, add, resumedCalendars, now)
	}
	if err != nil {
		return nil, fmt.Errorf("list due calendar syncs: %w", err)
	}
	return due.accounts, nil
}

// dueAccounts collects accounts, each once.
type dueAccounts struct {
	accounts []string
	seen     map[string]bool
}

// add takes an account that is due, and reports whether there is room for another.
func (d *dueAccounts) add(account string, reason jobs.DueReason) bool {
	if reason != jobs.NotDue && !d.seen[account] {
		d.seen[account] = true
		d.accounts = append(d.accounts, account)
	}
	return len(d.accounts) < DefaultPage
}
