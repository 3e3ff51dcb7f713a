package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"headroom/jobs"
)

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

// peek runs fn for the owner of a slice without writing anything.
func (s *Store) peek(ctx context.Context, ref jobs.TaskRef, fn func(*tx, *row) error) error {
	return s.read(ctx, func(x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		if err := r.OwnedBy(ref); err != nil {
			return err
		}
		return fn(x, r)
	})
}
