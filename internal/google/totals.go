package google

import (
	"context"

	"google.golang.org/api/googleapi"
)

const (
	totalsFields      googleapi.Field = "messagesTotal,threadsTotal"
	labelTotalsFields googleapi.Field = "id,messagesTotal"
)

// Totals returns how many messages and threads the mailbox says it holds, spam and
// trash among them.
func (m *Mailbox) Totals(ctx context.Context) (messages, threads int64, err error) {
	err = m.do(ctx, callProfile, func(ctx context.Context) error {
		p, err := m.service.Users.GetProfile(me).Fields(totalsFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		messages, threads = p.MessagesTotal, p.ThreadsTotal
		return nil
	})
	return messages, threads, err
}

// LabelTotal returns how many messages have a label, wherever they lie. The error's
// class is [jobs.ClassSearch] when there is no such label.
func (m *Mailbox) LabelTotal(ctx context.Context, label string) (messages int64, err error) {
	err = m.do(ctx, callLabel, func(ctx context.Context) error {
		l, err := m.service.Users.Labels.Get(me, label).Fields(labelTotalsFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		messages = l.MessagesTotal
		return nil
	})
	return messages, err
}
