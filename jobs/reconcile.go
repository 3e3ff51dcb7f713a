package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A ReconcileReason says why a mailbox is read as a whole.
type ReconcileReason string

// The reasons.
const (
	ReconcileAsked   ReconcileReason = "asked"             // a schedule, or somebody, asked for it
	HistoryTooOld    ReconcileReason = "history-too-old"   // Google no longer knows the history from the cursor on
	HistoryBackwards ReconcileReason = "history-backwards" // Google's newest history id is lower than the cursor
)

// Text is the reason in words, as the rest of "the mailbox is read as a whole: ...".
func (r ReconcileReason) Text() string {
	switch r {
	case HistoryTooOld:
		return "its history no longer reaches back to where the last sync ended"
	case HistoryBackwards:
		return "its history runs backwards, as that of a mailbox does which was made anew under its address"
	case ReconcileAsked:
		return "it was asked for"
	}
	return string(r)
}

// ReconcileEvery is the least time between two readings of a whole mailbox that
// its history asks for.
const ReconcileEvery = 24 * time.Hour

// SnapshotPhase is a step of reading a whole mailbox.
type SnapshotPhase string

// The phases of a snapshot, in their order.
const (
	SnapshotAsked  SnapshotPhase = "asked"  // it has yet to begin
	SnapshotAge    SnapshotPhase = "age"    // rows with a history id above the pinned one get that
	SnapshotIDs    SnapshotPhase = "ids"    // every id is listed, spam and trash too
	SnapshotLabels SnapshotPhase = "labels" // the ids of each label are listed
	SnapshotMerge  SnapshotPhase = "merge"  // what was listed is written to the rows
	SnapshotAbsent SnapshotPhase = "absent" // rows that were not listed become tombstones
	SnapshotClear  SnapshotPhase = "clear"  // the lists are dropped
)

// A Snapshot is how far the reading of a whole mailbox has come. The zero value:
// none is under way.
//
// What it lists is true of a moment after HistoryID was pinned, so it replaces all
// that rows were told before, whatever their history ids are: these are lowered to
// the pinned one before the listing begins. What is told of a message later, by the
// history or by a fetch, has a higher one, and stays.
type Snapshot struct {
	Phase     SnapshotPhase `json:"phase,omitempty"`
	HistoryID uint64        `json:"history_id,omitempty"` // pinned before the first list call
	Expected  int64         `json:"expected,omitempty"`   // messages that the profile promised
	Seen      int64         `json:"seen,omitempty"`       // ids listed
	Label     string        `json:"label,omitempty"`      // labels: the one being listed
	Token     string        `json:"token,omitempty"`      // of the next page
	After     string        `json:"after,omitempty"`      // age, merge, absent: the id before the next one
	Without   string        `json:"without,omitempty"`    // labels that were deleted meanwhile, each with a newline after it
	Refused   string        `json:"refused,omitempty"`    // likewise, labels that are there but cannot be listed by: rows keep theirs
	Asked     bool          `json:"asked,omitempty"`      // this reading, or the last, was asked for: it need not wait for a day to pass
	Gap       bool          `json:"gap,omitempty"`        // the cursor has moved to a pinned id, and only the snapshot knows what was before

	Failures int       `json:"failures,omitempty"` // in a row, without progress between them
	Restarts int       `json:"restarts,omitempty"` // times it was begun anew
	NextTry  time.Time `json:"next_try,omitzero"`  // it is left alone until then
	Error    string    `json:"error,omitempty"`    // the last failure
}

// Short reports whether a complete listing held less than half of what the
// profile promised. Nothing may be taken for deleted by it then.
func (s Snapshot) Short() bool { return s.Seen < s.Expected/2 }

// Leave leaves a label out that Google does not list by, and which its list of labels
// holds or does not.
func (s Snapshot) Leave(label string, holds bool) Snapshot {
	if holds {
		s.Refused += label + "\n"
	} else {
		s.Without += label + "\n"
	}
	return s
}

// Labels are the labels of a message that was listed by some, and had others before.
func (s Snapshot) Labels(listed, before []string) []string {
	in := func(lines, label string) bool { return strings.Contains("\n"+lines, "\n"+label+"\n") }
	var labels []string
	for _, l := range listed {
		if !in(s.Without, l) {
			labels = append(labels, l)
		}
	}
	for _, l := range before {
		if in(s.Refused, l) {
			labels = append(labels, l)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels) // a page may have come twice
}

// Due reports whether there is a step of the reading to be done now, once it is
// [Cursor.Due].
func (s Snapshot) Due(now time.Time) bool { return s.Phase != "" && over(s.NextTry, now) }

// over reports whether a moment has come. One that no rule here can have named, since
// it is too far ahead, is not believed.
func over(moment, now time.Time) bool {
	return !now.Before(moment) || moment.Sub(now) > ReconcileEvery
}

// snapshotTries is how many failures in a row make a snapshot be begun anew.
const snapshotTries = 5

// Fail says that a step of the reading failed. It is tried again after a time that
// doubles; when it fails on, or has listed too little to be believed, the snapshot is
// begun anew.
func (s Snapshot) Fail(reason string, now time.Time) Snapshot {
	if s.Failures+1 >= snapshotTries || s.Phase == SnapshotMerge && s.Short() {
		return s.Restart(reason, now)
	}
	s.Failures, s.Error = s.Failures+1, reason
	s.NextTry = now.Add(Doubled(firstFailure, s.Failures-1, longestPause))
	return s
}

// Restart drops a snapshot that leads nowhere. It is begun anew after a time that
// doubles with each restart.
func (s Snapshot) Restart(reason string, now time.Time) Snapshot {
	return Snapshot{
		Phase: SnapshotAsked, Asked: s.Asked, Gap: s.Gap, Restarts: s.Restarts + 1, Error: reason,
		NextTry: now.Add(Doubled(firstExpiry, s.Restarts, longestPause)),
	}
}

// Progress notes that the reading has come further.
func (s Snapshot) Progress() Snapshot {
	s.Failures, s.NextTry, s.Error = 0, time.Time{}, ""
	return s
}

// Backwards reports whether a page of the history shows that it runs backwards. While
// the mailbox is read as a whole for that very reason, it is known already.
func (c Cursor) Backwards(p HistoryPage) bool {
	return p.HistoryID != 0 && p.HistoryID < c.HistoryID && !(c.Snapshot.Gap && c.ReconcileReason == HistoryBackwards)
}

// AskWhole asks for the mailbox to be read as a whole. What is under way goes on, without
// waiting any longer.
func (c Cursor) AskWhole() Cursor {
	if c.Snapshot.Phase == "" {
		c.Snapshot.Phase = SnapshotAsked
		if !c.Reconcile {
			c.ReconcileReason = ReconcileAsked
		}
	}
	c.Snapshot.Asked, c.Snapshot.NextTry = true, time.Time{}
	return c
}

// Expire says that the history cannot be read from the cursor on, so that the
// mailbox has to be read as a whole. A snapshot that is under way is older than the
// gap, and begun anew.
func (c Cursor) Expire(reason ReconcileReason, now time.Time) Cursor {
	switch c.Snapshot.Phase {
	case "":
		c.Snapshot = Snapshot{Phase: SnapshotAsked, Asked: c.ReconcileReason == ReconcileAsked}
	case SnapshotAsked:
		c.Snapshot.Asked = c.Snapshot.Asked || !c.Reconcile
	default:
		c.Snapshot = c.Snapshot.Restart("the history from its beginning on cannot be read", now)
	}
	c.Reconcile, c.ReconcileReason = true, reason
	return c
}

// ReadingFrom is when the reading of the whole mailbox that is to be done goes on; zero:
// at any time. For the sake of its history a mailbox is read so once a day at most.
func (c Cursor) ReadingFrom() time.Time {
	from := c.Snapshot.NextTry
	if s := c.Snapshot; c.Reconcile && s.Phase == SnapshotAsked && !s.Asked && !s.Gap && !c.ReconciledAt.IsZero() {
		if next := c.ReconciledAt.Add(ReconcileEvery); next.After(from) {
			return next
		}
	}
	return from
}

// Due reports whether there is a step of reading the whole mailbox to be done now.
func (c Cursor) Due(now time.Time) bool {
	return c.Snapshot.Phase != "" && over(c.ReadingFrom(), now)
}

// Recover says that the history can be read from the cursor on after all. A reading
// that was asked for is done all the same.
func (c Cursor) Recover() Cursor {
	if !c.Reconcile || c.Snapshot.Gap {
		return c
	}
	c.Reconcile = false
	switch {
	case c.Snapshot.Phase != SnapshotAsked:
	case c.Snapshot.Asked:
		c.ReconcileReason = ReconcileAsked
	default:
		c.Snapshot = Snapshot{}
	}
	return c
}

// BeginReading begins the reading of the whole mailbox with what its profile says now.
func (c Cursor) BeginReading(p Profile) Cursor {
	c.Snapshot = Snapshot{
		Phase: SnapshotAge, HistoryID: p.HistoryID, Expected: p.Messages,
		Asked: c.Snapshot.Asked, Gap: c.Snapshot.Gap, Restarts: c.Snapshot.Restarts,
	}
	if p.HistoryID < c.HistoryID {
		c.Reconcile, c.ReconcileReason = true, HistoryBackwards
	}
	return c
}

// Aged says that no row has a history id above the pinned one any more, so that the
// listing may begin. Where the history has a gap, it is read from the pinned id on
// meanwhile.
func (c Cursor) Aged() Cursor {
	c.Snapshot.Phase, c.Snapshot.After = SnapshotIDs, ""
	if c.Reconcile {
		c.HistoryID, c.Snapshot.Gap = c.Snapshot.HistoryID, true
	}
	return c
}

// Reconciled says that the reading of the whole mailbox is complete.
func (c Cursor) Reconciled(now time.Time) Cursor {
	c.Reconcile, c.Snapshot, c.ReconciledAt = false, Snapshot{}, now
	return c
}

// Standstill says why a history that cannot be read from the cursor on is not
// replaced by reading the mailbox as a whole now, and until when.
func (c Cursor) Standstill() string {
	text := "the mailbox has to be read as a whole: " + c.ReconcileReason.Text()
	if !c.ReconciledAt.IsZero() {
		text += fmt.Sprintf("; it was last read so at %s, which is done once a day for this reason", c.ReconciledAt.Format(time.RFC3339))
	}
	if c.Snapshot.Error != "" {
		text += "; the last try failed: " + c.Snapshot.Error
	}
	return text + fmt.Sprintf("; it is read again at %s at the earliest", c.ReadingFrom().Format(time.RFC3339))
}
