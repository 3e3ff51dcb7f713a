package sqlite

import (
	"context"
	"fmt"

	"headroom/jobs"
)

// outcomes are those of the jobs, and of the watches together as one, the worst of
// which counts.
const outcomes = `SELECT CASE kind WHEN 'mail-sync' THEN 'mail-sync' ELSE 'calendar-sync' END, account, state, live, finished_at, last_error
		FROM jobs WHERE kind IN ('mail-sync', 'calendar-sync') AND (? = '' OR account = ?)
	UNION ALL
	SELECT 'watch-renewal', account,
		CASE WHEN MAX(failures) > 0 THEN 'failing' WHEN MAX(state = 'lapsed') THEN 'lapsed' WHEN MIN(renew_at) <= ? THEN 'due' ELSE 'renewed' END,
		FALSE, MAX(renewed_at), MAX(last_error)
		FROM watches WHERE (? = '' OR account = ?) GROUP BY account`

// ScheduleOutcomes says how the work stands that schedules ask for, of one account
// or, if it is empty, of all. Of [jobs.ScheduleReconcile] there is none: its work
// is that of the two syncs.
func (s *Store) ScheduleOutcomes(ctx context.Context, account string) ([]jobs.ScheduleOutcome, error) {
	account = normal(account)
	all, err := list(ctx, s, func(scan func(...any) error, o *jobs.ScheduleOutcome) error {
		return scan(&o.Schedule, &o.Account, &o.State, &o.Live, millis{&o.Ended}, &o.Error)
	}, outcomes, account, account, s.clock(), account, account)
	if err != nil {
		return nil, fmt.Errorf("read what schedules came to: %w", err)
	}
	return all, nil
}
