package workers

import (
	"context"
	"io"
	"time"

	"headroom/internal/blob"
	"headroom/jobs"
	"headroom/quota"
)

// Store keeps jobs, what they have done and what they bring. Every method that
// takes a ref is fenced by it: it returns [jobs.ErrStale] and changes nothing
// once the job has gone on. A Store is safe for concurrent use.
type Store interface {
	SyncStore

	// Claim takes the lease of the job for a run of slice ref. It returns
	// jobs.ErrStale when the slice is not the job's any more,
	// jobs.ErrSliceDone when it was completed before, and jobs.ErrHeld while
	// another run holds the lease; with the latter two it may return the row
	// as well. A lease that ran out is taken over under a higher epoch, which
	// the returned row carries.
	Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error)
	// Renew extends the lease to lease from now. The row that it returns says
	// whether the job is wanted in another state.
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

	// EndSlice, Park and Finish give the lease back. They bring a job that is
	// wanted in another state there, which the returned row tells: then no task
	// carries it any more.

	// EndSlice moves the job to its next slice.
	EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error)
	// Park puts the job aside until a moment; the slice stays the same.
	Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error)
	// Finish ends the job, unless items of it are pending again when it should
	// complete: then the slice ends.
	Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error)

	// Account returns an account, or jobs.ErrNotFound.
	Account(ctx context.Context, email string) (jobs.Account, error)
}

// Blobs keeps the bodies of messages and attachments; in production a [blob.Folder].
type Blobs interface {
	// Create returns a writer for one body.
	Create(ctx context.Context) blob.Writer
}

// Google opens mailboxes.
type Google interface {
	// Mailbox opens an account's mailbox for calls in a lane. A call that our
	// own ledger refuses may wait up to maxWait in place.
	Mailbox(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (Mailbox, error)
}

// Mailbox is one account's Gmail, in the lane that it was opened for. Every
// call is charged below it. It is safe for concurrent use.
//
// Errors are a *quota.DeniedError when our ledger refused, quota.ErrUnavailable
// or quota.ErrNeverFits, a *jobs.CallError when Google answered with one, or
// the context's.
type Mailbox interface {
	Historian

	Profile(ctx context.Context) (jobs.Profile, error)
	// List returns one page of the message ids that search finds, newest first;
	// the first page for an empty token.
	List(ctx context.Context, search jobs.Search, pageToken string) (jobs.Page, error)
	// Fetch gets one message and writes it to raw as it comes in. An error of
	// raw's is returned as it is. What was written before an error is worth
	// nothing.
	Fetch(ctx context.Context, id string, raw io.Writer) (jobs.Fetched, error)
	// Metadata gets one message without its body.
	Metadata(ctx context.Context, id string) (jobs.Fetched, error)

	// Full gets one message in format full.
	Full(ctx context.Context, id string) (jobs.Fetched, error)
	// Attachment gets the content of one of its attachments, as Fetch gets a
	// message, and returns its length.
	Attachment(ctx context.Context, message string, a jobs.Attachment, content io.Writer) (size int64, err error)
	// Thread gets all messages of a thread, as Full does if that is the format,
	// else as Metadata.
	Thread(ctx context.Context, id string, format jobs.Format) ([]jobs.Fetched, error)
}

// Parser makes sense of a raw message, of which it sees the first MiB. It may
// fail, panic or hang: the message is stored all the same.
type Parser func(raw []byte) (subject string, err error)

// successors is where a slice puts the task of the slice after it; in
// production a [jobs.Queue].
type successors interface {
	Put(ctx context.Context, ref jobs.TaskRef) error
}
