package control

import (
	"context"

	"headroom/config"
	"headroom/jobs"
)

// Watched is what Google is asked to push, by the settings.
func Watched(cfg config.Config) (kinds []jobs.WatchKind) {
	if cfg.Push.Gmail.On() {
		kinds = append(kinds, jobs.WatchMail)
	}
	if cfg.Push.Calendar.On() {
		kinds = append(kinds, jobs.WatchCalendarList, jobs.WatchCalendar)
	}
	return kinds
}

// Watches lists what Google pushes, of an account only if one is named, from after a
// key on; a limit of 0 lists all. The error names an account that is not known.
func (c *Control) Watches(ctx context.Context, email string, after jobs.WatchKey, limit int) (all []jobs.Watch, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, err
	}
	if email != "" {
		account, err := c.Account(ctx, email)
		if err != nil {
			return nil, err
		}
		email = account.Email
	}
	for {
		page, err := s.Watches(ctx, email, after, limit)
		all = append(all, page...)
		if err != nil || len(page) == 0 || limit > 0 {
			return all, err
		}
		after = page[len(page)-1].WatchKey
	}
}
