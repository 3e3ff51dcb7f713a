package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// SyncStore keeps what live sync reads. Its methods are fenced as those of
// [Store] are.
type SyncStore interface {
	// BeginSync notes that the history is about to be read, and returns where
	// from.
	BeginSync(ctx context.Context, ref jobs.TaskRef) (jobs.Cursor, error)
	// ApplyHistory writes down a page of the history and moves the cursor
	// behind it, in one transaction.
	ApplyHistory(ctx context.Context, ref jobs.TaskRef, page jobs.HistoryPage) (jobs.Job, error)
	// EndSync notes that the history was read to its end, and lists what has
	// to be fetched; until it is done it must be called again.
	EndSync(ctx context.Context, ref jobs.TaskRef) (job jobs.Job, done bool, err error)

	// ExpireCursor notes that the history cannot be read from the cursor on. The
	// cursor that it returns says when the mailbox is read as a whole.
	ExpireCursor(ctx context.Context, ref jobs.TaskRef, reason jobs.ReconcileReason) (jobs.Cursor, error)
	// BeginSnapshot begins to read the mailbox as a whole with what its profile
	// says.
	BeginSnapshot(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) (jobs.Cursor, error)
	// AddSnapshot adds ids that a label has, or, without one, all ids, and
	// moves the snapshot on to next; it returns next with what was seen.
	AddSnapshot(ctx context.Context, ref jobs.TaskRef, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, error)
	// MergeSnapshot does a step that needs no call: before a snapshot is listed,
	// or when it is complete.
	MergeSnapshot(ctx context.Context, ref jobs.TaskRef) (jobs.Cursor, error)
	// FailSnapshot notes that a step failed, and so when it is tried again or the
	// snapshot is begun anew.
	FailSnapshot(ctx context.Context, ref jobs.TaskRef, reason string) (jobs.Cursor, error)
	// DropSnapshot drops what a snapshot before has listed; until it is done it
	// must be called again.
	DropSnapshot(ctx context.Context, ref jobs.TaskRef) (done bool, err error)
}

// Historian is the part of a mailbox that live sync reads. Calls and errors are
// those of a [Mailbox].
type Historian interface {
	// History returns a page of what changed after a history id. An error of
	// jobs.ClassCursor says that this is too long ago, or, with a token, that
	// the token does not work.
	History(ctx context.Context, after uint64, pageToken string) (jobs.HistoryPage, error)
	// ListAll returns a page of the ids of all messages, or of all with a
	// label; spam and trash are among them.
	ListAll(ctx context.Context, label, pageToken string) (jobs.Page, error)
	// Labels returns all labels.
	Labels(ctx context.Context) ([]jobs.Label, error)
}

// sync reads the mailbox's history to its end; what it leaves to be fetched is
// on the job's list then. It returns nil when the list is complete.
func (s *slice) sync(ctx, calls context.Context) *ending {
	if end := s.firstContact(ctx, calls); end != nil {
		return end
	}
	s.watchMail(ctx, calls)
	cursor, err := s.opts.Store.BeginSync(ctx, s.ref)
	if errors.Is(err, jobs.ErrNoCursor) {
		return &ending{how: ends, fin: jobs.Finish{State: jobs.Failed,
			Error: fmt.Sprintf("%v: no backfill of the whole mailbox has begun; start one with: headroom backfill start %s", err, s.job.Account)}}
	}
	if err != nil {
		return breaks(err)
	}
	cursor, end := s.followHistory(ctx, calls, cursor)
	if end != nil {
		return end
	}
	s.snapshot = cursor.Snapshot // read on when nothing else is to be done
	if s.changed {               // else no label can be new
		s.readLabels(ctx, calls)
	}
	return s.endSync(ctx)
}

// followHistory reads the history to its end. Where that cannot be read, it begins to
// read the mailbox as a whole, and reads the history from there on.
func (s *slice) followHistory(ctx, calls context.Context, cursor jobs.Cursor) (_ jobs.Cursor, end *ending) {
	for {
		if cursor.Snapshot.Phase == jobs.SnapshotAge {
			if cursor, end = s.ageRows(ctx); end != nil {
				return cursor, end
			}
		}
		reason, end := s.readHistory(ctx, calls, cursor)
		if end != nil || reason == "" {
			return cursor.Recover(), end
		}
		var err error
		if cursor, err = s.opts.Store.ExpireCursor(ctx, s.ref, reason); err != nil {
			return cursor, breaks(err)
		}
		if !cursor.Due(time.Now()) {
			// What is on the list is fetched first.
			s.unlisted = &ending{how: ends, fin: jobs.Finish{State: jobs.Failed, Error: cursor.Standstill()}}
			return cursor, s.unlisted
		}
		s.log.Warn("the mailbox is read as a whole", zap.String("job", s.job.ID), zap.String("reason", string(reason)))
		if cursor, end = s.beginSnapshot(ctx, calls); end != nil {
			return cursor, end
		}
	}
}

// readHistory applies the history after a cursor, page by page. It returns why it
// cannot be read from there on, if it cannot.
func (s *slice) readHistory(ctx, calls context.Context, cursor jobs.Cursor) (reason jobs.ReconcileReason, end *ending) {
	after := cursor.HistoryID
	for token := ""; ; {
		if s.stopping() {
			return "", &ending{how: goesOn}
		}
		if token != "" && s.askedBefore(fmt.Sprintf("history %d %s", after, token)) {
			return "", s.noEnd("history")
		}
		var page jobs.HistoryPage
		err := s.call(calls, nil, func(ctx context.Context) (err error) {
			page, err = s.box.History(ctx, after, token)
			return err
		})
		switch {
		case isDeadCursor(err) && token == "":
			return jobs.HistoryTooOld, nil
		case isDeadCursor(err):
			// The cursor is behind all pages so far, so they need not come again.
			token = ""
			continue
		case err != nil:
			return "", endingOfCall(ctx, calls, fmt.Errorf("history of %s: %w", s.job.Account, err), time.Now())
		}
		switch {
		case cursor.Backwards(page):
			return jobs.HistoryBackwards, nil
		case page.HistoryID != 0 && page.HistoryID < cursor.HistoryID: // the reading that is under way is for that
			return "", nil
		}
		job, err := s.opts.Store.ApplyHistory(ctx, s.ref, page)
		if err != nil {
			return "", breaks(err)
		}
		s.job.Progress, s.progress = job.Progress, true
		s.countChanges(page)
		if page.Next == "" {
			return "", nil
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
func (s *slice) askedBefore(page string) bool {
	if s.asked == nil {
		s.asked = map[string]bool{}
	}
	before := s.asked[page]
	s.asked[page] = true
	return before
}

func (s *slice) noEnd(what string) *ending {
	return persists(fmt.Errorf("%s of %s: its page tokens lead to no end", what, s.job.Account))
}

func (s *slice) countChanges(page jobs.HistoryPage) {
	s.changed = s.changed || len(page.Records) > 0
	for _, record := range page.Records {
		for _, c := range record.Changes {
			s.metrics.changes.WithLabelValues(string(c.Kind)).Inc()
		}
	}
}

func (s *slice) endSync(ctx context.Context) *ending {
	for {
		job, done, err := s.opts.Store.EndSync(ctx, s.ref)
		if err != nil {
			return breaks(err)
		}
		s.job.Checkpoint, s.job.Progress = job.Checkpoint, job.Progress
		if done {
			return nil
		}
	}
}
