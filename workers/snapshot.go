package workers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"headroom/jobs"
)

// A mailbox is read as a whole in steps: all ids, and then the ids of each label, since
// that yields the labels of five hundred messages for the price of a single get. Nothing
// is written to the messages' rows until both are complete. A sync does a step when
// nothing else is left for it to do. Each of its slices begins with the history, which
// is therefore read meanwhile as usual.

// beginSnapshot begins to read the mailbox as a whole: what changes while it is read
// comes after the history id that the profile names now.
func (y *syncRun) beginSnapshot(ctx context.Context) (c jobs.Cursor, r result) {
	for done := false; !done; {
		var err error
		if done, err = y.opts.Store.DropSnapshot(ctx, y.ref); err != nil {
			return c, failed(err)
		}
	}
	profile, r := y.profile(ctx)
	if !r.stops() && profile.HistoryID == 0 {
		r = failed(fmt.Errorf("profile of %s: the answer names no history id", y.job.Account))
	}
	if !r.stops() {
		r = y.checkAddress(ctx, profile)
	}
	if r.stops() {
		return c, r
	}
	if _, err := y.opts.Store.BeginSnapshot(ctx, y.ref, profile); err != nil {
		return c, failed(err)
	}
	return y.ageRows(ctx)
}

// ageRows makes all rows older than the snapshot that has begun, and returns the
// cursor from which the history is read beside it.
func (y *syncRun) ageRows(ctx context.Context) (c jobs.Cursor, r result) {
	for {
		if y.stopping() {
			return c, result{reason: timeUp}
		}
		c, err := y.opts.Store.MergeSnapshot(ctx, y.ref)
		if err != nil {
			return c, failed(err)
		}
		y.progress = true
		if c.Snapshot.Phase != jobs.SnapshotAge {
			return c, result{}
		}
	}
}

// readSnapshot does the next step of reading the mailbox as a whole. A step that fails
// is noted, and does not hold up the sync: the reading continues later, or begins anew.
func (y *syncRun) readSnapshot(ctx context.Context) result {
	snap, r := y.snapshotStep(ctx)
	if r.reason == broken {
		y.log.Warn("the mailbox is not read as a whole for now", y.logJob(zap.Error(r.err))...)
		c, err := y.opts.Store.FailSnapshot(ctx, y.ref, clip(r.err.Error()))
		if err != nil {
			return failed(err)
		}
		y.snapshot = c.Snapshot
		return y.endHistory(ctx)
	}
	if r.stops() {
		return r
	}
	if y.snapshot, y.progress = snap, true; snap.Phase != "" {
		return result{}
	}
	y.metrics.reconciled.Inc()
	y.log.Info("the mailbox was read as a whole", y.logJob()...)
	return y.endHistory(ctx)
}

func (y *syncRun) snapshotStep(ctx context.Context) (jobs.Snapshot, result) {
	switch y.snapshot.Phase {
	case jobs.SnapshotAsked:
		c, r := y.beginSnapshot(ctx)
		return c.Snapshot, r
	case jobs.SnapshotIDs, jobs.SnapshotLabels:
		return y.snapshotPage(ctx, y.snapshot)
	}
	c, err := y.opts.Store.MergeSnapshot(ctx, y.ref)
	if err != nil {
		return c.Snapshot, failed(err)
	}
	return c.Snapshot, result{}
}

// snapshotPage reads the next page and returns where the snapshot is then. If a page
// token no longer works, its listing starts over; what was listed stays. A label by which
// Google refuses to list is left out.
func (y *syncRun) snapshotPage(ctx context.Context, snap jobs.Snapshot) (jobs.Snapshot, result) {
	asked := "list " + snap.Label + " " + snap.Token
	if y.askedBefore(asked) {
		return snap, y.endlessTokens("listing")
	}
	page, err := get(y.slice, nil, func(ctx context.Context) (jobs.Page, error) {
		return y.box.ListAll(ctx, snap.Label, snap.Token)
	})
	label, next := snap.Label, snap
	switch {
	case classOf(err) == jobs.ClassCursor && snap.Token != "":
		again := "from the top " + snap.Label
		if y.asked[again] {
			return snap, y.endlessTokens("listing")
		}
		y.asked, next.Token = map[string]bool{again: true}, ""
		return y.addSnapshot(ctx, "", nil, next)
	case classOf(err) == jobs.ClassSearch && label != "":
		y.labels = nil // it was there when the list of labels was last read
		if r := y.loadLabels(ctx); r.stops() {
			return snap, r
		}
		holds := slices.ContainsFunc(y.labels, func(l jobs.Label) bool { return l.ID == label })
		y.log.Warn("a label is left out while the mailbox is read as a whole",
			y.logJob(zap.Bool("deleted", !holds), zap.Error(err))...)
		next = next.Leave(label, holds)
	case err != nil:
		delete(y.asked, asked) // it is asked for again
		return snap, y.resultOfCall(ctx, fmt.Errorf("list all of %s: %w", y.job.Account, err))
	}
	if next.Token = page.Next; next.Token == "" {
		var r result
		if next.Phase, next.Label, r = y.nextLabel(ctx, label); r.stops() {
			return snap, r
		}
	}
	return y.addSnapshot(ctx, label, page.IDs, next)
}

// nextLabel returns the phase and label that come after a label.
func (y *syncRun) nextLabel(ctx context.Context, after string) (jobs.SnapshotPhase, string, result) {
	if r := y.loadLabels(ctx); r.stops() {
		return "", "", r
	}
	inOrder := slices.SortedFunc(slices.Values(y.labels), func(a, b jobs.Label) int { return cmp.Compare(a.ID, b.ID) })
	for _, label := range inOrder {
		if label.ID > after {
			return jobs.SnapshotLabels, label.ID, result{}
		}
	}
	return jobs.SnapshotMerge, "", result{}
}

func (y *syncRun) addSnapshot(ctx context.Context, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, result) {
	next, err := y.opts.Store.AddSnapshot(ctx, y.ref, label, ids, next)
	if err != nil {
		return next, failed(err)
	}
	return next, result{}
}
