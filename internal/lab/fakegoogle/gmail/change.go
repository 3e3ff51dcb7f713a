package gmail

import "fmt"

// Trash moves a message to the trash, as its owner does: out of the inbox too. It
// reports whether the message is there.
func (m *Mailbox) Trash(id string) bool {
	return m.Relabel(id, []string{"TRASH"}, []string{"INBOX"})
}

// Untrash takes a message out of the trash, and leaves it out of the inbox.
func (m *Mailbox) Untrash(id string) bool { return m.Relabel(id, nil, []string{"TRASH"}) }

// Spam moves a message to spam.
func (m *Mailbox) Spam(id string) bool {
	return m.Relabel(id, []string{"SPAM"}, []string{"INBOX"})
}

// EditDraft puts another version in the place of a message: to its owner the same
// draft, to the API a message with a new id in the old one's thread and with its
// labels, which now have DRAFT among them. It reports whether the message was
// there.
func (m *Mailbox) EditDraft(id string, raw []byte) (newID string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.byID[id]
	if !ok {
		return "", false
	}
	msg := newMessage(content{head: raw}, append([]string{"DRAFT"}, old.labels...))
	m.remove(old)
	m.insert(msg, old.threadID)
	return msg.id, true
}

// Churn adds so many messages and deletes each at once, and returns their ids:
// history that leads nowhere, in as many pages as anybody asks for.
func (m *Mailbox) Churn(n int) (ids []string) {
	for i := range n {
		id := m.Add(fmt.Appendf(nil, "From: Ann <ann@example.com>\r\nSubject: Gone at once %d\r\n\r\nx\r\n", i), "INBOX", "UNREAD")
		m.Delete(id)
		ids = append(ids, id)
	}
	return ids
}
