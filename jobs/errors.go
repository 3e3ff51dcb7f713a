package jobs

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the store that the work depends on.
var (
	// ErrStale says that the job has gone on under another epoch: whoever gets
	// it no longer owns the job and must stop, without a further write.
	ErrStale = errors.New("the job has gone on under another owner")
	// ErrSliceDone says that this slice was completed before; its successor
	// exists or must be made.
	ErrSliceDone = errors.New("the slice was completed before")
	// ErrHeld says that another run of the job still holds its lease.
	ErrHeld = errors.New("another run holds the job's lease")
	// ErrNoRoom says that the store's disk is full. Nothing of what was to be
	// written counts, and the same write succeeds once there is room.
	ErrNoRoom = errors.New("the disk is full")
	// ErrDamaged says that what the disk has of a stored body is not what was stored.
	ErrDamaged = errors.New("damaged")
	// ErrNotFound says that there is no such account or job.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the account exists already.
	ErrExists = errors.New("exists already")
)

// A StateError says that a job's state does not allow what was asked for, and what
// to do instead.
type StateError struct {
	Verb  string // what was asked for: "pause"
	Job   string
	State State
	Next  string // what to do instead
}

func (e *StateError) Error() string {
	return fmt.Sprintf("cannot %s %s, which is %s; %s", e.Verb, e.Job, e.State, e.Next)
}

// Class says what an answer of Google's means for the work.
type Class string

// The classes of an answer that is not a success. Being refused for quota by
// our own ledger is not among them: that is a *quota.DeniedError.
const (
	ClassQuota       Class = "quota"       // Google refused for quota: wait, nothing failed
	ClassConcurrency Class = "concurrency" // too many of the user's calls in flight: fewer at once, nothing failed
	ClassTransient   Class = "transient"   // try again later
	ClassGone        Class = "gone"        // the item no longer exists: a result, not a fault
	ClassItem        Class = "item"        // this item will never work
	ClassCursor      Class = "cursor"      // a page token or history id no longer works: start over
	ClassExpired     Class = "expired"     // a sync token no longer works: read everything again
	ClassSearch      Class = "search"      // a listing that Google does not make sense of
	ClassForbidden   Class = "forbidden"   // this item or calendar is not for the account to read; others may be
	ClassAccount     Class = "account"     // the account must act: token, scope, mail switched off
	ClassProject     Class = "project"     // the Google Cloud project is misconfigured
)

// A CallError is a Google call that did not succeed, with what it means.
type CallError struct {
	Class  Class
	Reason string        // Google's reason, for instance "backendError"
	Wait   time.Duration // for ClassQuota and ClassConcurrency: how long to leave Google alone; 0: unknown
	Limit  string        // for ClassQuota: what refused the call, for people; "" if unknown
	Err    error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s (%s, %s)", e.Err, e.Class, e.Reason)
}

func (e *CallError) Unwrap() error { return e.Err }
