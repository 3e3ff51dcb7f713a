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
	HistoryID    uint64    `json:"history_id"`             // all changes up to here are in the store
	SpamTrash    bool      `json:"spam_trash"`             // bodies of spam and trash are wanted too
	Format       Format    `json:"format,omitempty"`       // in which bodies are brought; raw if empty
	AskedAt      time.Time `json:"asked_at,omitzero"`      // a sync was asked for that has yet to begin
	BegunAt      time.Time `json:"begun_at,omitzero"`      // when the last one began
	SyncedAt     time.Time `json:"synced_at,omitzero"`     // when one last came to the end of the history
	Reconcile    bool      `json:"reconcile"`              // the history is too old: the mailbox is read as a whole
	ReconciledAt time.Time `json:"reconciled_at,omitzero"` // when that was last done
	Snapshot     Snapshot  `json:"snapshot,omitzero"`      // how far it has come
}

// ReconcileEvery is the least time between two readings of a whole mailbox that
// a history too old asks for.
const ReconcileEvery = 24 * time.Hour

// SnapshotPhase is a step of reading a whole mailbox.
type SnapshotPhase string

// The phases of a snapshot, in their order.
const (
	SnapshotAsked  SnapshotPhase = "asked"  // it was asked for, and has yet to begin
	SnapshotIDs    SnapshotPhase = "ids"    // every id is listed, spam and trash too
	SnapshotLabels SnapshotPhase = "labels" // the ids of each label are listed
	SnapshotMerge  SnapshotPhase = "merge"  // what was listed is written to the rows
	SnapshotAbsent SnapshotPhase = "absent" // rows that were not listed become tombstones
	SnapshotClear  SnapshotPhase = "clear"  // the lists are dropped, and the cursor moves
)

// A Snapshot is how far the reading of a whole mailbox has come. The zero value:
// none is under way.
type Snapshot struct {
	Phase     SnapshotPhase `json:"phase,omitempty"`
	HistoryID uint64        `json:"history_id,omitempty"` // pinned before the first list call
	Expected  int64         `json:"expected,omitempty"`   // messages that the profile promised
	Seen      int64         `json:"seen,omitempty"`       // ids listed
	Label     string        `json:"label,omitempty"`      // labels: the one being listed
	Token     string        `json:"token,omitempty"`      // of the next page
	After     string        `json:"after,omitempty"`      // merge, absent: the id before the next one
}

// Short reports whether a complete listing held less than half of what the
// profile promised. Nothing may be taken for deleted by it then.
func (s Snapshot) Short() bool { return s.Seen < s.Expected/2 }
