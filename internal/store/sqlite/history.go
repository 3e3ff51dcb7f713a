package sqlite

import (
	"context"
	"fmt"
	"slices"

	"headroom/jobs"
)

// BeginSync says that the owner of a sync is about to read the history, which
// answers whatever sync was asked for before, and returns the cursor to begin at.
func (s *Store) BeginSync(ctx context.Context, ref jobs.TaskRef) (c jobs.Cursor, err error) {
	_, err = s.owned(ctx, ahead, ref, "begin sync", func(ctx context.Context, x *tx, r *row) (err error) {
		if c, err = x.cursor(ctx, r.Account); err != nil {
			return err
		}
		return x.saveCursor(ctx, c.BeginSync(x.moment()))
	})
	return c, err
}

// ApplyHistory writes a page of the history to the rows that it tells of, and
// moves the cursor behind it, in one transaction. A change that a row has seen
// already leaves it as it is. Of a message that is not stored yet a stub keeps
// what the change says until the body comes; a message that was added is put on
// the job's own list, to be fetched, and one that was deleted is taken off every
// list. A page that worked ends the need to reconcile, unless the cursor has left a
// gap behind it.
func (s *Store) ApplyHistory(ctx context.Context, ref jobs.TaskRef, page jobs.HistoryPage) (jobs.Job, error) {
	return s.owned(ctx, inLine, ref, "apply history", func(ctx context.Context, x *tx, r *row) error {
		c, err := x.cursor(ctx, r.Account)
		if err != nil {
			return err
		}
		m := &merger{tx: x, row: r, spamTrash: c.SpamTrash}
		at := c.HistoryID
		for _, record := range page.Records {
			if err := m.record(ctx, record); err != nil {
				return fmt.Errorf("history record %d: %w", record.ID, err)
			}
			at = max(at, record.ID)
		}
		if page.Next == "" {
			at = max(at, page.HistoryID)
		}
		if at > c.HistoryID {
			r.Progressed()
		}
		c = c.Recover()
		c.HistoryID = at
		return x.saveCursor(ctx, c)
	})
}

// wantedAtOnce bounds how many missing bodies one transaction puts on the list.
const wantedAtOnce = 500

// EndSync says that the history was read to its end. The job is not done with while
// the mailbox is to be read as a whole besides. Once a backfill of the
// whole mailbox is complete, the bodies that nothing else will bring are put on
// the job's list; it is not done, and must be called again, while there are more
// of these.
func (s *Store) EndSync(ctx context.Context, ref jobs.TaskRef) (job jobs.Job, done bool, err error) {
	job, err = s.owned(ctx, inLine, ref, "end sync", func(ctx context.Context, x *tx, r *row) error {
		ids, err := x.missing(ctx, r)
		if err != nil {
			return err
		}
		if _, err := r.AddItems(jobs.Page{IDs: ids}, x.addItem(ctx, r)); err != nil {
			return err
		}
		if done = len(ids) < wantedAtOnce; !done {
			return nil
		}
		c, err := x.cursor(ctx, r.Account)
		if err != nil {
			return err
		}
		r.Checkpoint.Listed = !c.Due(x.moment())
		c.SyncedAt = x.moment()
		return x.saveCursor(ctx, c)
	})
	return job, done, err
}

// missing returns ids of stubs that are on no list of the job's, unless a
// backfill is there to fetch them.
func (x *tx) missing(ctx context.Context, r *row) ([]string, error) {
	backfills, err := rows(ctx, x, scanJob, selectJob+"WHERE account = ? AND kind = ?", r.Account, jobs.MailBackfill)
	if err != nil {
		return nil, err
	}
	complete := func(j jobs.Job) bool { return j.Filter.Whole() && j.AsksSync() }
	if !slices.ContainsFunc(backfills, complete) {
		return nil, nil
	}
	return x.ids(ctx, `SELECT id FROM messages AS m WHERE account = ? AND stub = 2
		AND NOT EXISTS (SELECT 1 FROM items WHERE job = ? AND items.id = m.id) LIMIT ?`, r.Account, r.num, wantedAtOnce)
}

// ids reads the rows of a query for ids.
func (x *tx) ids(ctx context.Context, query string, args ...any) ([]string, error) {
	return rows(ctx, x, func(scan func(...any) error, id *string) error { return scan(id) }, query, args...)
}

// merger writes what a mailbox's history says to the message rows.
type merger struct {
	*tx
	row       *row
	spamTrash bool // bodies of spam and trash are wanted
}

// record applies one record, message by message.
func (m *merger) record(ctx context.Context, record jobs.HistoryRecord) error {
	var order []string
	changes := map[string][]jobs.Change{}
	for _, c := range record.Changes {
		if changes[c.ID] == nil {
			order = append(order, c.ID)
		}
		changes[c.ID] = append(changes[c.ID], c)
	}
	for _, id := range order {
		if err := m.change(ctx, record.ID, id, changes[id]); err != nil {
			return fmt.Errorf("message %q: %w", id, err)
		}
	}
	return nil
}

// change applies what one record says of one message.
func (m *merger) change(ctx context.Context, record uint64, id string, changes []jobs.Change) error {
	row, _, err := m.message(ctx, m.row.Account, id)
	if err != nil {
		return err
	}
	added, ok := row.Change(record, changes, m.spamTrash, m.moment())
	if !ok {
		return nil
	}
	if err := m.saveMessage(ctx, row); err != nil {
		return err
	}
	switch {
	case !row.DeletedAt.IsZero():
		return settleAll(ctx, m.tx, m.row, id, jobs.ItemGone)
	case added:
		_, err := m.row.AddItems(jobs.Page{IDs: []string{id}}, m.addItem(ctx, m.row))
		return err
	}
	return nil
}

// settleAll gives a message's items that nobody is done with, of whichever job of the account, an
// outcome that the work on r has found out: nobody needs to fetch them any more.
//
// A body counts only for jobs that bring the same.
func settleAll(ctx context.Context, x *tx, r *row, id string, outcome jobs.Outcome) error {
	settled, err := rows(ctx, x, func(scan func(...any) error, num *int64) error { return scan(num) },
		`UPDATE items SET state = ?, not_before = 0 WHERE id = ? AND state IN ('pending', 'noted')
		AND job IN (SELECT num FROM jobs WHERE account = ? AND (? OR (format = 'full') = ?)) RETURNING job`,
		outcome, id, r.Account, outcome == jobs.ItemGone, r.Filter.Format == jobs.FormatFull)
	if err != nil {
		return err
	}
	column, own := "known", &r.Progress.Known
	if outcome == jobs.ItemGone {
		column, own = "gone", &r.Progress.Gone
	}
	for _, num := range settled {
		if num == r.num {
			*own++ // saved with the row
		} else if _, err := x.ExecContext(ctx, "UPDATE jobs SET "+column+" = "+column+" + 1 WHERE num = ?", num); err != nil {
			return err
		}
		if _, err := x.ExecContext(ctx, "DELETE FROM failures WHERE job = ? AND id = ?", num, id); err != nil {
			return err
		}
	}
	return nil
}
