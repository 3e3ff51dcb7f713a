package memstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// pinCursor gives a mailbox its cursor when the first backfill of the whole of it begins.
func (s *Store) pinCursor(j *job, a *account, now time.Time) {
	if j.Kind != jobs.MailBackfill || !j.Filter.Whole() {
		return
	}
	var c jobs.Cursor
	if a.cursor != nil {
		c = a.cursor.Fetch(j.Filter)
	} else {
		var pins []jobs.Pin
		for _, other := range s.jobs {
			if other != j && other.Account == a.Email && other.Kind == jobs.MailBackfill {
				pins = append(pins, jobs.Pin{HistoryID: other.Checkpoint.HistoryID, Live: other.State.StoresYet()})
			}
		}
		c = jobs.NewCursor(j.Job, pins, a.hasMessages(), now)
	}
	if c.HistoryID != 0 {
		a.cursor = &c
	}
}

// Cursor returns where the live sync of a mailbox stands, or [jobs.ErrNoCursor].
func (s *Store) Cursor(ctx context.Context, email string) (c jobs.Cursor, err error) {
	err = s.do(ctx, func(time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil || a.cursor == nil {
			return fmt.Errorf("cursor of %s: %w", email, jobs.ErrNoCursor)
		}
		c = *a.cursor
		return nil
	})
	return c, err
}

// moveCursor moves the cursor of the owner's mailbox.
func (s *Store) moveCursor(ctx context.Context, ref jobs.TaskRef, verb string, move func(j *job, a *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error)) (c jobs.Cursor, err error) {
	_, err = s.owned(ctx, ref, verb, func(j *job, a *account, now time.Time) (err error) {
		if a.cursor == nil {
			return jobs.ErrNoCursor
		}
		if c, err = move(j, a, *a.cursor, now); err == nil {
			kept := c
			a.cursor = &kept
		}
		return err
	})
	return c, err
}

// BeginSync begins a reading of the history, which answers what was asked for before. It
// returns the cursor as it was.
func (s *Store) BeginSync(ctx context.Context, ref jobs.TaskRef) (before jobs.Cursor, err error) {
	_, err = s.moveCursor(ctx, ref, "begin sync", func(_ *job, _ *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		before = c
		return c.BeginSync(now), nil
	})
	return before, err
}

// ApplyHistory writes a page of the history to the messages, and moves the cursor
// behind it.
func (s *Store) ApplyHistory(ctx context.Context, ref jobs.TaskRef, page jobs.HistoryPage) (out jobs.Job, err error) {
	_, err = s.moveCursor(ctx, ref, "apply history", func(j *job, a *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		at := c.HistoryID
		for _, record := range page.Records {
			if err := s.record(j, a, record, c.SpamTrash, now); err != nil {
				return c, err
			}
			at = max(at, record.ID)
		}
		if page.Next == "" {
			at = max(at, page.HistoryID)
		}
		if at > c.HistoryID {
			j.Progressed()
		}
		c = c.Recover()
		c.HistoryID = at
		return c, nil
	})
	if err != nil {
		return jobs.Job{}, err
	}
	return s.Job(ctx, ref.Job)
}

// record applies one record of the history, message by message.
func (s *Store) record(j *job, a *account, record jobs.HistoryRecord, spamTrash bool, now time.Time) error {
	changes := map[string][]jobs.Change{}
	var order []string
	for _, c := range record.Changes {
		if changes[c.ID] == nil {
			order = append(order, c.ID)
		}
		changes[c.ID] = append(changes[c.ID], c)
	}
	for _, id := range order {
		m := a.message(id)
		added, ok := m.Change(record.ID, changes[id], spamTrash, now)
		switch {
		case ok && !m.DeletedAt.IsZero():
			s.settle(j, id, jobs.ItemGone)
		case added:
			if _, err := j.AddItems(jobs.Page{IDs: []string{id}}, a.adds(j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// EndSync says that the history was read to its end. Once a backfill of the whole
// mailbox is complete, it puts the bodies that nothing else will fetch on the job's list.
func (s *Store) EndSync(ctx context.Context, ref jobs.TaskRef) (out jobs.Job, done bool, err error) {
	_, err = s.moveCursor(ctx, ref, "end sync", func(j *job, a *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		if _, err := j.AddItems(jobs.Page{IDs: s.missing(j, a)}, a.adds(j)); err != nil {
			return c, err
		}
		j.Checkpoint.Listed = !c.Due(now)
		c.SyncedAt = now
		return c, nil
	})
	if err != nil {
		return jobs.Job{}, false, err
	}
	out, err = s.Job(ctx, ref.Job)
	return out, err == nil, err
}

// missing returns the stubs whose bodies are wanted and that are not on the job's list.
func (s *Store) missing(j *job, a *account) (ids []string) {
	complete := false
	for _, other := range s.jobs {
		complete = complete || other.Account == a.Email && other.Filter.Whole() && other.AsksSync()
	}
	for _, m := range sorted(a.messages) {
		if complete && m.BodyWanted && j.items[m.ID] == nil {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// ExpireCursor is [jobs.Cursor.Expire] in the store.
func (s *Store) ExpireCursor(ctx context.Context, ref jobs.TaskRef, reason jobs.ReconcileReason) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "expire cursor", func(_ *job, _ *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		return c.Expire(reason, now), nil
	})
}

// BeginSnapshot is [jobs.Cursor.BeginReading] in the store.
func (s *Store) BeginSnapshot(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "begin a snapshot", func(_ *job, _ *account, c jobs.Cursor, _ time.Time) (jobs.Cursor, error) {
		return c.BeginReading(p), nil
	})
}

// FailSnapshot is [jobs.Snapshot.Fail] in the store.
func (s *Store) FailSnapshot(ctx context.Context, ref jobs.TaskRef, reason string) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "fail the snapshot", func(_ *job, _ *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		c.Snapshot = c.Snapshot.Fail(clean(reason), now)
		return c, nil
	})
}

// AddSnapshot adds a page of ids to the snapshot, as having a label or, if that is empty,
// as being there, and moves the snapshot on to next.
func (s *Store) AddSnapshot(ctx context.Context, ref jobs.TaskRef, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, error) {
	c, err := s.moveCursor(ctx, ref, "add to the snapshot", func(j *job, a *account, c jobs.Cursor, _ time.Time) (jobs.Cursor, error) {
		for _, id := range ids {
			labels, listed := a.snapshot[id]
			switch {
			case label != "" && listed:
				a.snapshot[id] = append(labels, label)
			case label == "" && !listed:
				a.snapshot[id] = nil
				next.Seen++
			}
		}
		c.Snapshot = next.Progress()
		j.Progressed()
		return c, nil
	})
	return c.Snapshot, err
}

// MergeSnapshot does the step of bringing the snapshot into the messages that comes
// next.
func (s *Store) MergeSnapshot(ctx context.Context, ref jobs.TaskRef) (jobs.Cursor, error) {
	return s.moveCursor(ctx, ref, "merge the snapshot", func(j *job, a *account, c jobs.Cursor, now time.Time) (jobs.Cursor, error) {
		phases := []jobs.SnapshotPhase{jobs.SnapshotMerge, jobs.SnapshotAbsent, jobs.SnapshotClear}
		snap := &c.Snapshot
		switch {
		case snap.Phase == jobs.SnapshotAge:
			for _, m := range a.messages {
				m.HistoryID = min(m.HistoryID, snap.HistoryID)
			}
			c = c.Aged()
		case !slices.Contains(phases, snap.Phase):
			return c, fmt.Errorf("the snapshot is not complete, but at %q", snap.Phase)
		case snap.Short():
			return c, errors.New("the listing is too short to take the rest for deleted")
		case snap.Phase == jobs.SnapshotMerge:
			for id, labels := range a.snapshot {
				a.message(id).Listed(*snap, labels, c.SpamTrash)
			}
			snap.Phase = jobs.SnapshotAbsent
		case snap.Phase == jobs.SnapshotAbsent:
			for id, m := range a.messages {
				if _, listed := a.snapshot[id]; !listed && m.DeletedAt.IsZero() && m.HistoryID <= snap.HistoryID {
					m.Absent(*snap, now)
					s.settle(j, id, jobs.ItemGone)
				}
			}
			snap.Phase = jobs.SnapshotClear
		default:
			clear(a.snapshot)
			c = c.Reconciled(now)
		}
		j.Progressed()
		return c, nil
	})
}

// DropSnapshot drops what a snapshot that is begun anew had listed.
func (s *Store) DropSnapshot(ctx context.Context, ref jobs.TaskRef) (done bool, err error) {
	_, err = s.owned(ctx, ref, "drop the snapshot", func(_ *job, a *account, _ time.Time) error {
		clear(a.snapshot)
		return nil
	})
	return err == nil, err
}
