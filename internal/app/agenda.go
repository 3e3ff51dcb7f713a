package app

import (
	"context"
	"errors"
	"time"

	"headroom/config"
	"headroom/internal/agenda"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// AgendaYears is how many years of occurrences are listed where nobody says until
// when.
const AgendaYears = 2

// StoredCalendars lists an account's calendars. The error is a [jobs.ErrNotFound]
// that says what to do when there is no such account.
func StoredCalendars(ctx context.Context, cfg config.Config, s *sqlite.Store, email string) ([]jobs.CountedCalendar, error) {
	account, err := KnownAccount(ctx, cfg, s, email)
	if err != nil {
		return nil, err
	}
	return s.CountedCalendars(ctx, account.Email)
}

// StoredCalendar returns one calendar of an account, by its id or as "primary". The
// error is a [jobs.ErrNotFound] that says what to do when there is none.
func StoredCalendar(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id string) (jobs.Calendar, error) {
	account, err := KnownAccount(ctx, cfg, s, email)
	if err != nil {
		return jobs.Calendar{}, err
	}
	c, err := s.Calendar(ctx, account.Email, id)
	if !errors.Is(err, jobs.ErrNotFound) {
		return c, err
	}
	all, err := s.Calendars(ctx, account.Email)
	if err != nil {
		return jobs.Calendar{}, err
	}
	for _, c := range all {
		if id == "primary" && c.Primary {
			return c, nil
		}
	}
	if len(all) == 0 {
		return jobs.Calendar{}, missing("no calendar of %s is stored; headroom calendar sync %s brings them", account.Email, account.Email)
	}
	return jobs.Calendar{}, missing("no calendar %q of %s is stored; headroom calendar list %s names those that are", id, account.Email, account.Email)
}

// AgendaOf reads a calendar's events, and returns those that are not deleted too.
func AgendaOf(ctx context.Context, s *sqlite.Store, c jobs.Calendar) (*agenda.Agenda, []jobs.Event, error) {
	var events []jobs.Event
	err := EachEvent(ctx, s, c, false, func(e jobs.Event) error { events = append(events, e); return nil })
	return agenda.New(c, events), events, err
}

// EachEvent hands over a calendar's events by id.
func EachEvent(ctx context.Context, s *sqlite.Store, c jobs.Calendar, deleted bool, use func(jobs.Event) error) error {
	for q := (jobs.EventQuery{Deleted: deleted}); ; {
		page, err := s.Events(ctx, c.Account, c.ID, q)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := use(e); err != nil {
				return err
			}
			q.After = e.ID
		}
	}
}

// AgendaSpan completes a span: from now on, for two years.
func AgendaSpan(from, to, now time.Time) agenda.Span {
	if from.IsZero() {
		from = now
		if !to.IsZero() && to.Before(from) {
			from = to.AddDate(-AgendaYears, 0, 0)
		}
	}
	if to.IsZero() {
		to = from.AddDate(AgendaYears, 0, 0)
	}
	return agenda.Span{From: from, To: to}
}
