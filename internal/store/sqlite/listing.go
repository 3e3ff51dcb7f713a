package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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
		switch f := r.Filter; { // what the profile says of the part that is wanted
		case f.Whole():
			r.Progress.Expected = p.Messages
		case f.First > 0:
			r.Progress.Expected = min(f.First, p.Messages)
		}
		return x.pinCursor(ctx, r)
	})
	return err
}

// AddListed adds a page of the listing to the job: its ids, in order, and the
// place to go on from. Ids that were listed before are left as they are; those
// whose message is stored already need no work. Where the filter asks for so many
// messages only, the listing is cut behind the last of them, and goes on with the
// same page should some of them not count. A page that brought a new id is
// progress, so it ends a row of refusals and failures.
func (s *Store) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "add listed page", func(ctx context.Context, x *tx, r *row) error {
		before := r.Progress.Listed
		all, err := x.addItems(ctx, r, p)
		if err != nil {
			return err
		}
		if r.Progress.Listed > before {
			r.Progressed()
		}
		c := &r.Checkpoint
		if all {
			c.PageToken = p.Next
		}
		c.Cut = r.Room() == 0 && (!all || p.Next != "")
		c.Listed = c.Cut || p.Next == ""
		return nil
	})
}

// An item that was skipped in a run before has no place until it is listed again.
const insertItem = `INSERT INTO items (job, id, seq, state, thread) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (job, id) DO UPDATE SET seq = excluded.seq, thread = excluded.thread WHERE items.seq = 0 RETURNING state`

// addItems reports whether it added all of the ids that were not listed before.
func (x *tx) addItems(ctx context.Context, r *row, p jobs.Page) (all bool, err error) {
	for i, id := range p.IDs {
		if r.Room() == 0 {
			return false, nil
		}
		state, err := x.stateOf(ctx, r, id)
		if err != nil {
			return false, fmt.Errorf("list id %q: %w", id, err)
		}
		err = x.QueryRowContext(ctx, insertItem, r.num, id, r.Progress.Listed+1, state, threadOf(r, p, i)).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			continue // listed before
		}
		if err != nil {
			return false, fmt.Errorf("list id %q: %w", id, err)
		}
		r.Progress.Listed++
		switch state {
		case known:
			r.Progress.Known++
		case string(jobs.ItemSkipped):
			r.Progress.Skipped++
		}
	}
	return true, nil
}

// threadOf is the thread of a page's i-th id, where its job may bring whole
// threads: then it is worth its place in an index.
func threadOf(r *row, p jobs.Page, i int) string {
	if r.Filter.ByThread() && i < len(p.Threads) {
		return p.Threads[i]
	}
	return ""
}

// stateOf is the state in which an id comes on the list. One that is listed although
// its row is a tombstone is fetched: Google has the message, or says once more that
// it has not.
func (x *tx) stateOf(ctx context.Context, r *row, id string) (string, error) {
	var date, size int64
	err := x.QueryRowContext(ctx, "SELECT internal_date, size FROM messages WHERE account = ? AND id = ? AND "+bodied(r.Filter.Format),
		r.Account, id).Scan(&date, &size)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "pending", nil
	case err == nil && !r.Filter.Lets(fromMillis(date), size):
		return string(jobs.ItemSkipped), nil
	}
	return known, err
}

// RestartListing makes the listing start from the top, for when its page token
// no longer works, or behind before: then only what is older is listed from now
// on. The ids listed so far stay, and what was done of them.
func (s *Store) RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "restart listing", func(_ context.Context, _ *tx, r *row) error {
		r.Checkpoint.PageToken, r.Checkpoint.Listed, r.Checkpoint.Cut = "", false, false
		if !before.IsZero() {
			r.Checkpoint.Before = before.UTC()
		}
		return nil
	})
}
