package jobs

import (
	"fmt"
	"time"
)

// TakeProfile notes what the mailbox says of itself. The first profile of a run pins
// the history id. How many messages to expect follows the filter, as far as the
// profile tells.
func (j *Job) TakeProfile(p Profile) {
	if j.Checkpoint.HistoryID == 0 {
		j.Checkpoint.HistoryID = p.HistoryID
	}
	switch f := j.Filter; {
	case f.Whole():
		j.Progress.Expected = p.Messages
	case f.First > 0:
		j.Progress.Expected = min(f.First, p.Messages)
	}
}

// AddItems puts the ids of a page on the job's list, as many as its filter asks for,
// and reports whether it took all of them. Add puts one id on the list as item seq, and
// returns the item's state, and whether it is new on the list: ids that were listed
// before stay as they are.
func (j *Job) AddItems(p Page, add func(id, thread string, seq int64) (state Outcome, fresh bool, err error)) (all bool, err error) {
	for i, id := range p.IDs {
		if j.Room() == 0 {
			return false, nil
		}
		thread := ""
		if j.Filter.ByThread() && i < len(p.Threads) { // only then it is worth its place in an index
			thread = p.Threads[i]
		}
		state, fresh, err := add(id, thread, j.Progress.Listed+1)
		if err != nil {
			return false, fmt.Errorf("list id %q: %w", id, err)
		}
		if !fresh {
			continue
		}
		j.Progress.Listed++
		switch state {
		case ItemKnown:
			j.Progress.Known++
		case ItemSkipped:
			j.Progress.Skipped++
		}
	}
	return true, nil
}

// ListPage adds a page of the listing by [Job.AddItems], and moves the checkpoint behind
// it. If the filter asks for a number of messages, the listing is cut behind the last
// of them, and goes on with the same page if some of them turn out not to count. A
// page with a new id is progress.
func (j *Job) ListPage(p Page, add func(id, thread string, seq int64) (state Outcome, fresh bool, err error)) error {
	before := j.Progress.Listed
	all, err := j.AddItems(p, add)
	if err != nil {
		return err
	}
	if j.Progress.Listed > before {
		j.Progressed()
	}
	c := &j.Checkpoint
	if all {
		c.PageToken = p.Next
	}
	c.Cut = j.Room() == 0 && (!all || p.Next != "")
	c.Listed = c.Cut || p.Next == ""
	return nil
}

// RestartListing makes the listing start from the top or, unless before is zero, with
// what is older than before. The ids that were listed stay on the list.
func (j *Job) RestartListing(before time.Time) {
	j.Checkpoint.PageToken, j.Checkpoint.Listed, j.Checkpoint.Cut = "", false, false
	if !before.IsZero() {
		j.Checkpoint.Before = before.UTC()
	}
}

// ListedFor is the state in which the message comes on the list of a job with a filter.
// One whose row is a tombstone is fetched: Google has it, or says once more that it has
// not.
func (m *Message) ListedFor(f Filter) Outcome {
	body := m.SHA256
	if f.Format == FormatFull {
		body = m.FullSHA256
	}
	switch {
	case body == "" || !m.DeletedAt.IsZero():
		return ItemPending
	case !f.Lets(m.InternalDate, m.Size):
		return ItemSkipped
	}
	return ItemKnown
}
