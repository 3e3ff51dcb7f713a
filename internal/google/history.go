package google

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strconv"

	"headroom/internal/lenient"
	"headroom/jobs"
)

const (
	historyFields = "history(id,messagesAdded(message(id,threadId,labelIds)),messagesDeleted(message(id,threadId,labelIds))," +
		"labelsAdded(labelIds,message(id,threadId,labelIds)),labelsRemoved(labelIds,message(id,threadId,labelIds))),historyId,nextPageToken"
	labelFields = "labels(id,name)"
)

var (
	errNoHistory = errors.New("the answer names no history id")
	errNoLabels  = errors.New("the answer names no label, and every mailbox has some")
)

// possible returns a history id of an answer, or 0 if it is out of range: ids are
// compared as signed numbers, and a row with the largest one would never be updated.
func possible(id uint64) uint64 {
	if id > math.MaxInt64 {
		return 0
	}
	return id
}

// History returns a page of up to 500 records of the changes after a history id: the
// first page for an empty token. The class of the error is [jobs.ClassCursor] if the
// history does not reach back so far, or the token no longer works.
func (m *Mailbox) History(ctx context.Context, after uint64, pageToken string) (jobs.HistoryPage, error) {
	query := url.Values{"startHistoryId": {strconv.FormatUint(after, 10)}, "maxResults": {strconv.Itoa(pageSize)}, "fields": {historyFields}}
	c := callHistory
	if pageToken != "" {
		c = callHistoryPage
		query.Set("pageToken", pageToken)
	}
	var page jobs.HistoryPage
	err := m.do(ctx, c, func(ctx context.Context) error {
		answer, err := m.page(ctx, "history", query)
		if err != nil {
			return err
		}
		if answer.historyID == 0 && answer.nextPageToken == "" {
			return errNoHistory // an empty answer does not prove that nothing changed
		}
		page = jobs.HistoryPage{Next: answer.nextPageToken, HistoryID: answer.historyID}
		page.Records = itemsOf(m.google, c, answer, recordOf)
		last := after
		for i := range page.Records {
			if page.Records[i].ID == 0 { // it is unreadable, and no older than the one before
				page.Records[i].ID = last
			}
			last = page.Records[i].ID
		}
		return nil
	})
	return page, err
}

// A historyRecord is one of a page of the history.
type historyRecord struct {
	ID              uint64        `json:"id,string"`
	MessagesAdded   []*historyFor `json:"messagesAdded"`
	MessagesDeleted []*historyFor `json:"messagesDeleted"`
	LabelsAdded     []*historyFor `json:"labelsAdded"`
	LabelsRemoved   []*historyFor `json:"labelsRemoved"`
}

// historyFor is the part of a record about one message.
type historyFor struct {
	Labels  []string `json:"labelIds"`
	Message message  `json:"message"`
}

// recordOf orders the parts of a record: a message is added before its labels change,
// and is deleted last.
func recordOf(text json.RawMessage) (r jobs.HistoryRecord, odd lenient.Problems, err error) {
	var record historyRecord
	if odd, err = lenient.Unmarshal(text, &record); err != nil {
		return r, odd, err
	}
	r.ID = possible(record.ID)
	add := func(kind jobs.ChangeKind, parts []*historyFor) {
		for _, p := range parts {
			if p == nil || p.Message.ID == "" {
				continue
			}
			f := p.Message.fetched()
			r.Changes = append(r.Changes, jobs.Change{Kind: kind, ID: f.ID, ThreadID: f.ThreadID, Labels: f.Labels, Changed: p.Labels})
		}
	}
	add(jobs.MessageAdded, record.MessagesAdded)
	add(jobs.LabelsAdded, record.LabelsAdded)
	add(jobs.LabelsRemoved, record.LabelsRemoved)
	add(jobs.MessageDeleted, record.MessagesDeleted)
	return r, odd, nil
}

// Labels returns the mailbox's labels.
func (m *Mailbox) Labels(ctx context.Context) ([]jobs.Label, error) {
	var labels []jobs.Label
	err := m.do(ctx, callLabels, func(ctx context.Context) error {
		answer, err := m.page(ctx, "labels", url.Values{"fields": {labelFields}})
		if err != nil {
			return err
		}
		if labels = itemsOf(m.google, callLabels, answer, labelOf); len(labels) == 0 {
			return errNoLabels // otherwise all messages would seem to have lost their labels
		}
		return nil
	})
	return labels, err
}

func labelOf(text json.RawMessage) (l jobs.Label, odd lenient.Problems, err error) {
	if odd, err = lenient.Unmarshal(text, &l); err == nil && l.ID == "" {
		err = errNoItemID
	}
	return l, odd, err
}
