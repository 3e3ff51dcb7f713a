package gmail

import (
	"cmp"
	"slices"
	"strconv"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// The kinds of change in history.list.
const (
	messageAdded   = "messageAdded"
	messageDeleted = "messageDeleted"
	labelAdded     = "labelAdded"
	labelRemoved   = "labelRemoved"
)

// firstHistoryID is the id of an empty mailbox: a client's made-up 1 is too old,
// as it would be at Google.
const firstHistoryID = 4_200

// anewHistoryID is that of a mailbox that was made anew.
const anewHistoryID = 5

// A history is what happened to a mailbox, in order; ids rise, with gaps.
type history struct {
	last    uint64 // id of the latest change
	floor   uint64 // the oldest id that may still be asked for
	records []change
	told    func(change) // of every change, under the mailbox's lock
}

type change struct {
	id           uint64
	kind         string
	messageID    string
	threadID     string
	labels       []string // of the message after the change
	labelChanges []string
}

func (h *history) add(kind string, msg *message, changed []string) {
	h.last += 1 + uint64(len(h.records)%3)*7 // gaps
	msg.historyID = h.last
	h.records = append(h.records, change{
		id: h.last, kind: kind, messageID: msg.id, threadID: msg.threadID,
		labels: msg.labels, labelChanges: changed,
	})
	h.told(h.records[len(h.records)-1])
}

func (h *history) expire() { h.floor, h.records = h.last, nil }

// after returns the changes that are newer than an id.
func (h *history) after(id uint64) []change {
	from, _ := slices.BinarySearchFunc(h.records, id+1, func(c change, id uint64) int { return cmp.Compare(c.id, id) })
	return h.records[from:]
}

type historyList struct {
	History       []historyRecord `json:"history,omitempty"`
	NextPageToken string          `json:"nextPageToken,omitempty"`
	HistoryID     uint64          `json:"historyId,string"`
}

type historyRecord struct {
	ID              uint64           `json:"id,string"`
	Messages        []messageRef     `json:"messages,omitempty"`
	MessagesAdded   []historyMessage `json:"messagesAdded,omitempty"`
	MessagesDeleted []historyMessage `json:"messagesDeleted,omitempty"`
	LabelsAdded     []historyLabels  `json:"labelsAdded,omitempty"`
	LabelsRemoved   []historyLabels  `json:"labelsRemoved,omitempty"`
}

type messageRef struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"threadId"`
	LabelIDs []string `json:"labelIds,omitempty"`
}

type historyMessage struct {
	Message messageRef `json:"message"`
}

type historyLabels struct {
	Message  messageRef `json:"message"`
	LabelIDs []string   `json:"labelIds"`
}

func (c change) record() historyRecord {
	bare := messageRef{ID: c.messageID, ThreadID: c.threadID}
	full := bare
	full.LabelIDs = c.labels
	r := historyRecord{ID: c.id, Messages: []messageRef{bare}}
	switch c.kind {
	case messageAdded:
		r.MessagesAdded = []historyMessage{{Message: full}}
	case messageDeleted:
		r.MessagesDeleted = []historyMessage{{Message: full}}
	case labelAdded:
		r.LabelsAdded = []historyLabels{{Message: full, LabelIDs: c.labelChanges}}
	case labelRemoved:
		r.LabelsRemoved = []historyLabels{{Message: full, LabelIDs: c.labelChanges}}
	}
	return r
}

// listHistory serves gmail.users.history.list.
func (m *Mailbox) listHistory(q page.Request) (any, *wire.Error) {
	start, err := strconv.ParseUint(q.Get("startHistoryId"), 10, 64)
	if err != nil {
		return nil, wire.BadRequest("Missing/invalid parameter: startHistoryId")
	}
	kinds := q.Values["historyTypes"]
	for _, kind := range kinds {
		if !slices.Contains([]string{messageAdded, messageDeleted, labelAdded, labelRemoved}, kind) {
			return nil, wire.BadRequest("Invalid value at 'history_types' (type.googleapis.com/google.apps.gmail.v1.HistoryType), \"" + kind + "\"")
		}
	}
	label := q.Get("labelId")

	m.mu.Lock()
	defer m.mu.Unlock()
	if start < m.history.floor || start > m.history.last {
		return nil, wire.NotFound()
	}
	p, bad := m.newPager("history", q, page.Place{Position: int64(start)}, "startHistoryId", "historyTypes", "labelId")
	if bad != nil {
		return nil, bad
	}
	var records []historyRecord
	var places []page.Place
	more := false
	for _, c := range m.history.after(uint64(p.After.Position)) {
		if len(kinds) > 0 && !slices.Contains(kinds, c.kind) {
			continue
		}
		if label != "" && !slices.Contains(c.labels, label) && !slices.Contains(c.labelChanges, label) {
			continue
		}
		if more = len(records) == p.Limit; more {
			break
		}
		records = append(records, c.record())
		places = append(places, page.Place{Position: int64(c.id)})
	}
	answer := historyList{HistoryID: m.history.last}
	answer.History, answer.NextPageToken = page.Cut(p, records, places, more)
	return answer, nil
}
