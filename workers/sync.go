package workers

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"headroom/jobs"
)

// A syncRun reads a mailbox's history, and fetches what that names. When nothing else
// is left to do, it reads the mailbox as a whole, if that is due.
type syncRun struct {
	*mailRun
	changed  bool            // the history that this slice has read is not empty
	asked    map[string]bool // pages that this slice has asked for
	snapshot jobs.Snapshot   // of the whole mailbox
}

func newSyncRun(s *slice) *syncRun {
	r := &syncRun{mailRun: &mailRun{slice: s}}
	r.lister = r
	return r
}

// run begins each slice with the history: what it has to fetch may have been deleted,
// and reading the whole mailbox takes many slices.
func (y *syncRun) run(ctx context.Context) result {
	if r := y.open(ctx); r.stops() {
		return r
	}
	if r := y.list(ctx); r.stops() && !y.unlisted.stops() {
		return r
	}
	y.workUntil = y.workEnd(ctx, y.now()) // however long the history took, what it left has a slice's time
	return y.fetch(ctx)
}

// list reads the history to its end; then what it names is on the job's list.
func (y *syncRun) list(ctx context.Context) result {
	if y.account.Mailbox == "" { // no call has asked for it yet
		profile, r := y.profile(ctx)
		if !r.stops() {
			r = y.checkAddress(ctx, profile)
		}
		if r.stops() {
			return r
		}
	}
	y.renewWatch(ctx)
	cursor, err := y.opts.Store.BeginSync(ctx, y.ref)
	if errors.Is(err, jobs.ErrNoCursor) {
		return endsAs(jobs.Failed, fmt.Sprintf("%v: no backfill of the whole mailbox has begun; start one with: headroom backfill start %s", err, y.job.Account))
	}
	if err != nil {
		return failed(err)
	}
	cursor, r := y.followHistory(ctx, cursor)
	if r.stops() {
		return r
	}
	y.snapshot = cursor.Snapshot
	if y.changed { // else no label can be new
		y.saveLabels(ctx)
	}
	return y.endHistory(ctx)
}

// relist implements [lister]: the next slice begins with the history.
func (y *syncRun) relist(context.Context) (more bool, r result) {
	return false, result{reason: timeUp}
}

// between implements [lister]: it does the next step of reading the mailbox as a whole.
func (y *syncRun) between(ctx context.Context) (worked bool, r result) {
	if !y.snapshot.Due(y.now()) {
		return false, result{}
	}
	return true, y.readSnapshot(ctx)
}

// followHistory reads the history to its end. Where that cannot be read, it begins to
// read the mailbox as a whole, and reads the history from there on.
func (y *syncRun) followHistory(ctx context.Context, cursor jobs.Cursor) (_ jobs.Cursor, r result) {
	for {
		if cursor.Snapshot.Phase == jobs.SnapshotAge {
			if cursor, r = y.ageRows(ctx); r.stops() {
				return cursor, r
			}
		}
		reason, r := y.readHistory(ctx, cursor)
		if r.stops() || reason == "" {
			return cursor.Recover(), r
		}
		var err error
		if cursor, err = y.opts.Store.ExpireCursor(ctx, y.ref, reason); err != nil {
			return cursor, failed(err)
		}
		if !cursor.Due(y.now()) {
			// What is on the list is fetched first.
			y.unlisted = endsAs(jobs.Failed, cursor.Standstill())
			return cursor, y.unlisted
		}
		y.log.Warn("the mailbox is read as a whole", y.logJob(zap.String("reason", string(reason)))...)
		if cursor, r = y.beginSnapshot(ctx); r.stops() {
			return cursor, r
		}
	}
}

// readHistory applies the history after a cursor, page by page. It returns why it
// cannot be read from there on, if it cannot.
func (y *syncRun) readHistory(ctx context.Context, cursor jobs.Cursor) (reason jobs.ReconcileReason, r result) {
	after := cursor.HistoryID
	for token := ""; ; {
		if y.stopping() {
			return "", result{reason: timeUp}
		}
		if token != "" && y.askedBefore(fmt.Sprintf("history %d %s", after, token)) {
			return "", y.endlessTokens("history")
		}
		page, err := get(y.slice, nil, func(ctx context.Context) (jobs.HistoryPage, error) { return y.box.History(ctx, after, token) })
		expired := classOf(err) == jobs.ClassCursor
		switch {
		case expired && token == "":
			return jobs.HistoryTooOld, result{}
		case expired:
			// The cursor is behind all pages so far, so they need not come again.
			token = ""
			continue
		case err != nil:
			return "", y.resultOfCall(ctx, fmt.Errorf("history of %s: %w", y.job.Account, err))
		}
		switch {
		case cursor.Backwards(page):
			return jobs.HistoryBackwards, result{}
		case page.HistoryID != 0 && page.HistoryID < cursor.HistoryID: // the reading that is under way is for that
			return "", result{}
		}
		job, err := y.opts.Store.ApplyHistory(ctx, y.ref, page)
		if err != nil {
			return "", failed(err)
		}
		y.job.Progress, y.progress = job.Progress, true
		y.countChanges(page)
		if page.Next == "" {
			return "", result{}
		}
		// A page that moved the cursor needs no token: the next begins at the
		// cursor, and no token can die meanwhile.
		token = page.Next
		if n := len(page.Records); n > 0 && page.Records[n-1].ID > after {
			after, token = page.Records[n-1].ID, ""
		}
	}
}

// askedBefore reports whether this slice has asked for a page before: then its
// tokens lead in a circle.
func (y *syncRun) askedBefore(page string) bool {
	if y.asked == nil {
		y.asked = map[string]bool{}
	}
	before := y.asked[page]
	y.asked[page] = true
	return before
}

func (y *syncRun) endlessTokens(what string) result {
	return failedForGood(fmt.Errorf("%s of %s: its page tokens lead to no end", what, y.job.Account))
}

func (y *syncRun) countChanges(page jobs.HistoryPage) {
	y.changed = y.changed || len(page.Records) > 0
	for _, record := range page.Records {
		for _, c := range record.Changes {
			y.metrics.changes.WithLabelValues(string(c.Kind)).Inc()
		}
	}
}

// endHistory notes that the history was read to its end, and lists what it names.
func (y *syncRun) endHistory(ctx context.Context) result {
	for {
		job, done, err := y.opts.Store.EndSync(ctx, y.ref)
		if err != nil {
			return failed(err)
		}
		y.job.Checkpoint, y.job.Progress = job.Checkpoint, job.Progress
		if done {
			return result{}
		}
	}
}
