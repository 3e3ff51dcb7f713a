package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

const selectCursor = `SELECT account, history_id, spam_trash, asked_at, begun_at, synced_at, reconcile, reconciled_at, snapshot, format, reconcile_reason FROM mailboxes `

func scanCursor(scan func(...any) error, c *jobs.Cursor) error {
	var history int64
	err := scan(&c.Account, &history, &c.SpamTrash, millis{&c.AskedAt}, millis{&c.BegunAt}, millis{&c.SyncedAt},
		&c.Reconcile, millis{&c.ReconciledAt}, jsonText{&c.Snapshot}, &c.Format, &c.ReconcileReason)
	c.HistoryID = uint64(history)
	return err
}

// Cursor returns where the live sync of a mailbox stands, or [jobs.ErrNoCursor].
func (s *Store) Cursor(ctx context.Context, email string) (c jobs.Cursor, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		c, err = x.cursor(ctx, normal(email))
		return err
	})
	return c, err
}

func (x *tx) cursor(ctx context.Context, account string) (c jobs.Cursor, err error) {
	err = scanCursor(x.QueryRowContext(ctx, selectCursor+"WHERE account = ? AND history_id <> 0", account).Scan, &c)
	if err = notFound(err); errors.Is(err, jobs.ErrNotFound) {
		err = jobs.ErrNoCursor
	}
	if err != nil {
		return jobs.Cursor{}, fmt.Errorf("cursor of %s: %w", account, err)
	}
	return c, nil
}

// saveCursor writes how far the history was read, and the mailbox as a whole.
func (x *tx) saveCursor(ctx context.Context, c jobs.Cursor) error {
	text, err := json.Marshal(c.Snapshot)
	if err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	var resume time.Time
	if c.Snapshot.Phase != "" {
		resume = c.ReadingFrom()
	}
	_, err = x.ExecContext(ctx, `UPDATE mailboxes SET history_id = ?, reconcile = ?, reconcile_reason = ?, reconciled_at = ?, snapshot = ?, resume_at = ?
		WHERE account = ?`, int64(c.HistoryID), c.Reconcile, c.ReconcileReason, toMillis(c.ReconciledAt), string(text), toMillis(resume), c.Account)
	return err
}

// pinCursor gives a mailbox its cursor when the first backfill of the whole of it
// begins: from then on nothing that changes can be missed, also of what backfills
// of parts have stored before. A later backfill
// leaves the cursor; it may add spam and trash to what is wanted, and live sync
// brings bodies in its format from then on.
func (x *tx) pinCursor(ctx context.Context, r *row) error {
	if r.Kind != jobs.MailBackfill || !r.Filter.Whole() {
		return nil
	}
	pins, stored, err := x.pins(ctx, r)
	if err != nil {
		return fmt.Errorf("pin the cursor of %s: %w", r.Account, err)
	}
	snapshot, reason := "{}", jobs.ReconcileReason("")
	if jobs.RanBackwards(r.Checkpoint.HistoryID, pins, stored) {
		snapshot, reason = wholeAsked, jobs.HistoryBackwards
	}
	_, err = x.ExecContext(ctx, `INSERT INTO mailboxes (account, history_id, spam_trash, begun_at, format, snapshot, reconcile_reason)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (account) DO UPDATE SET spam_trash = mailboxes.spam_trash OR excluded.spam_trash, format = excluded.format,
			history_id = CASE WHEN mailboxes.history_id = 0 THEN excluded.history_id ELSE mailboxes.history_id END`,
		r.Account, int64(jobs.CursorStart(r.Checkpoint.HistoryID, pins, stored)), r.Filter.SpamTrash, x.now, r.Filter.Bodies(), snapshot, reason)
	if err != nil {
		return fmt.Errorf("pin the cursor of %s: %w", r.Account, err)
	}
	return nil
}

// pins returns where the other backfills of a job's account began, and whether any
// message of the account is stored.
func (x *tx) pins(ctx context.Context, r *row) (pins []jobs.Pin, stored bool, err error) {
	if stored, err = x.hasMessages(ctx, r.Account); err != nil {
		return nil, false, err
	}
	rows, err := x.QueryContext(ctx, "SELECT history_id, live OR state IN ('paused', 'blocked') FROM jobs WHERE account = ? AND kind = ? AND num <> ?",
		r.Account, jobs.MailBackfill, r.num)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var history int64
		var p jobs.Pin
		if err := rows.Scan(&history, &p.Live); err != nil {
			return nil, false, err
		}
		p.HistoryID = uint64(history)
		pins = append(pins, p)
	}
	return pins, stored, rows.Err()
}

// askSync asks for a sync once a backfill has come to its end, so that what
// changed during the crawl is there at once. A sync that somebody must start again
// goes on resting.
func (x *tx) askSync(ctx context.Context, r *row) error {
	if r.Kind != jobs.MailBackfill || (r.State != jobs.Completed && r.State != jobs.CompletedWithFailures) {
		return nil
	}
	_, err := x.askMailIf(ctx, r.Account)
	return err
}

// StartSync starts the live sync of a mailbox, under the next epoch where it ran
// before or waits for nothing but items that are tried again later. Of one that is
// live already otherwise it is remembered that another was asked for,
// which begins when the history was read or, at the latest, after it; the job is
// then returned with started false, as is one that is paused. The error is
// [jobs.ErrNotFound] when there is no such account and [jobs.ErrNoCursor] when
// no backfill of the whole mailbox has begun.
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
func (x *tx) startSync(ctx context.Context, email string, due bool) (job jobs.Job, started, done bool, err error) {
	var project string
	if err := x.QueryRowContext(ctx, "SELECT project FROM accounts WHERE email = ?", email).Scan(&project); err != nil {
		return jobs.Job{}, false, false, fmt.Errorf("account: %w", notFound(err))
	}
	c, err := x.cursor(ctx, email)
	if err != nil {
		return jobs.Job{}, false, false, err
	}
	r, err := x.load(ctx, jobs.SyncID(email))
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		r, err = x.insertJob(ctx, jobs.MailSync, jobs.SyncID(email), email, project)
	case err != nil:
	case r.State == jobs.Paused, due && r.State.Rests() && c.AskedAt.IsZero():
		return r.Job, false, true, nil
	case idle(r):
		r.Wake()
		err = x.save(ctx, r)
	case r.State.Live():
		return r.Job, false, true, x.remember(ctx, r)
	default:
		if done, err := x.clearDone(ctx, r); err != nil || !done {
			return jobs.Job{}, false, false, err
		}
		r.Restart(project, false)
		err = x.save(ctx, r)
	}
	if err != nil {
		return jobs.Job{}, false, false, err
	}
	if err := x.setFormat(ctx, r, c.Format); err != nil {
		return jobs.Job{}, false, false, err
	}
	_, err = x.ExecContext(ctx, "UPDATE mailboxes SET asked_at = 0, begun_at = ? WHERE account = ?", x.now, email)
	return r.Job, true, err == nil, err
}

// idle reports whether a sync waits for nothing but items that are tried again
// later. Whatever else is asked for need not wait with it. idleJob is the same of a
// row j.
func idle(r *row) bool {
	return r.State == jobs.Waiting && r.Wanted == "" && r.LeaseUntil.IsZero() && r.Refusals == 0 && r.Failures == 0
}

const idleJob = "(j.state = 'waiting' AND j.wanted = '' AND j.lease_until = 0 AND j.refusals = 0 AND j.failures = 0)"

// setFormat makes a sync bring bodies in a format.
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

// remember notes that a sync was asked for while one runs. The running one reads
// the history again in its next slice; if it has none, the scheduler starts
// another.
func (x *tx) remember(ctx context.Context, r *row) error {
	r.Checkpoint.Listed = false
	if err := x.save(ctx, r); err != nil {
		return err
	}
	_, err := x.ExecContext(ctx, "UPDATE mailboxes SET asked_at = ? WHERE account = ?", x.now, r.Account)
	return err
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

// crawlAdvance is how often the history is read while a backfill runs, however
// rarely it is otherwise: a cursor may grow too old within hours.
const crawlAdvance = time.Hour

// standsStill holds for a mailbox m whose history is too old to be read, if it was read
// as a whole less than a day ago: then a sync has nothing to do. Of a history that runs
// backwards that may have been one odd answer.
const standsStill = `m.reconcile AND m.reconcile_reason <> '` + string(jobs.HistoryBackwards) + `'
	AND m.snapshot NOT LIKE '%"gap":true%' AND m.snapshot NOT LIKE '%"asked":true%'`

// resumePause is how soon after the last a sync begins at the earliest because the
// reading of its whole mailbox may go on.
const resumePause = 3 * time.Second

// dueSyncs finds what was asked for by its index and what is crawled among the live
// jobs, so that a look costs what is due and not what there is.
const dueSyncs = `SELECT account FROM (
		SELECT m.account AS account, 0 AS after, m.asked_at AS since
		FROM mailboxes AS m LEFT JOIN jobs AS j ON j.id = 'sync:' || m.account
		WHERE m.asked_at > 0 AND m.history_id <> 0 AND (j.id IS NULL OR NOT j.live AND j.state <> 'paused' OR ` + idleJob + `)
		UNION ALL
		SELECT m.account, 1, m.begun_at
		FROM jobs AS b JOIN mailboxes AS m ON m.account = b.account LEFT JOIN jobs AS j ON j.id = 'sync:' || m.account
		WHERE b.live AND b.kind = 'mail-backfill' AND m.asked_at = 0 AND m.history_id <> 0 AND m.begun_at <= ?
			AND NOT (` + standsStill + ` AND m.reconciled_at > ?)
			AND (j.id IS NULL OR NOT j.live AND j.state NOT IN ('paused', 'blocked', 'cancelled'))
		UNION ALL
		SELECT m.account, 2, m.resume_at
		FROM mailboxes AS m JOIN jobs AS j ON j.id = 'sync:' || m.account
		WHERE m.resume_at > 0 AND m.begun_at <= ? AND m.resume_at <= ?
			AND (NOT j.live AND j.state NOT IN ('paused', 'blocked', 'cancelled') OR ` + idleJob + `)
	) AS due GROUP BY account ORDER BY MIN(after), MIN(since) LIMIT ?`

// DueSyncs returns the accounts whose live sync should start now: those that it
// was asked for, every hour those whose backfill runs, and those whose mailbox may go
// on to be read as a whole. Of all but the first, one
// whose account must act waits until it is asked for, and one whose history is too
// old again until it may be read as a whole.
func (s *Store) DueSyncs(ctx context.Context) (accounts []string, err error) {
	now := s.clock()
	accounts, err = poll(ctx, s, func(scan func(...any) error, account *string) error { return scan(account) },
		dueSyncs, now-crawlAdvance.Milliseconds(), now-jobs.ReconcileEvery.Milliseconds(),
		now-resumePause.Milliseconds(), now, DefaultPage)
	if err != nil {
		return nil, fmt.Errorf("list due syncs: %w", err)
	}
	return accounts, nil
}
