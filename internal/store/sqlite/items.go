package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// SaveProfile records what the mailbox says of itself. The history id is pinned
// by the first call of a run; later ones leave it. For the whole of a mailbox it
// is where live sync begins, too.
func (s *Store) SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error {
	_, err := s.owned(ctx, inLine, ref, "save profile", func(ctx context.Context, x *tx, r *row) error {
		r.TakeProfile(p)
		return x.pinCursor(ctx, r)
	})
	return err
}

// AddListed adds a page of the listing to the job by [jobs.Job.ListPage].
func (s *Store) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "add listed page", func(ctx context.Context, x *tx, r *row) error {
		return r.ListPage(p, x.addItem(ctx, r))
	})
}

// An item that was skipped in a run before has no place until it is listed again.
const insertItem = `INSERT INTO items (job, id, seq, state, thread) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (job, id) DO UPDATE SET seq = excluded.seq, thread = excluded.thread WHERE items.seq = 0 RETURNING state`

// addItem puts single ids on the list of a job, for [jobs.Job.AddItems].
func (x *tx) addItem(ctx context.Context, r *row) func(id, thread string, seq int64) (jobs.Outcome, bool, error) {
	return func(id, thread string, seq int64) (state jobs.Outcome, fresh bool, err error) {
		m, _, err := x.message(ctx, r.Account, id)
		if err != nil {
			return "", false, err
		}
		err = x.QueryRowContext(ctx, insertItem, r.num, id, seq, m.ListedFor(r.Filter), thread).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			return "", false, nil // listed before
		}
		return state, err == nil, err
	}
}

// RestartListing makes the listing start again by [jobs.Job.RestartListing], for when
// its page token no longer works.
func (s *Store) RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "restart listing", func(_ context.Context, _ *tx, r *row) error {
		r.RestartListing(before)
		return nil
	})
}

// Fresh items and deferred ones are two ranges of one index, so neither the
// items that are done nor those deferred to a later moment cost anything.
const nextItems = `SELECT pending.seq, pending.id, attempts, noted, thread, COALESCE(m.size, 0) FROM (
	SELECT * FROM (SELECT seq, id, attempts, noted, thread FROM items
		WHERE job = ? AND state = 'pending' AND not_before = 0 AND seq > ? ORDER BY seq LIMIT ?) AS fresh
	UNION ALL
	SELECT * FROM (SELECT seq, id, attempts, noted, thread FROM items
		WHERE job = ? AND state = 'pending' AND not_before > 0 AND not_before <= ? AND seq > ? ORDER BY seq LIMIT ?) AS due
) AS pending LEFT JOIN messages AS m ON m.account = ? AND m.id = pending.id ORDER BY pending.seq LIMIT ?`

// NextItems returns at most limit items that are pending and due, in the order
// of their listing, from those after place afterSeq. It is for the owner of the
// slice, and fails with [jobs.ErrStale] for anybody else.
func (s *Store) NextItems(ctx context.Context, ref jobs.TaskRef, afterSeq int64, limit int) ([]jobs.Item, error) {
	limit = page(limit)
	var items []jobs.Item
	err := s.peek(ctx, ref, func(x *tx, r *row) (err error) {
		items, err = x.items(ctx, nextItems, r.num, afterSeq, limit, r.num, x.now, afterSeq, limit, r.Account, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("next items of %s after %d: %w", ref.TaskID(), afterSeq, err)
	}
	return items, nil
}

// The range and the sum keep the planner to the index of threads.
const threadItems = `SELECT seq, i.id, attempts, noted, thread, COALESCE(m.size, 0) FROM items AS i
	LEFT JOIN messages AS m ON m.account = ? AND m.id = i.id
	WHERE job = ? AND thread BETWEEN ? AND ? AND thread <> '' AND state = 'pending' AND not_before + 0 = 0 AND NOT noted ORDER BY seq LIMIT ?`

// ThreadItems returns the pending items of a thread that nobody has tried or noted
// yet, at most limit, in the order of their listing. Like [Store.NextItems], it is
// for the owner of the slice.
func (s *Store) ThreadItems(ctx context.Context, ref jobs.TaskRef, thread string, limit int) ([]jobs.Item, error) {
	var items []jobs.Item
	err := s.peek(ctx, ref, func(x *tx, r *row) (err error) {
		items, err = x.items(ctx, threadItems, r.Account, r.num, thread, thread, page(limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("items of %s in thread %q: %w", ref.TaskID(), thread, err)
	}
	return items, nil
}

func (x *tx) items(ctx context.Context, query string, args ...any) ([]jobs.Item, error) {
	rows, err := x.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []jobs.Item
	for rows.Next() {
		var it jobs.Item
		if err := rows.Scan(&it.Seq, &it.ID, &it.Attempts, &it.Noted, &it.Thread, &it.Size); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, rows.Err()
}

const nextDue = "SELECT MIN(not_before) FROM items WHERE job = ? AND state = 'pending'"

// NextDue returns the earliest moment, on the caller's clock, at which a
// pending item is due; a moment that has passed means now. It is zero when no
// item is pending. Like [Store.NextItems], it is for the owner of the slice.
func (s *Store) NextDue(ctx context.Context, ref jobs.TaskRef) (time.Time, error) {
	var due time.Time
	err := s.peek(ctx, ref, func(x *tx, r *row) error {
		var at sql.NullInt64
		err := x.QueryRowContext(ctx, nextDue, r.num).Scan(&at)
		if err != nil || !at.Valid {
			return err
		}
		wait := max(at.Int64-x.now, 0)
		due = time.Now().Add(time.Duration(wait) * time.Millisecond)
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("next due item of %s: %w", ref.TaskID(), err)
	}
	return due, nil
}

// notedAtOnce bounds how many noted items become pending in one transaction.
const notedAtOnce = 2_000

const nextPass = `UPDATE items SET state = 'pending', attempts = 0, not_before = 0 WHERE job = ? AND id IN
	(SELECT id FROM items WHERE job = ? AND state = 'noted' ORDER BY seq LIMIT ?)`

// NextPass makes the next of the noted items pending, for their bodies to be
// brought, and reports whether there were any.
func (s *Store) NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error) {
	_, err = s.owned(ctx, inLine, ref, "begin the next pass", func(ctx context.Context, x *tx, r *row) error {
		res, err := x.ExecContext(ctx, nextPass, r.num, r.num, notedAtOnce)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		more = n > 0
		return err
	})
	return more, err
}
