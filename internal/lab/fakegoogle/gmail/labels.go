package gmail

import (
	"slices"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// systemLabels are those every mailbox has, in Google's order.
var systemLabels = []string{
	"CHAT", "SENT", "INBOX", "IMPORTANT", "TRASH", "DRAFT", "SPAM",
	"CATEGORY_FORUMS", "CATEGORY_UPDATES", "CATEGORY_PERSONAL", "CATEGORY_PROMOTIONS", "CATEGORY_SOCIAL",
	"STARRED", "UNREAD",
}

type label struct {
	ID                    string `json:"id"`
	Name                  string `json:"name"`
	MessageListVisibility string `json:"messageListVisibility,omitempty"`
	LabelListVisibility   string `json:"labelListVisibility,omitempty"`
	Type                  string `json:"type"`
	MessagesTotal         *int   `json:"messagesTotal,omitempty"`
	MessagesUnread        *int   `json:"messagesUnread,omitempty"`
	ThreadsTotal          *int   `json:"threadsTotal,omitempty"`
	ThreadsUnread         *int   `json:"threadsUnread,omitempty"`
}

type labelList struct {
	Labels []label `json:"labels,omitempty"`
}

// listLabels serves gmail.users.labels.list. A label that a message has and
// that is not one of the system's is a user's label, whose name is its id.
func (m *Mailbox) listLabels() (any, *wire.Error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var answer labelList
	for _, id := range m.labelIDs() {
		answer.Labels = append(answer.Labels, newLabel(id))
	}
	return answer, nil
}

// getLabel serves gmail.users.labels.get, which alone has the counts.
func (m *Mailbox) getLabel(id string, q page.Request) (any, *wire.Error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !slices.Contains(m.labelIDs(), id) {
		return nil, wire.NotFound()
	}
	var messages, unread int
	threads, unreadThreads := map[string]bool{}, map[string]bool{}
	for _, msg := range m.order {
		if !msg.has(id) {
			continue
		}
		messages++
		threads[msg.threadID] = true
		if msg.has("UNREAD") {
			unread++
			unreadThreads[msg.threadID] = true
		}
	}
	if q.Quirk.MessagesTotal != nil {
		messages = *q.Quirk.MessagesTotal
	}
	nThreads, nUnreadThreads := len(threads), len(unreadThreads)
	l := newLabel(id)
	l.MessagesTotal, l.MessagesUnread = &messages, &unread
	l.ThreadsTotal, l.ThreadsUnread = &nThreads, &nUnreadThreads
	return l, nil
}

// labelIDs returns the system's labels and then the user's, sorted. The caller
// holds the lock.
func (m *Mailbox) labelIDs() []string {
	var own []string
	for _, msg := range m.order {
		for _, id := range msg.labels {
			if !slices.Contains(systemLabels, id) && !slices.Contains(own, id) {
				own = append(own, id)
			}
		}
	}
	slices.Sort(own)
	return slices.Concat(systemLabels, own)
}

func newLabel(id string) label {
	if slices.Contains(systemLabels, id) {
		return label{ID: id, Name: id, Type: "system"}
	}
	return label{ID: id, Name: id, Type: "user", MessageListVisibility: "show", LabelListVisibility: "labelShow"}
}
