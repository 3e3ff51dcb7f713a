package app

import (
	"context"
	"time"

	"headroom/internal/google"
	"headroom/jobs"
	"headroom/quota"
	"headroom/workers"
)

// mailboxes opens mailboxes for the workers.
type mailboxes struct{ *google.Google }

// Mailbox implements [workers.Google].
func (m mailboxes) Mailbox(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (workers.Mailbox, error) {
	box, err := m.Google.Mailbox(ctx, account, lane, maxWait)
	if err != nil {
		return nil, err // a nil *google.Mailbox is no nil workers.Mailbox
	}
	return box, nil
}

// calendars opens calendars for the workers.
type calendars struct{ *google.Google }

// Calendar implements [workers.Calendars].
func (c calendars) Calendar(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (workers.Calendar, error) {
	calendar, err := c.Google.Calendar(ctx, account, lane, maxWait)
	if err != nil {
		return nil, err // a nil *google.Calendar is no nil workers.Calendar
	}
	return calendar, nil
}
