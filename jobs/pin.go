package jobs

import (
	"slices"
	"time"
)

// A Pin is the point in a mailbox's history at which a backfill of a part of the
// mailbox began. What the backfill stored may have changed at any time after it.
type Pin struct {
	HistoryID uint64 // 0: the backfill has not begun
	Live      bool   // it may store messages yet
}

// CursorStart is the history id from which live sync reads a mailbox, when the
// first backfill of the whole mailbox begins at own. That backfill does not fetch
// messages again that other backfills have stored, so live sync reads what has
// changed since the earliest of these began. Stored says that messages of the
// account are stored; without any, only backfills that are live count.
func CursorStart(own uint64, others []Pin, stored bool) uint64 {
	start := own
	for _, p := range others {
		if p.HistoryID != 0 && (stored || p.Live) {
			start = min(start, p.HistoryID)
		}
	}
	return start
}

// NewCursor is the cursor of a mailbox as the first backfill of the whole of it begins
// at its pinned history id.
func NewCursor(backfill Job, others []Pin, stored bool, now time.Time) Cursor {
	own := backfill.Checkpoint.HistoryID
	c := Cursor{Account: backfill.Account, HistoryID: CursorStart(own, others, stored), BegunAt: now}
	if RanBackwards(own, others, stored) {
		c.Snapshot.Phase, c.ReconcileReason = SnapshotAsked, HistoryBackwards
	}
	return c.Fetch(backfill.Filter)
}

// Fetch has live sync fetch bodies as a backfill with filter f does, from now on. Spam
// and trash are fetched once any backfill has fetched them.
func (c Cursor) Fetch(f Filter) Cursor {
	c.SpamTrash, c.Format = c.SpamTrash || f.SpamTrash, f.Bodies()
	return c
}

// StoresYet reports whether a backfill in state s may store messages yet.
func (s State) StoresYet() bool { return s.Live() || s == Paused || s == Blocked }

// RanBackwards reports whether a backfill that has ended began at a later point of the
// history than one that begins at own now: then the mailbox was made anew since, and
// what is stored is of another. One that is live may just have begun.
func RanBackwards(own uint64, others []Pin, stored bool) bool {
	return stored && slices.ContainsFunc(others, func(p Pin) bool { return !p.Live && p.HistoryID > own })
}
