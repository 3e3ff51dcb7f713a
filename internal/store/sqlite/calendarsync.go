package sqlite

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// BeginCalendars says that the owner of a sync begins a slice, and returns where
// the account's list of calendars stands. What was asked for meanwhile is answered
// with a new round, once the changes of the last one are read.
func (s *Store) BeginCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, ahead, ref, "begin calendars", func(ctx context.Context, x *tx, r *row) (err error) {
		if l, err = x.calendarList(ctx, r.Account); err != nil || l.AskedAt.IsZero() || !l.Listed {
			return err
		}
		left, err := x.exists(ctx, `SELECT 1 FROM calendars WHERE account = ? AND round < ? AND pass = '' AND state <> ? AND next_try <= ?`,
			r.Account, l.Round, jobs.CalendarRemoved, x.now)
		if err != nil || left {
			return err
		}
		l, err = x.beginRound(ctx, r.Account)
		return err
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
		complete, trouble := l.Stream.Advance(len(page.Calendars), page.Next, page.SyncToken, x.moment())
		if complete {
			l.Listed = true
			if _, err := x.ExecContext(ctx, "UPDATE calendar_lists SET listed = round WHERE account = ?", l.Account); err != nil {
				return err
			}
		}
		if complete && whole {
			_, err := x.ExecContext(ctx, "UPDATE calendars SET state = ?, reason = ? WHERE account = ? AND seen < ? AND state <> ?",
				jobs.CalendarRemoved, notListed, l.Account, gen, jobs.CalendarRemoved)
			if err != nil {
				return err
			}
		}
		if trouble != "" {
			r.LastError = clean("the list of calendars: " + trouble)
		} else {
			r.Progressed()
		}
		return x.saveListStream(ctx, l)
	})
	return l, err
}

const notListed = "no longer on the account's list of calendars"

// applyEntry writes one entry of the list. A calendar that comes back after it was
// removed goes on where it was.
func (x *tx) applyEntry(ctx context.Context, l jobs.CalendarList, e jobs.CalendarEntry) error {
	if e.Deleted {
		_, err := x.ExecContext(ctx, "UPDATE calendars SET state = ?, reason = ?, seen = ? WHERE account = ? AND id = ?",
			jobs.CalendarRemoved, notListed, l.Stream.Gen, l.Account, e.ID)
		return err
	}
	_, err := x.ExecContext(ctx, `INSERT INTO calendars (account, id, seen, entry, summary, time_zone, access_role, is_primary, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (account, id) DO UPDATE SET seen = excluded.seen, entry = excluded.entry, summary = excluded.summary,
			time_zone = excluded.time_zone, access_role = excluded.access_role, is_primary = excluded.is_primary,
			reason = CASE WHEN calendars.state = ? THEN '' ELSE calendars.reason END,
			state = CASE WHEN calendars.state <> ? THEN calendars.state WHEN calendars.synced_at > 0 THEN ? ELSE excluded.state END`,
		l.Account, e.ID, l.Stream.Gen, clean(string(e.JSON)), clean(e.Summary), clean(e.TimeZone), clean(e.AccessRole), e.Primary, jobs.CalendarNew,
		jobs.CalendarRemoved, jobs.CalendarRemoved, jobs.CalendarSynced)
	return err
}

// RoundCalendars lists the calendars of the owner's account that the round has
// yet to deal with and that may be read now: those first of which only what has
// changed is read.
func (s *Store) RoundCalendars(ctx context.Context, ref jobs.TaskRef) (all []jobs.Calendar, err error) {
	_, err = s.owned(ctx, ahead, ref, "list calendars", func(ctx context.Context, x *tx, r *row) error {
		rows, err := x.QueryContext(ctx, selectCalendar+`WHERE account = ? AND state <> ? AND next_try <= ?
			AND round < (SELECT round FROM calendar_lists AS l WHERE l.account = calendars.account)
			ORDER BY pass <> '', page_token = '', id`, r.Account, jobs.CalendarRemoved, x.now)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c jobs.Calendar
			if err := scanCalendar(rows.Scan, &c); err != nil {
				return err
			}
			all = append(all, c)
		}
		return rows.Err()
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
		whole, gen := c.Stream.Whole(), c.Stream.Gen
		complete, trouble := c.Stream.Advance(len(page.Events), page.Next, page.SyncToken, x.moment())
		switch {
		case trouble != "":
			c.State, c.Reason = jobs.CalendarFailing, trouble
			return nil
		case complete:
			c.State, c.Reason = jobs.CalendarSynced, ""
			if err := x.doneWith(ctx, c); err != nil {
				return err
			}
		}
		r.Progressed()
		if !complete || !whole {
			return nil
		}
		_, err := x.ExecContext(ctx, "UPDATE events SET deleted_at = ? WHERE calendar = ? AND gen < ? AND deleted_at = 0", x.now, c.num, gen)
		return err
	})
}

// doneWith says that the round is done with a calendar.
func (x *tx) doneWith(ctx context.Context, c *calendarRow) error {
	return x.QueryRowContext(ctx, "SELECT round FROM calendar_lists WHERE account = ?", c.Account).Scan(&c.round)
}

// ExpireCalendar says that Google refused a calendar's sync token, or broke off a
// pass over the whole of it: it is read as a whole, now or at its NextTry.
func (s *Store) ExpireCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "expire calendar", calendar, func(_ context.Context, x *tx, _ *row, c *calendarRow) error {
		c.Stream.Expire(x.moment())
		c.State, c.Reason = jobs.CalendarExpired, reason
		return nil
	})
}

// RestartCalendar says that a page token of a calendar's pass leads nowhere: the
// pass starts over, now or at the calendar's NextTry.
func (s *Store) RestartCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "restart calendar", calendar, func(_ context.Context, x *tx, _ *row, c *calendarRow) error {
		c.Stream.Restart(x.moment())
		if !c.Stream.NextTry.IsZero() {
			c.State, c.Reason = jobs.CalendarFailing, reason
		}
		return nil
	})
}

// MarkCalendar says why a calendar cannot be read: state is one of missing,
// forbidden and failing. It is left alone for a while. A failing one is tried
// again by itself, the others by a later sync.
func (s *Store) MarkCalendar(ctx context.Context, ref jobs.TaskRef, calendar string, state jobs.CalendarState, reason string) (jobs.Calendar, error) {
	return s.changeCalendar(ctx, inLine, ref, "mark calendar", calendar, func(ctx context.Context, x *tx, _ *row, c *calendarRow) error {
		c.Stream.Fail(x.moment())
		c.State, c.Reason = state, reason
		if state == jobs.CalendarFailing {
			return nil
		}
		return x.doneWith(ctx, c)
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
		return x.saveListStream(ctx, l)
	})
	return l, err
}

// EndCalendars says that a round has come to its end. Where it left calendars, or
// their list, alone for their troubles, the next begins when the first of them may
// be tried again.
func (s *Store) EndCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error) {
	_, err = s.owned(ctx, ahead, ref, "end calendars", func(ctx context.Context, x *tx, r *row) (err error) {
		_, err = x.ExecContext(ctx, `UPDATE calendar_lists SET done_at = ?, resume_at = (
			SELECT COALESCE(MIN(at), 0) FROM (
				SELECT c.next_try AS at FROM calendars AS c
				WHERE c.account = calendar_lists.account AND c.round < calendar_lists.round AND c.state <> ?
				UNION ALL SELECT calendar_lists.next_try WHERE calendar_lists.listed < calendar_lists.round))
			WHERE account = ?`, x.now, jobs.CalendarRemoved, r.Account)
		if err != nil {
			return err
		}
		l, err = x.calendarList(ctx, r.Account)
		return err
	})
	return l, err
}
