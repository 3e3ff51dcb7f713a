package sqlite

import (
	"context"

	"headroom/jobs"
)

// CountedCalendars lists an account's calendars by id with how many events each
// has, those that left its list among them.
func (s *Store) CountedCalendars(ctx context.Context, email string) ([]jobs.CountedCalendar, error) {
	all, err := s.Calendars(ctx, email)
	if err != nil {
		return nil, err
	}
	type count struct {
		id string
		n  int64
	}
	// What goes with a series that was deleted is gone, as Events has it.
	counts, err := list(ctx, s, func(scan func(...any) error, c *count) error { return scan(&c.id, &c.n) }, `SELECT c.id, COUNT(*)
		FROM events AS e JOIN calendars AS c ON c.num = e.calendar
			LEFT JOIN events AS m ON e.series <> '' AND m.calendar = e.calendar AND m.id = e.series
		WHERE c.account = ? AND e.deleted_at = 0 AND COALESCE(m.deleted_at, 0) = 0 AND e.status <> ?
		GROUP BY c.id`, normal(email), jobs.EventCancelled)
	if err != nil {
		return nil, err
	}
	of := map[string]int64{}
	for _, c := range counts {
		of[c.id] = c.n
	}
	counted := make([]jobs.CountedCalendar, 0, len(all))
	for _, c := range all {
		counted = append(counted, jobs.CountedCalendar{Calendar: c, Events: of[c.ID]})
	}
	return counted, nil
}
