package jobs

import (
	"errors"
	"time"
)

// ErrNoCursor says that a mailbox has no history cursor, because no backfill of
// the whole of it has begun.
var ErrNoCursor = errors.New("the mailbox has no history cursor")

// ChangeKind is what happened to a message.
type ChangeKind string

// The kinds of change.
const (
	MessageAdded   ChangeKind = "added"
	MessageDeleted ChangeKind = "deleted" // for good; a message in the trash is not
	LabelsAdded    ChangeKind = "labels-added"
	LabelsRemoved  ChangeKind = "labels-removed"
)

// A Change is what a history record tells of one message.
type Change struct {
	Kind         ChangeKind
	ID, ThreadID string
	Labels       []string // all that the message has, as the record says; nil: it does not say
	Changed      []string // the labels that were added or removed
}

// A HistoryRecord is one step of a mailbox's history.
type HistoryRecord struct {
	ID      uint64
	Changes []Change
}

// HistoryPage is one page of a mailbox's history.
type HistoryPage struct {
	Records   []HistoryRecord // their ids rise
	Next      string          // token of the next page; "": this was the last
	HistoryID uint64          // the mailbox's newest change when the page was made
}

// A Cursor is where the live sync of a mailbox stands.
type Cursor struct {
	Account      string    `json:"account"`
	HistoryID    uint64    `json:"history_id"`             // all changes up to here are in the store, unless Reconcile
	SpamTrash    bool      `json:"spam_trash"`             // bodies of spam and trash are wanted too
	Format       Format    `json:"format,omitempty"`       // in which bodies are brought; raw if empty
	AskedAt      time.Time `json:"asked_at,omitzero"`      // a sync was asked for that has yet to begin
	BegunAt      time.Time `json:"begun_at,omitzero"`      // when the last one began
	SyncedAt     time.Time `json:"synced_at,omitzero"`     // when one last came to the end of the history
	Reconcile    bool      `json:"reconcile"`              // the history has a gap, which only reading the mailbox as a whole closes
	ReconciledAt time.Time `json:"reconciled_at,omitzero"` // when the mailbox was last read as a whole
	Snapshot     Snapshot  `json:"snapshot,omitzero"`      // how far reading it as a whole has come

	// ReconcileReason says why the mailbox is, or was last, read as a whole.
	ReconcileReason ReconcileReason `json:"reconcile_reason,omitempty"`
}
