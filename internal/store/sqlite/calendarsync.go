package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// BeginCalendars begins a slice of a sync, and returns where the account's list of
// calendars stands. It begins the round that was asked for meanwhile, if
// [jobs.CalendarList.Answers] says so.
func (s *Store) BeginCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, ahead, ref, "begin calendars", func(ctx context.Context, x *tx, r *row) (err error) {
		if l, err = x.calendarList(ctx, r.Account); err != nil || l.AskedAt.IsZero() {
			return err
		}
		left, err := x.exists(ctx, `SELECT 1 FROM calendars WHERE account = ? AND round < ? AND pass = '' AND state <> ? AND next_try <= ?`,
			r.Account, l.Round, jobs.CalendarRemoved, x.now)
		if err != nil || !l.Answers(left) {
			return err
		}
		return x.beginRound(ctx, &l)
	})
	return l, err
}

// ApplyCalendarList writes a page of the list of calendars to the rows, and moves
// the list's stream behind it. The last page of a pass over the whole list marks
// the calendars that were not on it as removed.
func (s *Store) ApplyCalendarList(ctx context.Context, ref jobs.TaskRef, page jobs.CalendarListPage) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, inLine, ref, "apply calendar list", func(ctx context.Context, x *tx, r *row) (err error) {
		if l, err = x.calendarList(ctx, r.Account); err != nil {
			return err
		}
		for _, entry := range page.Calendars {
			if err := x.applyEntry(ctx, l, entry); err != nil {
				return fmt.Errorf("calendar %q: %w", entry.ID, err)
			}
		}
		whole, gen := l.Stream.Whole(), l.Stream.Gen
		complete, trouble := l.Advance(page, x.moment())
		if complete && whole {
			if err := x.removeUnseen(ctx, l.Account, gen); err != nil {
				return err
			}
		}
		if trouble != "" {
			r.LastError = clean("the list of calendars: " + trouble)
		} else {
			r.Progressed()
		}
		return x.saveCalendarList(ctx, l)
	})
	return l, err
}

// applyEntry writes one entry of the list. A deleted one that was never known is
// not stored.
func (x *tx) applyEntry(ctx context.Context, l jobs.CalendarList, e jobs.CalendarEntry) error {
	c, err := x.calendar(ctx, l.Account, e.ID)
	if errors.Is(err, jobs.ErrNotFound) {
		if e.Deleted {
			return nil
		}
		c, err = &calendarRow{}, nil
	}
	if err != nil {
		return err
	}
	c.Apply(e)
	_, err = x.ExecContext(ctx, `INSERT INTO calendars (account, id, seen, entry, summary, time_zone, access_role, is_primary, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (account, id) DO UPDATE SET seen = excluded.seen, entry = excluded.entry, summary = excluded.summary,
			time_zone = excluded.time_zone, access_role = excluded.access_role, is_primary = excluded.is_primary,
			state = excluded.state, reason = ?`,
		l.Account, e.ID, l.Stream.Gen, clean(string(c.JSON)), clean(c.Summary), clean(c.TimeZone), clean(c.AccessRole), c.Primary, c.State, clean(c.Reason))
	return err
}

// removeUnseen marks calendars that a pass over the whole list did not bring.
func (x *tx) removeUnseen(ctx context.Context, account string, gen int64) error {
	unseen, err := x.ids(ctx, "SELECT id FROM calendars WHERE account = ? AND seen < ?", account, gen)
	if err != nil {
		return err
	}
	return x.changeCalendars(ctx, account, func(c *jobs.Calendar) {
		if c.State != jobs.CalendarRemoved && slices.Contains(unseen, c.ID) {
			c.Remove()
		}
	})
}

// RoundCalendars lists the calendars of the owner's account that the round has
// yet to deal with and that may be read now: those first of which only what has
// changed is read.
func (s *Store) RoundCalendars(ctx context.Context, ref jobs.TaskRef) (all []jobs.Calendar, err error) {
	_, err = s.owned(ctx, ahead, ref, "list calendars", func(ctx context.Context, x *tx, r *row) error {
		l, err := x.calendarList(ctx, r.Account)
		if err != nil {
			return err
		}
		all, err = rows(ctx, x, scanCalendar, selectCalendar+"WHERE account = ? ORDER BY pass <> '', page_token = '', id", r.Account)
		all = slices.DeleteFunc(all, func(c jobs.Calendar) bool { return !l.Left(c) || !c.Stream.Due(x.moment()) })
		return err
	})
	return all, err
}

// ApplyEvents writes a page of a calendar's events to the rows, and moves the
// calendar's stream behind it, in one transaction. With the last page of a pass
// over everything, events that it did not bring become tombstones. That the page is
// of the place where the calendar is, is the owner's to see to: nobody else moves
// the calendar while it has the job.
func (s *Store) ApplyEvents(ctx context.Context, ref jobs.TaskRef, calendar string, page jobs.EventPage) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "apply events", calendar, func(ctx context.Context, x *tx, r *row, c *calendarRow) error {
		for _, e := range page.Events {
			if err := x.applyEvent(ctx, c, e, page.Updated); err != nil {
				return fmt.Errorf("event %q: %w", e.ID, err)
			}
		}
		l, err := x.calendarList(ctx, c.Account)
		if err != nil {
			return err
		}
		whole, gen := c.Stream.Whole(), c.Stream.Gen
		complete, ok := c.Advance(page, l.Round, x.moment())
		if ok {
			r.Progressed()
		}
		if !complete || !whole {
			return nil
		}
		_, err = x.ExecContext(ctx, "UPDATE events SET deleted_at = ? WHERE calendar = ? AND gen < ? AND deleted_at = 0", x.now, c.num, gen)
		return err
	})
}

// ExpireCalendar says that Google refused a calendar's sync token, or broke off a
// pass over the whole of it: it is read as a whole, now or at its NextTry.
func (s *Store) ExpireCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "expire calendar", calendar, func(_ context.Context, x *tx, _ *row, c *calendarRow) error {
		c.Expire(reason, x.moment())
		return nil
	})
}

// RestartCalendar says that a page token of a calendar's pass leads nowhere: the
// pass starts over, now or at the calendar's NextTry.
func (s *Store) RestartCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "restart calendar", calendar, func(_ context.Context, x *tx, _ *row, c *calendarRow) error {
		c.Restart(reason, x.moment())
		return nil
	})
}

// MarkCalendar says why a calendar cannot be read, by [jobs.Calendar.Mark].
func (s *Store) MarkCalendar(ctx context.Context, ref jobs.TaskRef, calendar string, state jobs.CalendarState, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "mark calendar", calendar, func(ctx context.Context, x *tx, _ *row, c *calendarRow) error {
		l, err := x.calendarList(ctx, c.Account)
		if err != nil {
			return err
		}
		c.Mark(state, reason, l.Round, x.moment())
		return nil
	})
}

func (s *Store) changeCalendar(ctx context.Context, u urgency, ref jobs.TaskRef, verb, calendar string,
	change func(context.Context, *tx, *row, *calendarRow) error) (jobs.Calendar, error) {
	var out jobs.Calendar
	_, err := s.owned(ctx, u, ref, verb, func(ctx context.Context, x *tx, r *row) error {
		c, err := x.calendar(ctx, r.Account, calendar)
		if err != nil {
			return err
		}
		if err := change(ctx, x, r, c); err != nil {
			return fmt.Errorf("calendar %q: %w", calendar, err)
		}
		out = c.Calendar
		return x.saveCalendar(ctx, c)
	})
	return out, err
}

// ExpireCalendarList is [Store.ExpireCalendar] for the list of calendars.
func (s *Store) ExpireCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "expire the list of calendars", (*jobs.Stream).Expire)
}

// RestartCalendarList is [Store.RestartCalendar] for the list of calendars.
func (s *Store) RestartCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error) {
	return s.changeList(ctx, ref, "restart the list of calendars", (*jobs.Stream).Restart)
}

func (s *Store) changeList(ctx context.Context, ref jobs.TaskRef, verb string, change func(*jobs.Stream, time.Time)) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, inLine, ref, verb, func(ctx context.Context, x *tx, r *row) (err error) {
		if l, err = x.calendarList(ctx, r.Account); err != nil {
			return err
		}
		change(&l.Stream, x.moment())
		return x.saveCalendarList(ctx, l)
	})
	return l, err
}

// EndCalendars ends a round by [jobs.CalendarList.EndRound].
func (s *Store) EndCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, ahead, ref, "end calendars", func(ctx context.Context, x *tx, r *row) (err error) {
		if l, err = x.calendarList(ctx, r.Account); err != nil {
			return err
		}
		all, err := rows(ctx, x, scanCalendar, selectCalendar+"WHERE account = ?", r.Account)
		if err != nil {
			return err
		}
		l.EndRound(all, x.moment())
		return x.saveCalendarList(ctx, l)
	})
	return l, err
}
