package google

import (
	"context"
	"errors"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/jobs"
)

const (
	historyFields googleapi.Field = "history(id,messagesAdded(message(id,threadId,labelIds)),messagesDeleted(message(id,threadId,labelIds))," +
		"labelsAdded(labelIds,message(id,threadId,labelIds)),labelsRemoved(labelIds,message(id,threadId,labelIds))),historyId,nextPageToken"
	labelFields googleapi.Field = "labels(id,name)"
)

var errNoHistory = errors.New("the answer names no history id")

// History returns a page of up to 500 records of what changed after a history id:
// the first page for an empty token. The error's class is [jobs.ClassCursor] when
// the history does not reach back so far, or the token does not work any more.
func (m *Mailbox) History(ctx context.Context, after uint64, pageToken string) (jobs.HistoryPage, error) {
	request := m.service.Users.History.List(me).StartHistoryId(after).MaxResults(pageSize).Fields(historyFields)
	c := callHistory
	if pageToken != "" {
		c = callHistoryPage
		request.PageToken(pageToken)
	}
	var page jobs.HistoryPage
	err := m.do(ctx, c, func(ctx context.Context) error {
		answer, err := request.Context(ctx).Do()
		if err != nil {
			return err
		}
		if answer.HistoryId == 0 && answer.NextPageToken == "" {
			return errNoHistory // an answer of nothing is no proof that nothing changed
		}
		page = jobs.HistoryPage{Next: answer.NextPageToken, HistoryID: answer.HistoryId}
		for _, record := range answer.History {
			if record != nil {
				page.Records = append(page.Records, recordOf(record))
			}
		}
		return nil
	})
	return page, err
}

// recordOf puts a record's parts in the order in which they make sense: a message
// is there before its labels change, and is deleted last.
func recordOf(record *gmail.History) jobs.HistoryRecord {
	r := jobs.HistoryRecord{ID: record.Id}
	add := func(kind jobs.ChangeKind, m *gmail.Message, changed []string) {
		if m != nil && m.Id != "" {
			r.Changes = append(r.Changes, jobs.Change{Kind: kind, ID: m.Id, ThreadID: m.ThreadId, Labels: m.LabelIds, Changed: changed})
		}
	}
	for _, part := range record.MessagesAdded {
		add(jobs.MessageAdded, part.Message, nil)
	}
	for _, part := range record.LabelsAdded {
		add(jobs.LabelsAdded, part.Message, part.LabelIds)
	}
	for _, part := range record.LabelsRemoved {
		add(jobs.LabelsRemoved, part.Message, part.LabelIds)
	}
	for _, part := range record.MessagesDeleted {
		add(jobs.MessageDeleted, part.Message, nil)
	}
	return r
}

// ListAll returns a page of up to 500 ids of all messages, those in spam and
// trash among them, or of all that have a label, if one is named: the first page
// for an empty token.
func (m *Mailbox) ListAll(ctx context.Context, label, pageToken string) (jobs.Page, error) {
	request := m.service.Users.Messages.List(me).MaxResults(pageSize).IncludeSpamTrash(true).Fields(listFields)
	if label != "" {
		request.LabelIds(label)
	}
	c := callList
	if pageToken != "" {
		c = callNextPage
		request.PageToken(pageToken)
	}
	var page jobs.Page
	err := m.do(ctx, c, func(ctx context.Context) error {
		answer, err := request.Context(ctx).Do()
		if err != nil {
			return err
		}
		page = pageOf(answer)
		return nil
	})
	return page, err
}

// Labels returns the mailbox's labels.
func (m *Mailbox) Labels(ctx context.Context) ([]jobs.Label, error) {
	var labels []jobs.Label
	err := m.do(ctx, callLabels, func(ctx context.Context) error {
		answer, err := m.service.Users.Labels.List(me).Fields(labelFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		labels = nil
		for _, label := range answer.Labels {
			if label != nil && label.Id != "" {
				labels = append(labels, jobs.Label{ID: label.Id, Name: label.Name})
			}
		}
		return nil
	})
	return labels, err
}
