package workers

import (
	"context"
	"io"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

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

// Historian is the part of a mailbox that live sync reads. Calls and errors are
// those of a [Mailbox].
type Historian interface {
	// History returns a page of what changed after a history id. An error of
	// jobs.ClassCursor means that this is too long ago, or, with a token, that
	// the token does not work.
	History(ctx context.Context, after uint64, pageToken string) (jobs.HistoryPage, error)
	// ListAll returns a page of the ids of all messages, or of all with a
	// label; spam and trash are among them.
	ListAll(ctx context.Context, label, pageToken string) (jobs.Page, error)
	// Labels returns all labels.
	Labels(ctx context.Context) ([]jobs.Label, error)
}

// A MailWatcher is a [Mailbox] that can be watched.
type MailWatcher interface {
	// Watch makes Google tell a topic of changes until the moment that it returns.
	Watch(ctx context.Context, topic string) (until time.Time, err error)
}

// Parser reads a raw message, of which it gets the first MiB. It may fail, panic or hang:
// the message is stored all the same.
type Parser func(raw []byte) (subject string, err error)

// Calendars opens accounts' calendars, as [Google] opens mailboxes.
type Calendars interface {
	Calendar(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (Calendar, error)
}

// Calendar is one account's calendars, in the lane that they were opened for.
// Calls and errors are those of a [Mailbox]; a page is handed to use, whose error is
// returned as it is. It is safe for concurrent use.
//
// An error of jobs.ClassExpired means that the sync token no longer works, and one of
// jobs.ClassCursor that a token is invalid. Errors of jobs.ClassGone and
// jobs.ClassForbidden are about the calendar that was asked for, and no other.
type Calendar interface {
	Calendars(ctx context.Context, syncToken, pageToken string, use func(jobs.CalendarListPage) error) error
	Events(ctx context.Context, calendar, syncToken, pageToken string, use func(jobs.EventPage) error) error
}

// A CalendarWatcher is a [Calendar] that can be watched.
type CalendarWatcher interface {
	// WatchCalendar makes Google tell an address of changes of a calendar, or,
	// for an empty id, of the list, until the moment that it returns. Made is
	// false when it is sure that there is no such channel.
	WatchCalendar(ctx context.Context, calendar, id, token, address string) (resource string, until time.Time, made bool, err error)
	// StopChannel ends a channel; one that is not there is no error.
	StopChannel(ctx context.Context, id, resource string) error
}
