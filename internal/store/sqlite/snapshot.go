package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"headroom/jobs"
)

// ExpireCursor says that the history cannot be read from a mailbox's cursor on, and
// returns the cursor, which says when the mailbox is read as a whole instead.
func (s *Store) ExpireCursor(ctx context.Context, ref jobs.TaskRef, reason jobs.ReconcileReason) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "expire cursor", func(x *tx, c jobs.Cursor) jobs.Cursor {
		return c.Expire(reason, x.moment())
	})
}

// BeginSnapshot begins the reading of the whole mailbox with what its profile says
// now. What an earlier snapshot has left must be dropped before.
func (s *Store) BeginSnapshot(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "begin a snapshot", func(_ *tx, c jobs.Cursor) jobs.Cursor { return c.BeginReading(p) })
}

// FailSnapshot says that a step of the reading failed.
func (s *Store) FailSnapshot(ctx context.Context, ref jobs.TaskRef, reason string) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "note a failure of the snapshot", func(x *tx, c jobs.Cursor) jobs.Cursor {
		c.Snapshot = c.Snapshot.Fail(clean(reason), x.moment())
		return c
	})
}

func (s *Store) moveCursor(ctx context.Context, ref jobs.TaskRef, verb string, move func(*tx, jobs.Cursor) jobs.Cursor) (c jobs.Cursor, err error) {
	_, err = s.owned(ctx, inLine, ref, verb, func(ctx context.Context, x *tx, r *row) (err error) {
		if c, err = x.cursor(ctx, r.Account); err != nil {
			return err
		}
		c = move(x, c)
		return x.saveCursor(ctx, c)
	})
	return c, err
}

// AddSnapshot adds a page of ids to the snapshot of the owner's mailbox, as having
// a label, or as being there where the label is empty; ids that are not known to
// be there have no labels. It moves the snapshot on to next.
func (s *Store) AddSnapshot(ctx context.Context, ref jobs.TaskRef, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, error) {
	_, err := s.owned(ctx, inLine, ref, "add to the snapshot", func(ctx context.Context, x *tx, r *row) error {
		for _, id := range ids {
			if label != "" {
				_, err := x.ExecContext(ctx, "UPDATE snapshots SET labels = labels || ? WHERE account = ? AND id = ?", label+"\n", r.Account, id)
				if err != nil {
					return err
				}
				continue
			}
			res, err := x.ExecContext(ctx, "INSERT INTO snapshots (account, id) VALUES (?, ?) ON CONFLICT (account, id) DO NOTHING", r.Account, id)
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			next.Seen += n
		}
		c, err := x.cursor(ctx, r.Account)
		if err != nil {
			return err
		}
		next = next.Progress()
		c.Snapshot = next
		r.Progressed()
		return x.saveCursor(ctx, c)
	})
	return next, err
}

// mergedAtOnce bounds how many rows one step of a snapshot's merge looks at.
const mergedAtOnce = 500

// MergeSnapshot does one step that needs no call of bringing a snapshot into the
// message rows: before it is listed, to lower the history ids of rows to its own; when
// it is complete, to write it down. A row that has become newer than the snapshot
// since it began stays as it is. Of the others, those listed get the labels that
// were, those not listed become tombstones, and what was not known becomes a stub
// whose body is to come. With the last step no snapshot is under way any more.
func (s *Store) MergeSnapshot(ctx context.Context, ref jobs.TaskRef) (c jobs.Cursor, err error) {
	_, err = s.owned(ctx, inLine, ref, "merge the snapshot", func(ctx context.Context, x *tx, r *row) error {
		if c, err = x.cursor(ctx, r.Account); err != nil {
			return err
		}
		m := &merger{tx: x, row: r, spamTrash: c.SpamTrash}
		switch phase := c.Snapshot.Phase; {
		case phase == jobs.SnapshotAge:
			c, err = m.age(ctx, c)
		case phase != jobs.SnapshotMerge && phase != jobs.SnapshotAbsent && phase != jobs.SnapshotClear:
			err = fmt.Errorf("the snapshot is not complete, but at %q", phase)
		case c.Snapshot.Short():
			err = fmt.Errorf("the listing held %d messages, the profile promised %d: that is too short to take the rest for deleted",
				c.Snapshot.Seen, c.Snapshot.Expected)
		case phase == jobs.SnapshotMerge:
			c.Snapshot, err = m.present(ctx, c.Snapshot)
		case phase == jobs.SnapshotAbsent:
			c.Snapshot, err = m.absent(ctx, c.Snapshot)
		default:
			c, err = m.clear(ctx, c)
		}
		if err != nil {
			return err
		}
		r.Progressed()
		return x.saveCursor(ctx, c)
	})
	return c, err
}

// age lowers the history ids of the next rows that have a higher one than was pinned.
// The snapshot is listed after that, so it is newer than all that they were told.
func (m *merger) age(ctx context.Context, c jobs.Cursor) (jobs.Cursor, error) {
	snap := &c.Snapshot
	ids, err := m.ids(ctx, "SELECT id FROM messages WHERE account = ? AND id > ? AND history_id > ? ORDER BY id LIMIT ?",
		m.row.Account, snap.After, int64(snap.HistoryID), mergedAtOnce)
	if err != nil {
		return c, err
	}
	for _, id := range ids {
		_, err := m.ExecContext(ctx, "UPDATE messages SET history_id = ? WHERE account = ? AND id = ?", int64(snap.HistoryID), m.row.Account, id)
		if err != nil {
			return c, err
		}
		snap.After = id
	}
	if len(ids) < mergedAtOnce {
		c = c.Aged()
	}
	return c, nil
}

// present brings the next ids that were listed into the rows.
func (m *merger) present(ctx context.Context, s jobs.Snapshot) (jobs.Snapshot, error) {
	labels, order, err := m.listed(ctx, s.After)
	if err != nil {
		return s, err
	}
	for _, id := range order {
		row, _, err := m.message(ctx, m.row.Account, id)
		if err != nil {
			return s, err
		}
		if row.Listed(s, labels[id], m.spamTrash) {
			if err := m.saveMessage(ctx, row); err != nil {
				return s, err
			}
		}
		s.After = id
	}
	if len(order) < mergedAtOnce {
		s.Phase, s.After = jobs.SnapshotAbsent, ""
	}
	return s, nil
}

func (m *merger) listed(ctx context.Context, after string) (labels map[string][]string, order []string, err error) {
	rows, err := m.QueryContext(ctx, "SELECT id, labels FROM snapshots WHERE account = ? AND id > ? ORDER BY id LIMIT ?",
		m.row.Account, after, mergedAtOnce)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	labels = map[string][]string{}
	for rows.Next() {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, nil, err
		}
		labels[id] = strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
		order = append(order, id)
	}
	return labels, order, rows.Err()
}

// absent makes tombstones of the next rows that were not listed.
func (m *merger) absent(ctx context.Context, s jobs.Snapshot) (jobs.Snapshot, error) {
	ids, err := m.ids(ctx, `SELECT id FROM messages AS m WHERE account = ? AND id > ? AND deleted_at = 0 AND history_id <= ?
		AND NOT EXISTS (SELECT 1 FROM snapshots AS s WHERE s.account = m.account AND s.id = m.id) ORDER BY id LIMIT ?`,
		m.row.Account, s.After, int64(s.HistoryID), mergedAtOnce)
	if err != nil {
		return s, err
	}
	for _, id := range ids {
		row, _, err := m.message(ctx, m.row.Account, id)
		if err != nil {
			return s, err
		}
		row.Absent(s, m.moment())
		if err := errors.Join(m.saveMessage(ctx, row), settleAll(ctx, m.tx, m.row, id, jobs.ItemGone)); err != nil {
			return s, err
		}
		s.After = id
	}
	if len(ids) < mergedAtOnce {
		s.Phase, s.After = jobs.SnapshotClear, ""
	}
	return s, nil
}

// clear drops what was listed, and with the last of it ends the snapshot.
func (m *merger) clear(ctx context.Context, c jobs.Cursor) (jobs.Cursor, error) {
	done, err := m.dropListed(ctx, m.row.Account)
	if err != nil || !done {
		return c, err
	}
	return c.Reconciled(fromMillis(m.now)), nil
}

// dropListed drops some of what a snapshot has listed, and reports whether that was
// the last.
func (x *tx) dropListed(ctx context.Context, account string) (done bool, err error) {
	res, err := x.ExecContext(ctx, `DELETE FROM snapshots WHERE account = ? AND id IN
		(SELECT id FROM snapshots WHERE account = ? LIMIT ?)`, account, account, clearAtOnce)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n < clearAtOnce, err
}

// DropSnapshot drops what a snapshot that is begun anew had listed. It is not done, and
// must be called again, while there is more of it.
func (s *Store) DropSnapshot(ctx context.Context, ref jobs.TaskRef) (done bool, err error) {
	_, err = s.owned(ctx, inLine, ref, "drop the snapshot", func(ctx context.Context, x *tx, r *row) (err error) {
		done, err = x.dropListed(ctx, r.Account)
		return err
	})
	return done, err
}
