package gmail

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// A Mailbox is one user's mail: its messages, labels and history. It is safe
// for concurrent use, also while the server serves it.
type Mailbox struct {
	email string

	mu       sync.RWMutex
	byID     map[string]*message
	order    []*message // by internal date, then arrival; oldest first
	unsorted bool       // order needs sorting before it is read
	sequence uint32
	lastDate int64                 // internal date of the message added last
	threads  map[string]string     // of Message-IDs
	byThread map[string][]*message // in the order of arrival
	history  history
	large    int             // large messages made up so far
	deleted  map[string]bool // labels that their owner has deleted
	profile  Profile

	watch     *watch // nil: not watched
	publisher *Publisher

	tokens       page.Tokens
	attachments  uint32        // generation of attachment ids; older ones are refused
	attachmentID atomic.Uint64 // given out last
}

// A message is one stored message. Its labels and historyID change under the
// mailbox's lock; the rest never does.
type message struct {
	id, threadID string
	sequence     uint32
	content      content
	sha256       string
	internalDate int64 // ms since 1970
	head         header
	labels       []string // sorted
	historyID    uint64
}

// A MessageInfo is what a test compares with a sink.
type MessageInfo struct {
	ID     string   `json:"id"`
	SHA256 string   `json:"sha256"` // of the raw bytes, in hex
	Size   int      `json:"size"`   // bytes
	Labels []string `json:"labels"` // sorted
}

// NewMailbox makes an empty mailbox, whose watches publish through p.
func NewMailbox(email string, p *Publisher) *Mailbox {
	m := &Mailbox{
		email: email, byID: map[string]*message{}, threads: map[string]string{},
		byThread: map[string][]*message{}, deleted: map[string]bool{},
		history: history{last: firstHistoryID, floor: firstHistoryID}, publisher: p,
	}
	m.history.told = m.tell
	return m
}

// Email returns the address the mailbox was made with.
func (m *Mailbox) Email() string { return m.email }

// Add puts a message into the mailbox and returns its Gmail id: 16 hex digits
// that depend only on the address and on how many messages were added before.
// Without labels it gets INBOX. The mailbox keeps raw, which must not change.
func (m *Mailbox) Add(raw []byte, labels ...string) (id string) {
	return m.add(content{head: raw}, labels)
}

func (m *Mailbox) add(c content, labels []string) (id string) {
	if len(labels) == 0 {
		labels = []string{"INBOX"}
	}
	msg := newMessage(c, labels) // hashing is left out of the lock
	m.mu.Lock()
	defer m.mu.Unlock()
	m.insert(msg, "")
	return msg.id
}

// newMessage reads what is fixed of a message.
func newMessage(c content, labels []string) *message {
	head, _ := splitMessage(c.head)
	return &message{content: c, sha256: c.sha256(), head: head, labels: sortedLabels(labels)}
}

// insert gives a message its place, in a thread of its own choice if none is
// named, and makes history of it. The caller holds the write lock.
func (m *Mailbox) insert(msg *message, thread string) {
	m.sequence++
	msg.sequence = m.sequence
	msg.id = messageID(m.email, m.sequence)
	if msg.internalDate == 0 {
		msg.internalDate = m.dateOf(msg.head)
	}
	msg.threadID = m.threadOf(msg)
	if thread != "" {
		msg.threadID = thread
	}

	m.byID[msg.id] = msg
	if n := len(m.order); n > 0 && byDate(m.order[n-1], msg) > 0 {
		m.unsorted = true
	}
	m.order = append(m.order, msg)
	m.byThread[msg.threadID] = append(m.byThread[msg.threadID], msg)
	m.history.add(messageAdded, msg, nil)
}

// messageID puts a hash of the address before the sequence number, so that the
// same mail in two mailboxes has two ids.
func messageID(email string, sequence uint32) string {
	h := fnv.New32a()
	h.Write([]byte(wire.AddressKey(email)))
	return fmt.Sprintf("19%06x%08x", h.Sum32()&0xffffff, sequence)
}

// dateOf returns the internal date: the Date header's, or one second after the
// message before where there is none that can be taken.
func (m *Mailbox) dateOf(head header) int64 {
	date, ok := headerDate(head)
	switch {
	case ok:
	case m.lastDate == 0:
		date = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	default:
		date = m.lastDate + 1000
	}
	m.lastDate = date
	return date
}

// headerDate is the moment of the Date header, if it can be read and lies within
// 1970 to 2100.
func headerDate(head header) (ms int64, ok bool) {
	t, ok := parseDate(head.get("Date"))
	return t.UnixMilli(), ok && t.Year() >= 1970 && t.Year() <= 2100 && t.UnixMilli() >= 0
}

// threadOf joins a message to the thread of the first message it refers to that
// the mailbox knows.
func (m *Mailbox) threadOf(msg *message) string {
	thread := msg.id
	for _, ref := range strings.Fields(msg.head.get("In-Reply-To") + " " + msg.head.get("References")) {
		if known, ok := m.threads[ref]; ok {
			thread = known
			break
		}
	}
	if own := strings.TrimSpace(msg.head.get("Message-ID")); own != "" {
		if _, taken := m.threads[own]; !taken {
			m.threads[own] = thread
		}
	}
	return thread
}

// Delete removes a message for good, and reports whether it was there.
func (m *Mailbox) Delete(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	msg, ok := m.byID[id]
	if !ok {
		return false
	}
	m.remove(msg)
	return true
}

// remove takes a message out and makes history of it. The caller holds the write
// lock.
func (m *Mailbox) remove(msg *message) {
	is := func(other *message) bool { return other == msg }
	delete(m.byID, msg.id)
	m.order = slices.DeleteFunc(m.order, is)
	if thread := slices.DeleteFunc(m.byThread[msg.threadID], is); len(thread) > 0 {
		m.byThread[msg.threadID] = thread
	} else {
		delete(m.byThread, msg.threadID)
	}
	m.history.add(messageDeleted, msg, nil)
}

// Relabel adds and removes labels of a message, and reports whether the message
// is there. Labels it already has, or lacks, make no history.
func (m *Mailbox) Relabel(id string, add, remove []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	msg, ok := m.byID[id]
	if !ok {
		return false
	}
	var added, removed []string
	for _, label := range add {
		if !slices.Contains(msg.labels, label) && !slices.Contains(added, label) {
			added = append(added, label)
		}
	}
	for _, label := range remove {
		if slices.Contains(msg.labels, label) && !slices.Contains(removed, label) {
			removed = append(removed, label)
		}
	}
	if len(added) > 0 {
		msg.labels = sortedLabels(append(slices.Clone(msg.labels), added...))
		m.history.add(labelAdded, msg, added)
	}
	if len(removed) > 0 {
		msg.labels = slices.DeleteFunc(slices.Clone(msg.labels), func(l string) bool { return slices.Contains(removed, l) })
		m.history.add(labelRemoved, msg, removed)
	}
	return true
}

// Messages returns what the mailbox holds, newest first.
func (m *Mailbox) Messages() []MessageInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	infos := make([]MessageInfo, 0, len(m.order))
	for _, msg := range slices.Backward(m.sorted()) {
		infos = append(infos, MessageInfo{ID: msg.id, SHA256: msg.sha256, Size: msg.content.size(), Labels: msg.labels})
	}
	return infos
}

// HistoryID returns the id of the latest change.
func (m *Mailbox) HistoryID() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.history.last
}

// ExpireHistory makes every history id before the present one too old.
func (m *Mailbox) ExpireHistory() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history.expire()
}

// MakeAnew puts another, empty mailbox in the place of this one under its address: its
// history begins far below where that of the old one ends, and knows nothing of it.
// Ids of messages do not come again.
func (m *Mailbox) MakeAnew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byID, m.byThread, m.threads, m.order = map[string]*message{}, map[string][]*message{}, map[string]string{}, nil
	m.deleted = map[string]bool{}
	m.history.last, m.history.floor, m.history.records = anewHistoryID, anewHistoryID, nil
	m.tokens.Generation++
	m.attachments++
}

// DeleteLabel deletes a label of the user's: from every message that has it, which
// makes history, and from the mailbox, which from then on refuses to list by it. It
// reports whether there was such a label.
func (m *Mailbox) DeleteLabel(label string) bool {
	m.mu.Lock()
	known := !slices.Contains(systemLabels, label) && slices.Contains(m.labelIDs(), label)
	var ids []string
	if known {
		m.deleted[label] = true
		for _, msg := range m.order {
			if msg.has(label) {
				ids = append(ids, msg.id)
			}
		}
	}
	m.mu.Unlock()
	for _, id := range ids {
		m.Relabel(id, nil, []string{label})
	}
	return known
}

// ExpirePageTokens makes every page token that is out a dead one.
func (m *Mailbox) ExpirePageTokens() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens.Generation++
}

// ExpireAttachmentIDs makes every attachment id that is out a dead one.
func (m *Mailbox) ExpireAttachmentIDs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attachments++
}

// sorted returns order in order. The caller holds the write lock.
func (m *Mailbox) sorted() []*message {
	if m.unsorted {
		slices.SortFunc(m.order, byDate)
		m.unsorted = false
	}
	return m.order
}

func byDate(a, b *message) int {
	return cmp.Or(cmp.Compare(a.internalDate, b.internalDate), cmp.Compare(a.sequence, b.sequence))
}

func sortedLabels(labels []string) []string {
	sorted := slices.Clone(labels)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func (msg *message) has(label string) bool { return slices.Contains(msg.labels, label) }
