package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"headroom/jobs"
)

// Items are pending until they have one of the outcomes, or this state: stored
// before, by another run or by live sync.
const known = "known"

// SaveProfile records what the mailbox says of itself. The history id is pinned
// by the first call of a run; later ones leave it. For the whole of a mailbox it
// is where live sync begins, too.
func (s *Store) SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error {
	_, err := s.owned(ctx, inLine, ref, "save profile", func(ctx context.Context, x *tx, r *row) error {
		if r.Checkpoint.HistoryID == 0 {
			r.Checkpoint.HistoryID = p.HistoryID
		}
		r.Progress.Expected = p.Messages
		return x.pinCursor(ctx, r)
	})
	return err
}

// AddListed adds a page of the listing to the job: its ids, in order, and the
// place to go on from. Ids that were listed before are left as they are; those
// whose message is stored already are known, and need no work. A page that
// brought a new id is progress, so it ends a row of refusals and failures.
func (s *Store) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "add listed page", func(ctx context.Context, x *tx, r *row) error {
		before := r.Progress.Listed
		if err := x.addItems(ctx, r, p.IDs); err != nil {
			return err
		}
		if r.Progress.Listed > before {
			r.Refusals, r.Failures = 0, 0
		}
		r.Checkpoint.PageToken = p.Next
		r.Checkpoint.Listed = p.Next == ""
		return nil
	})
}

const insertItem = `INSERT INTO items (job, id, seq, state) VALUES (?, ?, ?,
		CASE WHEN EXISTS (SELECT 1 FROM messages WHERE account = ? AND id = ? AND sha256 <> '') THEN 'known' ELSE 'pending' END)
	ON CONFLICT (job, id) DO NOTHING RETURNING state`

func (x *tx) addItems(ctx context.Context, r *row, ids []string) error {
	for _, id := range ids {
		var state string
		err := x.QueryRowContext(ctx, insertItem, r.num, id, r.Progress.Listed+1, r.Account, id).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			continue // listed before
		}
		if err != nil {
			return fmt.Errorf("list id %q: %w", id, err)
		}
		r.Progress.Listed++
		if state == known {
			r.Progress.Known++
		}
	}
	return nil
}

// RestartListing makes the listing start from the top, for when its page token
// no longer works. The ids listed so far stay, and what was done of them.
func (s *Store) RestartListing(ctx context.Context, ref jobs.TaskRef) error {
	_, err := s.owned(ctx, inLine, ref, "restart listing", func(_ context.Context, _ *tx, r *row) error {
		r.Checkpoint.PageToken, r.Checkpoint.Listed = "", false
		return nil
	})
	return err
}
