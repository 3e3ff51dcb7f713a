package google

import (
	"context"
	"net/url"
)

const (
	totalsFields      = "messagesTotal,threadsTotal"
	labelTotalsFields = "id,messagesTotal"
)

// Totals returns how many messages and threads the mailbox says it holds, spam and
// trash among them.
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

// LabelTotal returns how many messages have a label, wherever they lie. The error's
// class is [jobs.ClassSearch] when there is no such label.
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
