package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"headroom/jobs"
)

// ExpireCursor says that the history no longer reaches back to a mailbox's
// cursor, so that the mailbox must be read as a whole, and returns the cursor.
func (s *Store) ExpireCursor(ctx context.Context, ref jobs.TaskRef) (c jobs.Cursor, err error) {
	_, err = s.owned(ctx, inLine, ref, "expire cursor", func(ctx context.Context, x *tx, r *row) (err error) {
		if _, err = x.ExecContext(ctx, "UPDATE mailboxes SET reconcile = TRUE WHERE account = ?", r.Account); err != nil {
			return err
		}
		c, err = x.cursor(ctx, r.Account)
		return err
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
		r.Refusals, r.Failures = 0, 0
		return x.saveSnapshot(ctx, r, next)
	})
	return next, err
}

func (x *tx) saveSnapshot(ctx context.Context, r *row, next jobs.Snapshot) error {
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	_, err = x.ExecContext(ctx, "UPDATE mailboxes SET snapshot = ? WHERE account = ?", string(text), r.Account)
	return err
}

// mergedAtOnce bounds how many rows one step of a snapshot's merge looks at.
const mergedAtOnce = 500

// MergeSnapshot does one step of bringing a complete snapshot into the message
// rows, and returns how far it has come. A row that is newer than the snapshot's
// history id stays as it is. Of the others, those listed get the labels that
// were, those not listed become tombstones, and what was not known becomes a stub
// whose body is to come. With the last step the cursor is the snapshot's, and
// the zero snapshot is returned.
func (s *Store) MergeSnapshot(ctx context.Context, ref jobs.TaskRef) (next jobs.Snapshot, err error) {
	_, err = s.owned(ctx, inLine, ref, "merge the snapshot", func(ctx context.Context, x *tx, r *row) error {
		c, err := x.cursor(ctx, r.Account)
		if err != nil {
			return err
		}
		next = c.Snapshot
		if next.Short() {
			return errors.New("the listing is too short to be true; nothing is taken for deleted by it")
		}
		m := &merger{tx: x, row: r, spamTrash: c.SpamTrash}
		switch next.Phase {
		case jobs.SnapshotMerge:
			next, err = m.present(ctx, next)
		case jobs.SnapshotAbsent:
			next, err = m.absent(ctx, next)
		case jobs.SnapshotClear:
			next, err = m.clear(ctx, next)
		default:
			err = fmt.Errorf("the snapshot is not complete, but at %q", next.Phase)
		}
		if err != nil {
			return err
		}
		r.Refusals, r.Failures = 0, 0
		return x.saveSnapshot(ctx, r, next)
	})
	return next, err
}

// present brings the next ids that were listed into the rows.
func (m *merger) present(ctx context.Context, s jobs.Snapshot) (jobs.Snapshot, error) {
	labels, order, err := m.listed(ctx, s.After)
	if err != nil {
		return s, err
	}
	for _, id := range order {
		v, err := m.version(ctx, id)
		if err != nil {
			return s, err
		}
		if !v.found || v.history <= s.HistoryID {
			v.history, v.labels, v.deleted = s.HistoryID, labels[id], false
			slices.Sort(v.labels)
			v.labels = slices.Compact(v.labels) // a page may have come twice
			if err := m.saveVersion(ctx, id, &v); err != nil {
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
		v, err := m.version(ctx, id)
		if err != nil {
			return s, err
		}
		v.history, v.deleted = s.HistoryID, true
		if err := errors.Join(m.saveVersion(ctx, id, &v), settleAll(ctx, m.tx, m.row, id, jobs.ItemGone)); err != nil {
			return s, err
		}
		s.After = id
	}
	if len(ids) < mergedAtOnce {
		s.Phase, s.After = jobs.SnapshotClear, ""
	}
	return s, nil
}

// clear drops what was listed, and with the last of it moves the cursor.
func (m *merger) clear(ctx context.Context, s jobs.Snapshot) (jobs.Snapshot, error) {
	res, err := m.ExecContext(ctx, `DELETE FROM snapshots WHERE account = ? AND id IN
		(SELECT id FROM snapshots WHERE account = ? LIMIT ?)`, m.row.Account, m.row.Account, clearAtOnce)
	if err != nil {
		return s, err
	}
	if n, err := res.RowsAffected(); err != nil || n == clearAtOnce {
		return s, err
	}
	_, err = m.ExecContext(ctx, "UPDATE mailboxes SET history_id = ?, reconcile = FALSE, reconciled_at = ? WHERE account = ?",
		int64(s.HistoryID), m.now, m.row.Account)
	return jobs.Snapshot{}, err
}

// DropSnapshot forgets a snapshot that must begin again. It is not done, and
// must be called again, while there is more of it.
func (s *Store) DropSnapshot(ctx context.Context, ref jobs.TaskRef) (done bool, err error) {
	_, err = s.owned(ctx, inLine, ref, "drop the snapshot", func(ctx context.Context, x *tx, r *row) error {
		res, err := x.ExecContext(ctx, `DELETE FROM snapshots WHERE account = ? AND id IN
			(SELECT id FROM snapshots WHERE account = ? LIMIT ?)`, r.Account, r.Account, clearAtOnce)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if done = n < clearAtOnce; err != nil || !done {
			return err
		}
		return x.saveSnapshot(ctx, r, jobs.Snapshot{})
	})
	return done, err
}
