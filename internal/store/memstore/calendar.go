package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// calendar is a calendar with its events.
type calendar struct {
	jobs.Calendar
	seen   int64 // the pass over the list that last brought it
	events map[string]*event
}

type event struct {
	jobs.Event
	gen int64 // the pass that last brought it
}

// changesLeft reports whether the round has yet to read what changed in one of some
// calendars.
func (a *account) changesLeft(l jobs.CalendarList, of func(*calendar) bool) bool {
	for _, c := range a.calendars {
		if l.Left(c.Calendar) && !c.Stream.Whole() && of(c) {
			return true
		}
	}
	return false
}

// beginRound is [jobs.CalendarList.BeginRound] for the list and its calendars.
func (a *account) beginRound(now time.Time) {
	if a.list.BeginRound(now) {
		for _, c := range a.calendars {
			c.Stream.ReadAll()
		}
	}
}

// changeList runs fn on the list of the owner's account.
func (s *Store) changeList(ctx context.Context, ref jobs.TaskRef, verb string, fn func(j *job, a *account, l *jobs.CalendarList, now time.Time)) (out jobs.CalendarList, err error) {
	_, err = s.owned(ctx, ref, verb, func(j *job, a *account, now time.Time) error {
		if a.list == nil {
			return fmt.Errorf("calendars of %s: %w", a.Email, jobs.ErrNotFound)
		}
		fn(j, a, a.list, now)
		out = *a.list
		return nil
	})
	return out, err
}

// BeginCalendars begins a slice of a sync, with the round that was asked for meanwhile.
func (s *Store) BeginCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "begin calendars", func(_ *job, a *account, l *jobs.CalendarList, now time.Time) {
		if l.Answers(a.changesLeft(*l, func(c *calendar) bool { return c.Stream.Due(now) })) {
			a.beginRound(now)
		}
	})
}

// ApplyCalendarList writes a page of the list of calendars, and moves the list's stream
// behind it.
func (s *Store) ApplyCalendarList(ctx context.Context, ref jobs.TaskRef, page jobs.CalendarListPage) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "apply calendar list", func(j *job, a *account, l *jobs.CalendarList, now time.Time) {
		for _, e := range page.Calendars {
			c := a.calendars[e.ID]
			if c == nil {
				if e.Deleted {
					continue
				}
				c = &calendar{events: map[string]*event{}, Calendar: jobs.Calendar{Account: a.Email, ID: e.ID, Stream: jobs.NewStream()}}
				a.calendars[e.ID] = c
			}
			c.Apply(e)
			c.seen = l.Stream.Gen
		}
		whole, gen := l.Stream.Whole(), l.Stream.Gen
		complete, trouble := l.Advance(page, now)
		for _, c := range a.calendars {
			if complete && whole && c.seen < gen && c.State != jobs.CalendarRemoved {
				c.Remove()
			}
		}
		if trouble != "" {
			j.LastError = clean("the list of calendars: " + trouble)
		} else {
			j.Progressed()
		}
	})
}

// ExpireCalendarList is [jobs.Stream.Expire] for the list of calendars.
func (s *Store) ExpireCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "expire the list of calendars", func(_ *job, _ *account, l *jobs.CalendarList, now time.Time) { l.Stream.Expire(now) })
}

// RestartCalendarList is [jobs.Stream.Restart] for the list of calendars.
func (s *Store) RestartCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "restart the list of calendars", func(_ *job, _ *account, l *jobs.CalendarList, now time.Time) { l.Stream.Restart(now) })
}

// EndCalendars is [jobs.CalendarList.EndRound] in the store.
func (s *Store) EndCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "end calendars", func(_ *job, a *account, l *jobs.CalendarList, now time.Time) {
		l.EndRound(a.allCalendars(), now)
	})
}

// RoundCalendars lists the calendars that the round has yet to deal with and that may be
// read now: those first of which only what has changed is read.
func (s *Store) RoundCalendars(ctx context.Context, ref jobs.TaskRef) (left []jobs.Calendar, err error) {
	_, err = s.changeList(ctx, ref, "list calendars", func(_ *job, a *account, l *jobs.CalendarList, now time.Time) {
		for _, c := range a.allCalendars() {
			if l.Left(c) && c.Stream.Due(now) {
				left = append(left, c)
			}
		}
	})
	last := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(left, func(a, b jobs.Calendar) int {
		return cmp.Or(cmp.Compare(last(a.Stream.Whole()), last(b.Stream.Whole())),
			cmp.Compare(last(a.Stream.PageToken == ""), last(b.Stream.PageToken == "")))
	})
	return left, err
}

func (a *account) allCalendars() (all []jobs.Calendar) {
	for _, c := range sorted(a.calendars) {
		all = append(all, c.Calendar)
	}
	return all
}

// changeCalendar runs fn on a calendar of the owner's account.
func (s *Store) changeCalendar(ctx context.Context, ref jobs.TaskRef, verb, id string, fn func(j *job, c *calendar, round int64, now time.Time) error) (out jobs.Calendar, err error) {
	_, err = s.owned(ctx, ref, verb, func(j *job, a *account, now time.Time) error {
		c := a.calendars[id]
		if c == nil {
			return fmt.Errorf("calendar %q of %s: %w", id, a.Email, jobs.ErrNotFound)
		}
		err := fn(j, c, a.list.Round, now)
		c.Reason = clean(c.Reason)
		out = c.Calendar
		return err
	})
	return out, err
}

// ApplyEvents writes a page of a calendar's events, and moves the calendar's stream
// behind it. With the last page of a pass over everything, events that it did not bring
// become tombstones.
func (s *Store) ApplyEvents(ctx context.Context, ref jobs.TaskRef, id string, page jobs.EventPage) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, ref, "apply events", id, func(j *job, c *calendar, round int64, now time.Time) error {
		rows := make([]jobs.Event, len(page.Events))
		for i, e := range page.Events { // what cannot be written is found before anything is
			e.Calendar = c.ID
			var err error
			if rows[i], err = e.Over(c.event(e.ID), page.Updated, now, c.isSeries(page.Events[:i])); err != nil {
				return err
			}
		}
		for _, e := range rows {
			c.write(e)
		}
		whole, gen := c.Stream.Whole(), c.Stream.Gen
		complete, ok := c.Advance(page, round, now)
		if ok {
			j.Progressed()
		}
		for _, e := range c.events {
			if complete && whole && e.gen < gen && e.DeletedAt.IsZero() {
				e.DeletedAt = now
			}
		}
		return nil
	})
}

// event is the row of an event, or the zero Event.
func (c *calendar) event(id string) jobs.Event {
	if e := c.events[id]; e != nil {
		return e.Event
	}
	return jobs.Event{}
}

// isSeries finds series among the rows, and those that come before on the same page.
func (c *calendar) isSeries(before []jobs.Event) func(id string) (bool, error) {
	return func(id string) (bool, error) {
		e := c.events[id]
		return e != nil && e.Series == "" || slices.ContainsFunc(before, func(e jobs.Event) bool { return e.ID == id && e.Series == "" }), nil
	}
}

// write stores an event. A series that is new adopts the tombstones that came before it.
func (c *calendar) write(e jobs.Event) {
	fresh := c.events[e.ID] == nil
	e.Updated = truncate(e.Updated)
	c.events[e.ID] = &event{e, c.Stream.Gen}
	if fresh && !e.Cancelled() && e.IsSeries() {
		for _, other := range c.events {
			other.Adopt(e.ID)
		}
	}
}

// ExpireCalendar is [jobs.Calendar.Expire] in the store.
func (s *Store) ExpireCalendar(ctx context.Context, ref jobs.TaskRef, id, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, ref, "expire calendar", id, func(_ *job, c *calendar, _ int64, now time.Time) error {
		c.Expire(reason, now)
		return nil
	})
}

// RestartCalendar is [jobs.Calendar.Restart] in the store.
func (s *Store) RestartCalendar(ctx context.Context, ref jobs.TaskRef, id, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, ref, "restart calendar", id, func(_ *job, c *calendar, _ int64, now time.Time) error {
		c.Restart(reason, now)
		return nil
	})
}

// MarkCalendar is [jobs.Calendar.Mark] in the store.
func (s *Store) MarkCalendar(ctx context.Context, ref jobs.TaskRef, id string, state jobs.CalendarState, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, ref, "mark calendar", id, func(_ *job, c *calendar, round int64, now time.Time) error {
		c.Mark(state, reason, round, now)
		return nil
	})
}

// CalendarList returns where the sync of an account's calendars stands, or
// [jobs.ErrNotFound] if none was ever asked for.
func (s *Store) CalendarList(ctx context.Context, email string) (l jobs.CalendarList, err error) {
	err = s.do(ctx, func(time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil || a.list == nil {
			return fmt.Errorf("calendars of %s: %w", email, jobs.ErrNotFound)
		}
		l = *a.list
		return nil
	})
	return l, err
}

// Calendars lists an account's calendars by id, those that left its list among them.
func (s *Store) Calendars(ctx context.Context, email string) (all []jobs.Calendar, err error) {
	err = s.do(ctx, func(time.Time) error {
		if a := s.accounts[jobs.FoldAddress(email)]; a != nil {
			all = a.allCalendars()
		}
		return nil
	})
	return all, err
}

// Events lists events of a calendar by id. An occurrence goes with its series: if that
// was deleted, so was it.
func (s *Store) Events(ctx context.Context, email, id string, q jobs.EventQuery) (all []jobs.Event, err error) {
	err = s.do(ctx, func(time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil || a.calendars[id] == nil {
			return nil
		}
		c := a.calendars[id]
		for _, e := range sorted(c.events) {
			one := e.Event
			if one.DeletedAt.IsZero() && one.Series != "" {
				one.DeletedAt = c.event(one.Series).DeletedAt
			}
			if one.ID > q.After && (q.Deleted || one.DeletedAt.IsZero()) && len(all) < page(q.Limit) {
				all = append(all, one)
			}
		}
		return nil
	})
	return all, err
}
