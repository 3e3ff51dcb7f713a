package workers

import (
	"context"
	"time"

	"headroom/internal/blob"
	"headroom/jobs"
)

// Store keeps jobs, their progress and their results. Every method that
// takes a ref is fenced by it: it returns [jobs.ErrStale] and changes nothing
// once the job has gone on. A Store is safe for concurrent use.
type Store interface {
	SyncStore

	// Claim takes the lease of the job for a run of slice ref. It returns
	// jobs.ErrStale when the job has moved on,
	// jobs.ErrSliceDone when it was completed before, and jobs.ErrHeld while
	// another run holds the lease; with the latter two it may return the row
	// as well. A lease that ran out is taken over under a higher epoch, which
	// the returned row carries.
	Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error)
	// Renew extends the lease to lease from now. The row that it returns has the
	// state that somebody wants the job in, if that is another.
	Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error)

	// SaveProfile pins the profile's history id, unless one is pinned, and
	// notes how many messages to expect.
	SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error
	// NoteMailbox notes the address by which Google names the account's mailbox, and
	// returns the other accounts that are known to have the same one.
	NoteMailbox(ctx context.Context, ref jobs.TaskRef, address string) (others []string, err error)
	// AddListed adds one page of ids and moves the listing behind it.
	AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error)
	// RestartListing moves the listing back to the top, and bounds it to what
	// is older than before, unless that is zero; ids are kept.
	RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error)
	// NextPass makes the next of the noted items pending, and reports whether
	// there were any.
	NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error)

	// NextItems returns up to limit pending items that are due, in the order
	// of their Seq, beginning after afterSeq.
	NextItems(ctx context.Context, ref jobs.TaskRef, afterSeq int64, limit int) ([]jobs.Item, error)
	// NextDue returns when the first pending item is due; zero when none is
	// pending.
	NextDue(ctx context.Context, ref jobs.TaskRef) (time.Time, error)

	// StoredID returns the id of a message of the account that is stored, if
	// it can each time another, or jobs.ErrNotFound.
	StoredID(ctx context.Context, account string) (string, error)
	// ThreadItems returns up to limit pending items of a thread that were neither
	// tried nor noted.
	ThreadItems(ctx context.Context, ref jobs.TaskRef, thread string, limit int) ([]jobs.Item, error)
	// SaveAttachment records an attachment of a message, and Attachments returns
	// those recorded, also before the message is stored.
	SaveAttachment(ctx context.Context, ref jobs.TaskRef, message string, a jobs.Attachment) error
	Attachments(ctx context.Context, account, message string) ([]jobs.Attachment, error)
	// SaveLabels records the labels that the mailbox has.
	SaveLabels(ctx context.Context, ref jobs.TaskRef, labels []jobs.Label) error
	// Commit records results in one transaction.
	Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error)

	// Charge notes units of quota that the slice has spent.
	Charge(ctx context.Context, ref jobs.TaskRef, units int64) error

	// EndSlice, Park and Finish give the lease back. If a pause or cancel was
	// requested, they apply it, and the returned row has that state: then no task
	// carries the job any more.

	// EndSlice moves the job to its next slice.
	EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error)
	// Park has the job wait until a moment; the slice stays the same.
	Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error)
	// Finish ends the job, unless items of it are pending again when it should
	// complete: then the slice ends.
	Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error)

	// Account returns an account, or jobs.ErrNotFound.
	Account(ctx context.Context, email string) (jobs.Account, error)
}

// SyncStore keeps what live sync reads. Its methods are fenced as those of
// [Store] are.
type SyncStore interface {
	// BeginSync notes that the history is about to be read, and returns where
	// from.
	BeginSync(ctx context.Context, ref jobs.TaskRef) (jobs.Cursor, error)
	// ApplyHistory stores a page of the history and moves the cursor
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

// CalendarStore keeps what calendar sync reads. Its methods are fenced as those of
// [Store] are. A calendar or list that they return may have a time before which it
// is to be left alone.
type CalendarStore interface {
	// BeginCalendars notes that a slice begins, and returns the account's list of
	// calendars.
	BeginCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	// ApplyCalendarList stores a page of the list.
	ApplyCalendarList(ctx context.Context, ref jobs.TaskRef, page jobs.CalendarListPage) (jobs.CalendarList, error)
	// ExpireCalendarList notes that the list's sync token was refused, and
	// RestartCalendarList that a page token leads nowhere.
	ExpireCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	RestartCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)

	// RoundCalendars lists the calendars that are left to be read now, those
	// first that are read as a whole last.
	RoundCalendars(ctx context.Context, ref jobs.TaskRef) ([]jobs.Calendar, error)
	// ApplyEvents stores a page of a calendar's events and moves the calendar's
	// stream behind it, in one transaction.
	ApplyEvents(ctx context.Context, ref jobs.TaskRef, calendar string, page jobs.EventPage) (jobs.Calendar, error)
	// ExpireCalendar and RestartCalendar do the same for a calendar.
	ExpireCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	RestartCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	// MarkCalendar notes why a calendar cannot be read.
	MarkCalendar(ctx context.Context, ref jobs.TaskRef, calendar string, state jobs.CalendarState, reason string) (jobs.Calendar, error)
	// EndCalendars notes that nothing is left to be read now.
	EndCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
}

// WatchStore keeps what Google is to notify us of. Its methods are fenced as those of
// [Store] are.
type WatchStore interface {
	// WatchDue reports whether a watch is to be made or renewed now.
	WatchDue(ctx context.Context, k jobs.WatchKey) (bool, error)
	// Renewed notes that it was, for how long it lasts, and when to renew it.
	Renewed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, life, renew time.Duration) error
	// RenewalFailed notes that it could not be, and, of a call that was not let
	// through, how long to wait.
	RenewalFailed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, what string, wait time.Duration) error

	// DueChannels lists what is to be watched of an account's calendars now.
	DueChannels(ctx context.Context, account string) ([]jobs.WatchKey, error)
	// AddChannel notes a channel before Google is asked for it, and ChannelMade
	// that it is there: the one before it is to be stopped then.
	AddChannel(ctx context.Context, ref jobs.TaskRef, c jobs.Channel) error
	ChannelMade(ctx context.Context, ref jobs.TaskRef, c jobs.Channel, life, renew time.Duration) error
	// StoppableChannels lists channels to be stopped, and DropChannel forgets one
	// that is no more.
	StoppableChannels(ctx context.Context, account string) ([]jobs.Channel, error)
	DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error
}

// Blobs keeps the bodies of messages and attachments; in production a [blob.Folder].
type Blobs interface {
	// Create returns a writer for one body.
	Create(ctx context.Context) blob.Writer
}

// successors is where a slice puts the task of the slice after it; in
// production a [jobs.Queue].
type successors interface {
	Put(ctx context.Context, ref jobs.TaskRef) error
}
