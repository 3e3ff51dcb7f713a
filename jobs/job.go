package jobs

import (
	"math"
	"time"
)

// Kind says what a job brings where.
type Kind string

// The kinds of job.
const (
	MailBackfill Kind = "mail-backfill" // brings the whole of one mailbox, or a part of it, into the store
	MailSync     Kind = "mail-sync"     // brings what has changed in a mailbox since its cursor
	CalendarSync Kind = "calendar-sync" // brings an account's calendars into the store, and keeps them in step
)

// State is where a job stands.
type State string

// The states of a job; the package comment draws how they follow each other.
const (
	Queued                State = "queued"
	Running               State = "running"
	Waiting               State = "waiting" // for quota, or after a passing fault, until Job.WaitUntil
	Paused                State = "paused"  // until somebody resumes it
	Blocked               State = "blocked" // the account or the project must act first
	Completed             State = "completed"
	CompletedWithFailures State = "completed-with-failures"
	Cancelled             State = "cancelled" // what was stored stays
	Failed                State = "failed"
)

// Terminal reports whether a job in state s has no more work to do by itself.
func (s State) Terminal() bool {
	switch s {
	case Blocked, Completed, CompletedWithFailures, Cancelled, Failed:
		return true
	}
	return false
}

// Live reports whether a job in state s must have a task or an owner.
func (s State) Live() bool { return s != Paused && !s.Terminal() }

// DefaultClass is the priority class of accounts for which no other is set.
const DefaultClass = "default"

// Account is one Google user whose data is synced. Quota is counted by
// (Project, QuotaUser).
type Account struct {
	Email     string    `json:"email"`
	Project   string    `json:"project"`         // a Google Cloud project named in the settings
	Tenant    string    `json:"tenant"`          // whose share of the quota it has
	Class     string    `json:"class,omitempty"` // of priority, named in the settings; the tenant's if empty
	CreatedAt time.Time `json:"created_at"`

	// Mailbox is the address by which Google names the mailbox; empty until its first
	// answer. Where it is another than Email, the account is an alias.
	Mailbox string `json:"mailbox,omitempty"`
	// SharedWith are the other accounts of the same mailbox; only where one account was
	// asked for.
	SharedWith []string `json:"shared_with,omitempty"`
}

// QuotaUser is the user whose quota the account's calls are counted in: one for each
// mailbox, by whatever names it is known.
func (a Account) QuotaUser() string {
	if a.Mailbox != "" {
		return a.Mailbox
	}
	return a.Email
}

// Alias reports whether the account is another name of a mailbox.
func (a Account) Alias() bool { return a.Mailbox != "" && a.Mailbox != FoldAddress(a.Email) }

// Checkpoint is how far a backfill has come in its listing. Which of the listed
// ids are done stands beside it, one row each.
type Checkpoint struct {
	HistoryID uint64 `json:"history_id"` // pinned before the first list call; 0: not yet
	PageToken string `json:"page_token"` // of the next page to list; "": from the top
	Listed    bool   `json:"listed"`     // the listing is complete, or was cut

	// Cut says that there is more to list from PageToken on than the filter asks
	// for. It is listed when some of what was listed turns out not to count.
	Cut bool `json:"cut,omitempty"`
	// Before bounds the listing to what is older, after page tokens did not work;
	// what is newer was listed by then. Zero: there is no bound.
	Before time.Time `json:"before,omitzero"`
}

// Progress counts a job's items. Done = Stored + Known + Gone + Skipped +
// Oversize + Failed.
type Progress struct {
	Expected    int64 `json:"expected"` // what the profile promises; an estimate until Listed is complete
	Listed      int64 `json:"listed"`
	Noted       int64 `json:"noted,omitempty"`    // metadata stored ahead of the body
	Stored      int64 `json:"stored"`             // fetched and stored by this job
	Known       int64 `json:"known"`              // stored before, skipped without a call
	Gone        int64 `json:"gone"`               // deleted at Google between list and get
	Skipped     int64 `json:"skipped"`            // seen to be outside the job's filter
	Oversize    int64 `json:"oversize,omitempty"` // metadata stored; the body is larger than the settings let through
	Failed      int64 `json:"failed"`             // given up; see the failure list
	ParseFailed int64 `json:"parse_failed"`       // stored raw, but no mail reader understands them; part of Stored
	Bytes       int64 `json:"bytes"`              // of messages stored, with their attachments
}

// Done is the number of items that need no more work.
func (p Progress) Done() int64 {
	return p.Stored + p.Known + p.Gone + p.Skipped + p.Oversize + p.Failed
}

// Job is a job's row. Times are UTC; a zero time means "not yet" or "none".
type Job struct {
	ID         string     `json:"id"`
	Kind       Kind       `json:"kind"`
	Account    string     `json:"account"`
	Project    string     `json:"project"`
	Filter     Filter     `json:"filter,omitzero"`
	State      State      `json:"state"`
	Wanted     State      `json:"wanted,omitempty"` // Paused or Cancelled: what the owner is asked to come to
	Epoch      int64      `json:"epoch"`            // rises when the job changes owner; fences every write
	Slice      int64      `json:"slice"`            // the slice that is next or running
	Checkpoint Checkpoint `json:"checkpoint"`
	Progress   Progress   `json:"progress"`
	Admission  Admission  `json:"place,omitempty"` // "wanted": the job waits for admission
	Units      int64      `json:"units"`           // of quota, spent by its slices

	WaitingFor string    `json:"waiting_for,omitempty"` // the limit, or the fault, that the job waits for
	WaitUntil  time.Time `json:"wait_until,omitzero"`
	QuotaWait  bool      `json:"quota_wait,omitempty"` // its last wait was for quota, not for a fault to pass
	LastError  string    `json:"last_error,omitempty"`
	Refusals   int       `json:"refusals"` // in a row, without progress between them
	Failures   int       `json:"failures"` // in a row, without progress between them
	// FailingSince is when the first of those failures was.
	FailingSince time.Time `json:"failing_since,omitzero"`
	Requeued     int64     `json:"requeued"` // times the job went back to the queue for quota

	LeaseUntil time.Time `json:"lease_until,omitzero"` // zero: nobody owns it now
	CreatedAt  time.Time `json:"created_at"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// Trouble is what is wrong with the job now: its last error, unless the job has got
// beyond that since.
func (j Job) Trouble() string {
	switch {
	case j.State == Completed || j.State == Cancelled:
		return ""
	case j.State.Terminal() || j.Failures > 0 && !j.QuotaWait:
		return j.LastError
	}
	return ""
}

// Short reports whether a listing that is complete held less than half of the
// messages that the profile promised. The two count differently, by spam and
// trash and what arrives meanwhile, but not by that much: Google has answered
// with too little, or most of the mailbox was deleted.
func (j Job) Short() bool {
	return j.Filter.Whole() && j.Checkpoint.Listed && j.Progress.Listed < j.Progress.Expected/2
}

// Room is how many more messages the job's filter asks for than were listed.
// Those that are outside of it or gone do not count.
func (j Job) Room() int64 {
	if j.Filter.First == 0 {
		return math.MaxInt64
	}
	return max(0, j.Filter.First-(j.Progress.Listed-j.Progress.Skipped-j.Progress.Gone))
}

// ListsOn reports whether the job has more to list.
func (j Job) ListsOn() bool {
	return !j.Checkpoint.Listed || j.Checkpoint.Cut && j.Room() > 0
}

// Search returns what the job lists next.
func (j Job) Search() Search {
	f := j.Filter
	if b := j.Checkpoint.Before; !b.IsZero() && (f.Before.IsZero() || b.Before(f.Before)) {
		f.Before = b
	}
	return f.Search()
}

// Ref names the task that carries the job's next or running slice.
func (j Job) Ref() TaskRef { return TaskRef{Job: j.ID, Kind: j.Kind, Epoch: j.Epoch, Slice: j.Slice} }

// BackfillID is the id of the backfill of an account's whole mailbox, in format
// raw. There is one per mailbox and filter, so starting it twice gives the same
// job; see [Filter.BackfillID].
func BackfillID(email string) string { return Filter{}.BackfillID(email) }

// SyncID is the id of the live sync of an account's mailbox.
func SyncID(email string) string { return "sync:" + FoldAddress(email) }
