package sqlite

import (
	"context"
	"database/sql"
	"errors"
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
