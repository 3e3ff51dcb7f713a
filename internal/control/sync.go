package control

import (
	"context"
	"errors"
	"slices"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota/price"
)

// SyncAsked is a sync that was asked for.
type SyncAsked struct {
	Job     jobs.Job `json:"job"`
	Started bool     `json:"started"` // false: one is under way, and another follows it
}

// StartSync asks for a live sync of an account's mailbox now. One that is under way
// goes on, and the history is read again after it.
func (c *Control) StartSync(ctx context.Context, email string) (asked SyncAsked, err error) {
	if _, err := c.projects(); err != nil {
		return SyncAsked{}, err
	}
	s, err := c.storeOf(ctx, email)
	if err != nil {
		return SyncAsked{}, err
	}
	if err := c.claim(ctx, s); err != nil {
		return SyncAsked{}, err
	}
	asked.Job, asked.Started, err = s.StartSync(ctx, email)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return SyncAsked{}, c.unknownAccount(email)
	case errors.Is(err, jobs.ErrNoCursor):
		return SyncAsked{}, Errorf(Conflict, "live sync of %s goes on from where a backfill of its whole mailbox began, and there was none; start it with: headroom backfill start %s", email, email)
	case err != nil:
		return SyncAsked{}, err
	}
	return asked, c.begin(ctx, asked, "live sync of "+email)
}

// StartCalendarSync asks for a sync of an account's calendars now. One that is under
// way goes on, and another follows it. Calendars that are left alone because of errors
// are tried again.
func (c *Control) StartCalendarSync(ctx context.Context, email string) (asked SyncAsked, err error) {
	projects, err := c.projects()
	if err != nil {
		return SyncAsked{}, err
	}
	s, account, err := c.mayStart(ctx, email)
	if err != nil {
		return SyncAsked{}, err
	}
	if !slices.ContainsFunc(projects[account.Project].Lists, func(l *price.List) bool { return l.API == "calendar" }) {
		return SyncAsked{}, Errorf(Conflict, "project %s has no price list for Calendar; add calendar-2026-05 to google.projects.%s.prices in the settings",
			account.Project, account.Project)
	}
	if err := c.claim(ctx, s); err != nil {
		return SyncAsked{}, err
	}
	if asked.Job, asked.Started, err = s.StartCalendarSync(ctx, email); err != nil {
		return SyncAsked{}, err
	}
	return asked, c.begin(ctx, asked, "sync of the calendars of "+email)
}

// begin puts the task of a sync that was asked for on the queue. The error
// reports that the sync is paused.
func (c *Control) begin(ctx context.Context, asked SyncAsked, what string) error {
	if asked.Job.State == jobs.Paused {
		return Errorf(Conflict, "the %s is paused; resume it with: headroom backfill resume %s", what, asked.Job.ID)
	}
	if asked.Started {
		c.put(ctx, asked.Job)
	}
	return nil
}

// Cursor is how far an account's history was read; the error is [jobs.ErrNoCursor]
// before the first backfill.
func (c *Control) Cursor(ctx context.Context, email string) (jobs.Cursor, error) {
	return read(ctx, c, func(s *sqlite.Store) (jobs.Cursor, error) { return s.Cursor(ctx, email) })
}
