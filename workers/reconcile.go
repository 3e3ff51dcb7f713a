package workers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

func logJob(job jobs.Job) []zap.Field { return []zap.Field{zap.String("job", job.ID)} }

// reconcile reads the whole mailbox once, from where an earlier slice stopped: all
// ids, and then the ids of each label, since that tells the labels of five hundred
// messages for what a single get costs. Only when both are complete is anything
// written to the messages' rows. It returns the history id from which on the
// history has to be read after it.
func (s *slice) reconcile(ctx, calls context.Context, snap jobs.Snapshot) (pinned uint64, end *ending) {
	switch snap.Phase {
	case "":
		if end = s.dropSnapshot(ctx); end != nil {
			return 0, end
		}
		fallthrough
	case jobs.SnapshotAsked: // there is nothing to drop, and what was asked for stays until it begins
		if snap, end = s.pinSnapshot(ctx, calls); end != nil {
			return 0, end
		}
	}
	for snap.Phase == jobs.SnapshotIDs || snap.Phase == jobs.SnapshotLabels {
		if snap, end = s.snapshotPage(ctx, calls, snap); end != nil {
			return 0, end
		}
	}
	if snap.Short() {
		err := fmt.Errorf("the listing of %s held %d messages, the profile promised %d: that is too short to take the rest for deleted",
			s.job.Account, snap.Seen, snap.Expected)
		if end := s.dropSnapshot(ctx); end != nil {
			return 0, end
		}
		return 0, breaks(err)
	}
	pinned = snap.HistoryID
	for snap.Phase != "" {
		if s.stopping() {
			return 0, &ending{how: goesOn}
		}
		var err error
		if snap, err = s.opts.Store.MergeSnapshot(ctx, s.ref); err != nil {
			return 0, breaks(err)
		}
		s.progress = true
	}
	return pinned, nil
}

// pinSnapshot begins a snapshot: what changes while it is read comes after the
// history id that the profile names now.
func (s *slice) pinSnapshot(ctx, calls context.Context) (jobs.Snapshot, *ending) {
	var profile jobs.Profile
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		profile, err = s.box.Profile(ctx)
		return err
	})
	if err != nil {
		return jobs.Snapshot{}, endingOfCall(ctx, calls, fmt.Errorf("profile of %s: %w", s.job.Account, err), time.Now())
	}
	return s.addSnapshot(ctx, "", nil, jobs.Snapshot{Phase: jobs.SnapshotIDs, HistoryID: profile.HistoryID, Expected: profile.Messages})
}

// snapshotPage reads the next page and says where the snapshot is then. A page
// whose token is dead makes its own listing start over; what was listed stays.
func (s *slice) snapshotPage(ctx, calls context.Context, snap jobs.Snapshot) (jobs.Snapshot, *ending) {
	if s.stopping() {
		return snap, &ending{how: goesOn}
	}
	if s.askedBefore("list " + snap.Label + " " + snap.Token) {
		return snap, s.noEnd("listing")
	}
	var page jobs.Page
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		page, err = s.box.ListAll(ctx, snap.Label, snap.Token)
		return err
	})
	switch {
	case isDeadCursor(err) && snap.Token != "":
		again := "from the top " + snap.Label
		if s.asked[again] {
			return snap, s.noEnd("listing")
		}
		s.asked, snap.Token = map[string]bool{again: true}, ""
		return s.addSnapshot(ctx, "", nil, snap)
	case err != nil:
		return snap, endingOfCall(ctx, calls, fmt.Errorf("list all of %s: %w", s.job.Account, err), time.Now())
	}
	label, next := snap.Label, snap
	if next.Token = page.Next; next.Token == "" {
		end := (*ending)(nil)
		if next.Phase, next.Label, end = s.nextLabel(ctx, calls, snap.Label); end != nil {
			return snap, end
		}
	}
	return s.addSnapshot(ctx, label, page.IDs, next)
}

// nextLabel returns the label that comes after one in order, or that there is none.
func (s *slice) nextLabel(ctx, calls context.Context, after string) (jobs.SnapshotPhase, string, *ending) {
	if s.labels == nil {
		err := s.call(calls, nil, func(ctx context.Context) (err error) {
			s.labels, err = s.box.Labels(ctx)
			return err
		})
		if err != nil {
			return "", "", endingOfCall(ctx, calls, fmt.Errorf("labels of %s: %w", s.job.Account, err), time.Now())
		}
		slices.SortFunc(s.labels, func(a, b jobs.Label) int { return cmp.Compare(a.ID, b.ID) })
	}
	for _, label := range s.labels {
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
	s.progress = true
	return next, nil
}

func (s *slice) dropSnapshot(ctx context.Context) *ending {
	for {
		done, err := s.opts.Store.DropSnapshot(ctx, s.ref)
		if err != nil {
			return breaks(err)
		}
		if done {
			return nil
		}
	}
}
