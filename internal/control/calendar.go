package control

import (
	"context"
	"errors"
	"time"

	"headroom/internal/agenda"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// agendaYears is how many years of occurrences are listed if no end is named.
const agendaYears = 2

// CalendarList is the state of an account's list of calendars.
func (c *Control) CalendarList(ctx context.Context, email string) (jobs.CalendarList, error) {
	return read(ctx, c, func(s *sqlite.Store) (jobs.CalendarList, error) { return s.CalendarList(ctx, email) })
}

// Calendars lists an account's calendars with the number of their events.
func (c *Control) Calendars(ctx context.Context, email string) ([]jobs.CountedCalendar, error) {
	s, account, err := c.known(ctx, email)
	if err != nil {
		return nil, err
	}
	return s.CountedCalendars(ctx, account.Email)
}

// Calendar returns one calendar of an account, by its id or as "primary".
func (c *Control) Calendar(ctx context.Context, email, id string) (jobs.Calendar, error) {
	s, account, err := c.known(ctx, email)
	if err != nil {
		return jobs.Calendar{}, err
	}
	found, err := s.Calendar(ctx, account.Email, id)
	if !errors.Is(err, jobs.ErrNotFound) {
		return found, err
	}
	all, err := s.Calendars(ctx, account.Email)
	if err != nil {
		return jobs.Calendar{}, err
	}
	for _, one := range all {
		if id == "primary" && one.Primary {
			return one, nil
		}
	}
	if len(all) == 0 {
		return jobs.Calendar{}, missing("headroom calendar sync "+account.Email+" brings them", "no calendar of %s is stored", account.Email)
	}
	return jobs.Calendar{}, missing("headroom calendar list "+account.Email+" names those that are", "no calendar %q of %s is stored", id, account.Email)
}

// Events lists the events of a calendar that is named as [Control.Calendar] does.
func (c *Control) Events(ctx context.Context, email, calendar string, q jobs.EventQuery) ([]jobs.Event, error) {
	of, err := c.Calendar(ctx, email, calendar)
	if err != nil {
		return nil, err
	}
	return read(ctx, c, func(s *sqlite.Store) ([]jobs.Event, error) { return s.Events(ctx, of.Account, of.ID, q) })
}

// Occurrences lists the occurrences of a calendar's events in a span, page by page. A
// span without a beginning begins now, one without an end lasts two years.
func (c *Control) Occurrences(ctx context.Context, email, calendar string, span agenda.Span, cursor string, limit int) (agenda.Page, error) {
	of, err := c.Calendar(ctx, email, calendar)
	if err != nil {
		return agenda.Page{}, err
	}
	a, _, err := c.Agenda(ctx, of)
	if err != nil {
		return agenda.Page{}, err
	}
	return a.Page(ctx, AgendaSpan(span.From, span.To, time.Now()), cursor, limit)
}

// Agenda reads a calendar's events, and also returns those that are not deleted.
func (c *Control) Agenda(ctx context.Context, of jobs.Calendar) (*agenda.Agenda, []jobs.Event, error) {
	var events []jobs.Event
	err := c.EachEvent(ctx, of, false, func(e jobs.Event) error { events = append(events, e); return nil })
	return agenda.New(of, events), events, err
}

// EachEvent calls use for each event of a calendar, by id.
func (c *Control) EachEvent(ctx context.Context, of jobs.Calendar, deleted bool, use func(jobs.Event) error) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	for q := (jobs.EventQuery{Deleted: deleted}); ; {
		page, err := s.Events(ctx, of.Account, of.ID, q)
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
			from = to.AddDate(-agendaYears, 0, 0)
		}
	}
	if to.IsZero() {
		to = from.AddDate(agendaYears, 0, 0)
	}
	return agenda.Span{From: from, To: to}
}
