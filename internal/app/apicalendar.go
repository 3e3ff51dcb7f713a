package app

import (
	"context"
	"time"

	"headroom/internal/agenda"
	"headroom/jobs"
)

func (b apiBackend) Calendars(ctx context.Context, email string) ([]jobs.CountedCalendar, error) {
	return StoredCalendars(ctx, b.cfg, b.store, email)
}

func (b apiBackend) Events(ctx context.Context, email, calendar string, q jobs.EventQuery) ([]jobs.Event, error) {
	c, err := StoredCalendar(ctx, b.cfg, b.store, email, calendar)
	if err != nil {
		return nil, err
	}
	return b.store.Events(ctx, c.Account, c.ID, q)
}

func (b apiBackend) Occurrences(ctx context.Context, email, calendar string, span agenda.Span, cursor string, limit int) (agenda.Page, error) {
	c, err := StoredCalendar(ctx, b.cfg, b.store, email, calendar)
	if err != nil {
		return agenda.Page{}, err
	}
	of, _, err := AgendaOf(ctx, b.store, c)
	if err != nil {
		return agenda.Page{}, err
	}
	return of.Page(ctx, AgendaSpan(span.From, span.To, time.Now()), cursor, limit)
}
