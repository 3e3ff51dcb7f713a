package jobs

import (
	"fmt"
	"slices"
	"time"
)

// The methods of this file decide what becomes of a message's row. A store loads the
// row, or begins with [UnknownMessage], calls one of them, and saves the row.
//
// A row may be a tombstone, of a message that was seen to be gone, or a stub, of one
// that only the mailbox's history or a snapshot has named.

// UnknownMessage is the row of a message of which nothing is stored: a stub whose
// body has yet to come.
func UnknownMessage(account, id string) Message {
	return Message{Account: account, ID: id, Stub: true, BodyWanted: true}
}

// HasBody reports whether any body of the message is stored.
func (m *Message) HasBody() bool { return m.SHA256 != "" || m.FullSHA256 != "" }

// Take lays what Google gave of the message over its row. A body is taken if there
// was none, however old the answer is, because bodies never change; metadata without
// a body leaves a row with a raw body as it is. Labels are those with the higher
// history id. A tombstone is lifted, whatever the ids say: the items of a message
// that is known to be deleted are done, so whoever fetched it has asked later.
func (m *Message) Take(got Message) {
	lifted := !m.DeletedAt.IsZero()
	newer := lifted || got.HistoryID >= m.HistoryID
	raw, full := got.SHA256 != "" && got.FullSHA256 == "", got.FullSHA256 != ""
	switch {
	case full && (newer || m.FullSHA256 == ""):
		m.FullSHA256, m.FullSize = got.FullSHA256, got.FullSize
	case raw && (newer || m.SHA256 == ""):
	case !full && !raw && (lifted || m.SHA256 == ""):
	default:
		return
	}
	if raw || m.SHA256 == "" {
		m.Size, m.Subject, m.ParseStatus = got.Size, got.Subject, got.ParseStatus
	}
	if raw {
		m.SHA256, m.ParseError = got.SHA256, got.ParseError
	}
	if newer {
		m.Labels = got.Labels
	}
	m.ThreadID, m.HistoryID = got.ThreadID, max(m.HistoryID, got.HistoryID)
	m.InternalDate, m.InternalDateMS = got.InternalDate, got.InternalDateMS
	m.DeletedAt, m.Stub, m.BodyWanted = time.Time{}, false, false
}

// Oversize says that the message's body is not fetched because of its size.
func (m *Message) Oversize() {
	if !m.HasBody() {
		m.ParseStatus = ParseNever
	}
}

// NotFound makes a tombstone of a row without a body, because a job of a kind was
// told that there is no such message. A message that only the history has named is
// left to live sync, which asks for it a few times.
func (m *Message) NotFound(kind Kind, now time.Time) {
	if !m.HasBody() && m.DeletedAt.IsZero() && (!m.Stub || kind == MailSync) {
		m.DeletedAt, m.Stub, m.BodyWanted = now, true, false
	}
}

// Change applies what one record of the mailbox's history says of the message. Ok is
// false, and the row as it was, if the row has seen the record already. Added says
// that the body is to be fetched because of it. SpamTrash says that bodies of spam
// and trash are wanted.
func (m *Message) Change(record uint64, changes []Change, spamTrash bool, now time.Time) (added, ok bool) {
	if m.HistoryID >= record {
		return false, false
	}
	for _, c := range changes {
		added = added || c.Kind == MessageAdded
		m.change(c, now)
	}
	m.HistoryID = record
	m.wantBody(spamTrash)
	return added && m.BodyWanted, true
}

// change applies one change. The record's own list of labels comes first, because it
// is complete; the labels that it added or removed hold in any case.
func (m *Message) change(c Change, now time.Time) {
	if m.ThreadID == "" {
		m.ThreadID = c.ThreadID
	}
	if c.Labels != nil {
		m.Labels = slices.Clone(c.Labels)
	}
	switch c.Kind {
	case MessageAdded:
		m.DeletedAt = time.Time{}
	case MessageDeleted:
		m.DeletedAt = now
	case LabelsAdded:
		m.Labels = slices.Concat(m.Labels, c.Changed)
		if m.Stub { // its tombstone may be there because a fetch came too early
			m.DeletedAt = time.Time{}
		}
	case LabelsRemoved:
		m.Labels = slices.DeleteFunc(slices.Clone(m.Labels), func(l string) bool { return slices.Contains(c.Changed, l) })
	}
	slices.Sort(m.Labels)
	m.Labels = slices.Compact(m.Labels)
}

// Listed applies a complete snapshot that lists the message, by some labels. It
// reports false, and leaves the row, if that is newer than the snapshot.
func (m *Message) Listed(s Snapshot, labels []string, spamTrash bool) bool {
	if m.HistoryID > s.HistoryID {
		return false
	}
	m.HistoryID, m.DeletedAt, m.Labels = s.HistoryID, time.Time{}, s.Labels(labels, m.Labels)
	m.wantBody(spamTrash)
	return true
}

// Absent makes a tombstone of a row that a complete snapshot does not list.
func (m *Message) Absent(s Snapshot, now time.Time) {
	m.HistoryID, m.DeletedAt, m.BodyWanted = s.HistoryID, now, false
}

// wantBody decides whether a stub's body is to be fetched.
func (m *Message) wantBody(spamTrash bool) {
	hidden := slices.Contains(m.Labels, "SPAM") || slices.Contains(m.Labels, "TRASH")
	m.BodyWanted = m.Stub && m.DeletedAt.IsZero() && (spamTrash || !hidden)
}

// Validate reports what a result lacks that its outcome needs.
func (r Result) Validate() error {
	switch r.Outcome {
	case ItemGone, ItemSkipped:
		return nil
	case ItemOversize:
		if r.Message != nil && r.Message.ID != r.ID {
			return fmt.Errorf("item %q is oversize as message %q", r.ID, r.Message.ID)
		}
		return nil
	case ItemStored, ItemNoted:
		switch {
		case r.Message == nil:
			return fmt.Errorf("item %q is %s without a message", r.ID, r.Outcome)
		case r.Message.ID != r.ID:
			return fmt.Errorf("item %q is %s as message %q", r.ID, r.Outcome, r.Message.ID)
		case r.Outcome == ItemNoted:
			return nil
		case r.Message.FullSHA256 != "":
			return CheckSum(r.Message.FullSHA256)
		}
		return CheckSum(r.Message.SHA256)
	case ItemFailed, ItemDeferred:
		if r.Failure == nil {
			return fmt.Errorf("item %q is %s without a failure", r.ID, r.Outcome)
		}
		return nil
	}
	return fmt.Errorf("item %q has the unknown outcome %q", r.ID, r.Outcome)
}

// Count counts an item that has its result. Whatever ends an item is progress.
func (j *Job) Count(r Result) {
	p := &j.Progress
	switch r.Outcome {
	case ItemDeferred:
		return
	case ItemFailed:
		p.Failed++
	case ItemGone:
		p.Gone++
	case ItemSkipped:
		p.Skipped++
	case ItemOversize:
		p.Oversize++
	case ItemNoted:
		p.Noted++
	case ItemStored:
		p.Stored++
		p.Bytes += r.Message.Brought()
		if r.Message.ParseStatus == ParseFailed {
			p.ParseFailed++
		}
	}
	j.Progressed()
}
