package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota/price"
)

// StartCalendarSync asks for a sync of an account's calendars now. One that is
// under way goes on, and another follows it. Calendars that are left alone for their
// troubles are tried again.
func StartCalendarSync(ctx context.Context, cfg config.Config, email string, log *zap.Logger) (asked SyncAsked, err error) {
	if _, err := Projects(cfg); err != nil {
		return SyncAsked{}, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return SyncAsked{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return SyncAsked{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	redis, err := connectQueues(ctx, cfg, s, log)
	if err != nil {
		return SyncAsked{}, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	return startCalendarSync(ctx, cfg, s, redis, email, log)
}

// startCalendarSync is [StartCalendarSync] where the store and Redis are open.
func startCalendarSync(ctx context.Context, cfg config.Config, s *sqlite.Store, redis *redisconn.Clients, email string, log *zap.Logger) (asked SyncAsked, err error) {
	if err := mayStart(ctx, cfg, s, email); err != nil {
		return SyncAsked{}, err
	}
	account, err := s.Account(ctx, email)
	if err != nil {
		return SyncAsked{}, err
	}
	if !pricesCalendar(cfg, account.Project) {
		return SyncAsked{}, &noSyncError{fmt.Errorf("project %s has no price list for Calendar; add calendar-2026-05 to google.projects.%s.prices in the settings",
			account.Project, account.Project)}
	}
	asked.Job, asked.Started, err = s.StartCalendarSync(ctx, email)
	switch {
	case err != nil:
		return SyncAsked{}, err
	case asked.Job.State == jobs.Paused:
		return SyncAsked{}, &noSyncError{fmt.Errorf("the sync of the calendars of %s is paused; resume it with: headroom backfill resume %s", email, asked.Job.ID)}
	case !asked.Started:
		return asked, nil
	}
	if err := syncQueue(redis, cfg).Put(ctx, asked.Job.Ref()); err != nil {
		// The row is the truth: the scheduler makes its task.
		log.Warn("job recorded, but not put on the queue; the scheduler will do it", zap.String("job", asked.Job.ID), zap.Error(err))
	}
	return asked, nil
}

// pricesCalendar reports whether a project's quota of Calendar is known.
func pricesCalendar(cfg config.Config, project string) bool {
	projects, err := Projects(cfg)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(projects[project].Lists, func(l *price.List) bool { return l.API == "calendar" })
}
