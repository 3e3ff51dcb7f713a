package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

func logJob(job jobs.Job) []zap.Field { return []zap.Field{zap.String("job", job.ID)} }

// A mailbox is read as a whole in steps: all ids, and then the ids of each label,
// since that tells the labels of five hundred messages for what a single get costs.
// Only when both are complete is anything written to the messages' rows. A sync does
// a step when nothing else is left for it to do, and each of its slices begins with
// the history, so that is read meanwhile as ever.

// beginSnapshot begins to read the mailbox as a whole: what changes while it is read
// comes after the history id that the profile names now.
func (s *slice) beginSnapshot(ctx, calls context.Context) (c jobs.Cursor, end *ending) {
	for done := false; !done; {
		var err error
		if done, err = s.opts.Store.DropSnapshot(ctx, s.ref); err != nil {
			return c, breaks(err)
		}
	}
	var profile jobs.Profile
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		profile, err = s.box.Profile(ctx)
		return err
	})
	if err == nil && profile.HistoryID == 0 {
		err = errors.New("the answer names no history id")
	}
	if err != nil {
		return c, endingOfCall(ctx, calls, fmt.Errorf("profile of %s: %w", s.job.Account, err), time.Now())
	}
	if end := s.contact(ctx, profile); end != nil {
		return c, end
	}
	if _, err = s.opts.Store.BeginSnapshot(ctx, s.ref, profile); err != nil {
		return c, breaks(err)
	}
	return s.ageRows(ctx)
}

// ageRows makes all rows older than the snapshot that has begun, and returns the
// cursor from which the history is read beside it.
func (s *slice) ageRows(ctx context.Context) (c jobs.Cursor, end *ending) {
	for {
		if s.stopping() {
			return c, &ending{how: goesOn}
		}
		c, err := s.opts.Store.MergeSnapshot(ctx, s.ref)
		if err != nil {
			return c, breaks(err)
		}
		s.progress = true
		if c.Snapshot.Phase != jobs.SnapshotAge {
			return c, nil
		}
	}
}

// readOn does the next step of reading the mailbox as a whole. A step that fails is
// noted, and does not hold up the sync: the reading goes on later, or begins anew.
func (s *slice) readOn(ctx, calls context.Context) *ending {
	snap, end := s.snapshotStep(ctx, calls)
	if end != nil && end.how == broke {
		s.log.Warn("the mailbox is not read as a whole for now", zap.String("job", s.job.ID), zap.Error(end.err))
		c, err := s.opts.Store.FailSnapshot(ctx, s.ref, clip(end.err.Error()))
		if err != nil {
			return breaks(err)
		}
		s.snapshot = c.Snapshot
		return s.endSync(ctx)
	}
	if end != nil {
		return end
	}
	if s.snapshot, s.progress = snap, true; snap.Phase != "" {
		return nil
	}
	s.metrics.reconciled.Inc()
	s.log.Info("the mailbox was read as a whole", zap.String("job", s.job.ID))
	return s.endSync(ctx)
}

func (s *slice) snapshotStep(ctx, calls context.Context) (jobs.Snapshot, *ending) {
	switch s.snapshot.Phase {
	case jobs.SnapshotAsked:
		c, end := s.beginSnapshot(ctx, calls)
		return c.Snapshot, end
	case jobs.SnapshotIDs, jobs.SnapshotLabels:
		return s.snapshotPage(ctx, calls, s.snapshot)
	}
	c, err := s.opts.Store.MergeSnapshot(ctx, s.ref)
	if err != nil {
		return c.Snapshot, breaks(err)
	}
	return c.Snapshot, nil
}

// snapshotPage reads the next page and says where the snapshot is then. A page
// whose token is dead makes its own listing start over; what was listed stays. A
// label by which Google refuses to list is left out.
func (s *slice) snapshotPage(ctx, calls context.Context, snap jobs.Snapshot) (jobs.Snapshot, *ending) {
	asked := "list " + snap.Label + " " + snap.Token
	if s.askedBefore(asked) {
		return snap, s.noEnd("listing")
	}
	var page jobs.Page
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		page, err = s.box.ListAll(ctx, snap.Label, snap.Token)
		return err
	})
	label, next := snap.Label, snap
	switch {
	case isDeadCursor(err) && snap.Token != "":
		again := "from the top " + snap.Label
		if s.asked[again] {
			return snap, s.noEnd("listing")
		}
		s.asked, next.Token = map[string]bool{again: true}, ""
		return s.addSnapshot(ctx, "", nil, next)
	case isUnknownLabel(err) && label != "":
		s.labels = nil // it was there when the list of labels was last read
		if end := s.loadLabels(ctx, calls); end != nil {
			return snap, end
		}
		holds := slices.ContainsFunc(s.labels, func(l jobs.Label) bool { return l.ID == label })
		s.log.Warn("a label is left out while the mailbox is read as a whole",
			zap.String("job", s.job.ID), zap.Bool("deleted", !holds), zap.Error(err))
		next = next.Leave(label, holds)
	case err != nil:
		delete(s.asked, asked) // it is asked for again
		return snap, endingOfCall(ctx, calls, fmt.Errorf("list all of %s: %w", s.job.Account, err), time.Now())
	}
	if next.Token = page.Next; next.Token == "" {
		end := (*ending)(nil)
		if next.Phase, next.Label, end = s.nextLabel(ctx, calls, label); end != nil {
			return snap, end
		}
	}
	return s.addSnapshot(ctx, label, page.IDs, next)
}

// isUnknownLabel reports whether Google refused a listing for what it was asked.
func isUnknownLabel(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassSearch
}

// loadLabels reads the list of labels, unless this slice has it.
func (s *slice) loadLabels(ctx, calls context.Context) *ending {
	if s.labels != nil {
		return nil
	}
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		s.labels, err = s.box.Labels(ctx)
		return err
	})
	if err != nil {
		return endingOfCall(ctx, calls, fmt.Errorf("labels of %s: %w", s.job.Account, err), time.Now())
	}
	return nil
}

// nextLabel returns the label that comes after one in order, or that there is none.
func (s *slice) nextLabel(ctx, calls context.Context, after string) (jobs.SnapshotPhase, string, *ending) {
	if end := s.loadLabels(ctx, calls); end != nil {
		return "", "", end
	}
	inOrder := slices.SortedFunc(slices.Values(s.labels), func(a, b jobs.Label) int { return cmp.Compare(a.ID, b.ID) })
	for _, label := range inOrder {
		if label.ID > after {
			return jobs.SnapshotLabels, label.ID, nil
		}
	}
	return jobs.SnapshotMerge, "", nil
}

func (s *slice) addSnapshot(ctx context.Context, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, *ending) {
	next, err := s.opts.Store.AddSnapshot(ctx, s.ref, label, ids, next)
	if err != nil {
		return next, breaks(err)
	}
	return next, nil
}
