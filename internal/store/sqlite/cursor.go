package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

const (
	cursorColumns = `m.account, m.history_id, m.spam_trash, m.asked_at, m.begun_at, m.synced_at, m.reconcile, m.reconciled_at, m.snapshot, m.format, m.reconcile_reason`
	selectCursor  = "SELECT " + cursorColumns + " FROM mailboxes AS m WHERE m.account = ? AND m.history_id <> 0"
)

// cursorFields are what cursorColumns are scanned into. The history id comes
// separately: the database has signed numbers only.
func cursorFields(c *jobs.Cursor, history *int64) []any {
	return []any{&c.Account, history, &c.SpamTrash, millis{&c.AskedAt}, millis{&c.BegunAt}, millis{&c.SyncedAt},
		&c.Reconcile, millis{&c.ReconciledAt}, jsonText{&c.Snapshot}, &c.Format, &c.ReconcileReason}
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
	var history int64
	err = x.QueryRowContext(ctx, selectCursor, account).Scan(cursorFields(&c, &history)...)
	if err != nil {
		return jobs.Cursor{}, fmt.Errorf("cursor of %s: %w", account, noCursor(err))
	}
	c.HistoryID = uint64(history)
	return c, nil
}

func noCursor(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.ErrNoCursor
	}
	return err
}

const upsertCursor = `INSERT INTO mailboxes (account, history_id, spam_trash, asked_at, begun_at, synced_at, reconcile, reconciled_at,
		snapshot, format, reconcile_reason, resume_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (account) DO UPDATE SET history_id = excluded.history_id, spam_trash = excluded.spam_trash, asked_at = excluded.asked_at,
		begun_at = excluded.begun_at, synced_at = excluded.synced_at, reconcile = excluded.reconcile, reconciled_at = excluded.reconciled_at,
		snapshot = excluded.snapshot, format = excluded.format, reconcile_reason = excluded.reconcile_reason, resume_at = excluded.resume_at`

// saveCursor writes a cursor as it is.
func (x *tx) saveCursor(ctx context.Context, c jobs.Cursor) error {
	text, err := json.Marshal(c.Snapshot)
	if err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	var resume time.Time // by which the index finds it
	if c.Snapshot.Phase != "" {
		resume = c.ReadingFrom()
	}
	_, err = x.ExecContext(ctx, upsertCursor, c.Account, int64(c.HistoryID), c.SpamTrash, toMillis(c.AskedAt), toMillis(c.BegunAt),
		toMillis(c.SyncedAt), c.Reconcile, toMillis(c.ReconciledAt), string(text), c.Format, c.ReconcileReason, toMillis(resume))
	if err != nil {
		return fmt.Errorf("save the cursor of %s: %w", c.Account, err)
	}
	return nil
}

// pinCursor gives a mailbox its cursor when the first backfill of the whole of it
// begins: from then on no change is missed, nor are changes of what backfills of
// parts stored before. A later backfill changes only what live sync fetches.
func (x *tx) pinCursor(ctx context.Context, r *row) error {
	if r.Kind != jobs.MailBackfill || !r.Filter.Whole() {
		return nil
	}
	c, err := x.cursor(ctx, r.Account)
	switch {
	case err == nil:
		c = c.Fetch(r.Filter)
	case errors.Is(err, jobs.ErrNoCursor):
		pins, stored, err := x.pins(ctx, r)
		if err != nil {
			return fmt.Errorf("pin the cursor of %s: %w", r.Account, err)
		}
		c = jobs.NewCursor(r.Job, pins, stored, x.moment())
	default:
		return err
	}
	return x.saveCursor(ctx, c)
}

// pins returns where the other backfills of a job's account began, and whether any
// message of the account is stored.
func (x *tx) pins(ctx context.Context, r *row) (pins []jobs.Pin, stored bool, err error) {
	if stored, err = x.hasMessages(ctx, r.Account); err != nil {
		return nil, false, err
	}
	pins, err = rows(ctx, x, func(scan func(...any) error, p *jobs.Pin) error {
		var history int64
		var state jobs.State
		err := scan(&history, &state)
		*p = jobs.Pin{HistoryID: uint64(history), Live: state.StoresYet()}
		return err
	}, "SELECT history_id, state FROM jobs WHERE account = ? AND kind = ? AND num <> ?", r.Account, jobs.MailBackfill, r.num)
	return pins, stored, err
}
