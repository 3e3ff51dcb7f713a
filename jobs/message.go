package jobs

import "time"

// Profile is what a mailbox says of itself.
type Profile struct {
	Email     string
	Messages  int64  // an upper estimate: spam and trash are counted, a listing leaves them out
	HistoryID uint64 // the mailbox's newest change; pinned before a crawl
}

// Page is one page of a listing.
type Page struct {
	IDs  []string
	Next string // token of the next page; "": this was the last
}

// Fetched is what Google says of a message beside its raw bytes.
type Fetched struct {
	ID, ThreadID string
	HistoryID    uint64
	InternalDate time.Time
	Labels       []string
	SizeEstimate int64  // of the raw message, in bytes
	Subject      string // where only the metadata was asked for
}

// ParseStatus says whether a mail reader can make sense of a stored message.
type ParseStatus string

// The parse states. The raw bytes are kept in either case.
const (
	Parsed      ParseStatus = "ok"
	ParseFailed ParseStatus = "failed"
	ParseLater  ParseStatus = "later" // the body has yet to come
)

// Message is a stored message's row. Its raw bytes are the blob SHA256.
type Message struct {
	Account      string      `json:"account"`
	ID           string      `json:"id"`
	ThreadID     string      `json:"thread_id"`
	HistoryID    uint64      `json:"history_id"`
	InternalDate time.Time   `json:"internal_date"`
	Labels       []string    `json:"labels"`
	Size         int64       `json:"size"`   // of the raw message, in bytes
	SHA256       string      `json:"sha256"` // of the raw message, lower-case hex
	Subject      string      `json:"subject"`
	ParseStatus  ParseStatus `json:"parse_status"`
	ParseError   string      `json:"parse_error,omitempty"`

	DeletedAt time.Time `json:"deleted_at,omitzero"` // when it was seen to be gone: a tombstone
	Stub      bool      `json:"stub,omitempty"`      // known from the mailbox's history only
}

// Item is one listed id that a job has yet to deal with.
type Item struct {
	Seq      int64 // its place in the listing, from 1
	ID       string
	Attempts int  // failed attempts so far
	Noted    bool // its metadata is stored
}

// Outcome is what became of an item.
type Outcome string

// The outcomes of an item. Deferred ones are tried again later.
const (
	ItemStored   Outcome = "stored"
	ItemNoted    Outcome = "noted" // metadata stored; the body comes in a later pass
	ItemGone     Outcome = "gone"
	ItemSkipped  Outcome = "skipped" // outside the job's filter
	ItemFailed   Outcome = "failed"
	ItemDeferred Outcome = "deferred"
)

// Result is what became of one item; the store commits results in batches.
type Result struct {
	ID      string
	Outcome Outcome
	Message *Message  // set when stored or noted
	Failure *Failure  // set when failed or deferred
	RetryAt time.Time // set when deferred: not before
}

// Failure is one entry of a job's failure list: an item whose last attempt did not
// succeed. It leaves the list when one does.
type Failure struct {
	Job      string    `json:"job"`
	ID       string    `json:"id"`
	Phase    string    `json:"phase"` // what was being done: "fetch", "store"
	Class    Class     `json:"class"`
	Reason   string    `json:"reason"` // Google's reason, or the error's text
	Attempts int       `json:"attempts"`
	FirstAt  time.Time `json:"first_at"`
	LastAt   time.Time `json:"last_at"`
	GivenUp  bool      `json:"given_up"` // else the item will be tried again by itself
}
