package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Profile is what a mailbox says of itself.
type Profile struct {
	Email     string
	Messages  int64  // an upper estimate: spam and trash are counted, a listing leaves them out
	HistoryID uint64 // the mailbox's newest change; pinned before a crawl
}

// Page is one page of a listing.
type Page struct {
	IDs     []string
	Threads []string // of the IDs, in their order; nil: not known
	Next    string   // token of the next page; "": this was the last
}

// Fetched is what Google says of a message beside its raw bytes.
type Fetched struct {
	ID, ThreadID string
	HistoryID    uint64
	InternalDate time.Time
	Labels       []string
	SizeEstimate int64  // of the raw message, in bytes
	Subject      string // where not the raw message was asked for

	JSON        []byte       // Google's answer as it is, where format full was asked for
	Attachments []Attachment // of format full: the parts whose content comes by itself
}

// An Attachment is a part of a message in format full that has a file's name, or whose
// content does not stand in the message.
type Attachment struct {
	Part     string `json:"part"` // its name within the message, such as "1" or "0.2"
	Filename string `json:"filename"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`   // of the content, in bytes
	SHA256   string `json:"sha256"` // of the content, lower-case hex

	ID      string `json:"-"` // by which Google gives the content, for a while
	Content []byte `json:"-"` // where it stands in the message, or is nothing; nil: Google gives it by ID
}

// A Label is a label of a mailbox.
type Label struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ParseStatus says whether a mail reader can make sense of a stored message.
type ParseStatus string

// The parse states. The raw bytes are kept in either case.
const (
	Parsed      ParseStatus = "ok"
	ParseFailed ParseStatus = "failed"
	ParseLater  ParseStatus = "later"   // the body has yet to come
	ParseNever  ParseStatus = "skipped" // the body is larger than the settings let through
)

// Message is a stored message's row. Its raw bytes are the blob SHA256, and what
// format full brings is the blob FullSHA256 with its attachments; either may be
// missing.
type Message struct {
	Account      string      `json:"account"`
	ID           string      `json:"id"`
	ThreadID     string      `json:"thread_id"`
	HistoryID    uint64      `json:"history_id"`
	InternalDate time.Time   `json:"internal_date,omitzero"` // missing where Google gives none
	Labels       []string    `json:"labels"`
	Size         int64       `json:"size"`   // of the raw message, in bytes
	SHA256       string      `json:"sha256"` // of the raw message, lower-case hex
	Subject      string      `json:"subject"`
	ParseStatus  ParseStatus `json:"parse_status"`
	ParseError   string      `json:"parse_error,omitempty"`

	// InternalDateMS is the internal date in milliseconds since 1970, where it lies
	// beyond the years that can be written.
	InternalDateMS int64 `json:"internal_date_ms,omitempty"`

	LabelNames  []string     `json:"label_names,omitempty"` // of Labels, in their order, where known
	FullSHA256  string       `json:"full_sha256,omitempty"` // of Google's answer in format full
	FullSize    int64        `json:"full_size,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"` // of format full; only where one message was asked for

	DeletedAt time.Time `json:"deleted_at,omitzero"` // when it was seen to be gone: a tombstone
	Stub      bool      `json:"stub,omitempty"`      // known from the mailbox's history only

	BodyWanted bool `json:"-"` // of a stub: its body has yet to come
}

// Received is when Gmail received the message, also beyond the years that can be
// written; zero if that is not known.
func (m Message) Received() time.Time {
	if m.InternalDateMS != 0 {
		return time.UnixMilli(m.InternalDateMS).UTC()
	}
	return m.InternalDate
}

// Brought is how many bytes came with the message: those of its raw form, or of its
// answer in format full and of its attachments.
func (m Message) Brought() int64 {
	if m.FullSHA256 == "" {
		return m.Size
	}
	n := m.FullSize
	for _, a := range m.Attachments {
		n += a.Size
	}
	return n
}

// Item is one listed id that a job has yet to deal with.
type Item struct {
	Seq      int64 // its place in the listing, from 1
	ID       string
	Attempts int    // failed attempts so far
	Noted    bool   // its metadata is stored
	Thread   string // "": not known
	Size     int64  // of the raw message, where its metadata is stored; 0: not known
}

// Outcome is what became of an item.
type Outcome string

// The outcomes of an item. Deferred ones are tried again later.
const (
	ItemStored   Outcome = "stored"
	ItemNoted    Outcome = "noted" // metadata stored; the body comes in a later pass
	ItemGone     Outcome = "gone"
	ItemSkipped  Outcome = "skipped"  // outside the job's filter
	ItemOversize Outcome = "oversize" // metadata stored; the body is larger than the settings let through
	ItemFailed   Outcome = "failed"
	ItemDeferred Outcome = "deferred"
)

// The states of an item that has no outcome, beside the outcomes.
const (
	ItemPending Outcome = "pending"
	ItemKnown   Outcome = "known" // stored before, by another run or by live sync
)

// Result is what became of one item; the store commits results in batches.
type Result struct {
	ID      string
	Outcome Outcome
	Message *Message  // set when stored or noted, and when oversize unless its row is there
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

// CheckSum refuses what is not the sum of a body: a SHA-256 in lower-case hex.
func CheckSum(sum string) error {
	if len(sum) != hex.EncodedLen(sha256.Size) || strings.Trim(sum, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not a SHA-256 in lower-case hex", sum)
	}
	return nil
}
