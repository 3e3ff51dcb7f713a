package google

import (
	"context"
	"net/url"
)

const (
	totalsFields      = "messagesTotal,threadsTotal"
	labelTotalsFields = "id,messagesTotal"
)

// Totals returns the number of messages and threads in the mailbox's profile,
// including spam and trash.
func (m *Mailbox) Totals(ctx context.Context) (messages, threads int64, err error) {
	err = m.do(ctx, callProfile, func(ctx context.Context) error {
		var p struct {
			Messages int64 `json:"messagesTotal"`
			Threads  int64 `json:"threadsTotal"`
		}
		_, err := m.object(ctx, callProfile, "profile", nil, url.Values{"fields": {totalsFields}}, &p)
		messages, threads = p.Messages, p.Threads
		return err
	})
	return messages, threads, err
}

// LabelTotal returns the number of messages with a label, including spam and trash.
// The class of the error is [jobs.ClassSearch] if there is no such label.
func (m *Mailbox) LabelTotal(ctx context.Context, label string) (messages int64, err error) {
	err = m.do(ctx, callLabel, func(ctx context.Context) error {
		var l struct {
			Messages int64 `json:"messagesTotal"`
		}
		_, err := m.object(ctx, callLabel, "labels/{id}", map[string]string{"id": label}, url.Values{"fields": {labelTotalsFields}}, &l)
		messages = l.Messages
		return err
	})
	return messages, err
}
