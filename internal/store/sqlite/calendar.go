package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"headroom/jobs"
)

// streamColumns are the columns of a stream, in the order of streamFields.
var streamColumns = []string{"sync_token", "page_token", "pass", "gen", "pages", "restarts", "barren",
	"synced_at", "resynced_at", "resyncs", "expiries", "failures", "next_try"}

func streamFields(s *jobs.Stream) []any {
	return []any{&s.SyncToken, &s.PageToken, &s.Pass, &s.Gen, &s.Pages, &s.Restarts, &s.EmptyPages,
		millis{&s.SyncedAt}, millis{&s.ResyncedAt}, &s.Resyncs, &s.Expiries, &s.Failures, millis{&s.NextTry}}
}

func streamValues(s jobs.Stream) []any {
	return []any{s.SyncToken, s.PageToken, s.Pass, s.Gen, s.Pages, s.Restarts, s.EmptyPages,
		toMillis(s.SyncedAt), toMillis(s.ResyncedAt), s.Resyncs, s.Expiries, s.Failures, toMillis(s.NextTry)}
}

var (
	setStream = strings.Join(streamColumns, " = ?, ") + " = ?"

	listColumns = "l.account, l.asked_at, l.asked_all, l.begun_at, l.done_at, l.resume_at, l.round, l.listed = l.round, l." +
		strings.Join(streamColumns, ", l.")
	selectList = "SELECT " + listColumns + " FROM calendar_lists AS l "
	upsertList = "INSERT INTO calendar_lists (account, asked_at, asked_all, begun_at, done_at, resume_at, round, listed, " + strings.Join(streamColumns, ", ") +
		") VALUES (?" + strings.Repeat(", ?", 7+len(streamColumns)) + `)
		ON CONFLICT (account) DO UPDATE SET asked_at = excluded.asked_at, asked_all = excluded.asked_all, begun_at = excluded.begun_at,
			done_at = excluded.done_at, resume_at = excluded.resume_at, round = excluded.round, listed = excluded.listed` + excludedStream()

	selectCalendar = `SELECT num, round, account, id, summary, time_zone, access_role, is_primary, entry, state, reason, ` +
		strings.Join(streamColumns, ", ") + " FROM calendars "
)

func excludedStream() (text string) {
	for _, c := range streamColumns {
		text += ", " + c + " = excluded." + c
	}
	return text
}

// calendarRow is a calendar's row with its internal key.
type calendarRow struct {
	num int64
	jobs.Calendar
}

func (c *calendarRow) scan(scan func(...any) error) error {
	var entry string
	err := scan(append([]any{&c.num, &c.Round, &c.Account, &c.ID, &c.Summary, &c.TimeZone, &c.AccessRole, &c.Primary,
		&entry, &c.State, &c.Reason}, streamFields(&c.Stream)...)...)
	c.JSON = json.RawMessage(entry)
	return err
}

func scanCalendar(scan func(...any) error, c *jobs.Calendar) error {
	var r calendarRow
	err := r.scan(scan)
	*c = r.Calendar
	return err
}

// listFields are what listColumns are scanned into.
func listFields(l *jobs.CalendarList) []any {
	return append([]any{&l.Account, millis{&l.AskedAt}, &l.AskedAll, millis{&l.BegunAt}, millis{&l.SyncedAt},
		millis{&l.ResumeAt}, &l.Round, &l.Listed}, streamFields(&l.Stream)...)
}

// CalendarList returns where the sync of an account's calendars stands, or
// [jobs.ErrNotFound] when none was ever asked for.
func (s *Store) CalendarList(ctx context.Context, email string) (l jobs.CalendarList, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		l, err = x.calendarList(ctx, normal(email))
		return err
	})
	return l, err
}

func (x *tx) calendarList(ctx context.Context, account string) (l jobs.CalendarList, err error) {
	if err := x.QueryRowContext(ctx, selectList+"WHERE l.account = ?", account).Scan(listFields(&l)...); err != nil {
		return jobs.CalendarList{}, fmt.Errorf("calendars of %s: %w", account, notFound(err))
	}
	return l, nil
}

// Calendars lists an account's calendars by id, those that left its list among
// them.
func (s *Store) Calendars(ctx context.Context, email string) ([]jobs.Calendar, error) {
	return list(ctx, s, scanCalendar, selectCalendar+"WHERE account = ? ORDER BY id", normal(email))
}

// Calendar returns one calendar of an account, or [jobs.ErrNotFound].
func (s *Store) Calendar(ctx context.Context, email, id string) (jobs.Calendar, error) {
	var c calendarRow
	if err := c.scan(s.reader.QueryRowContext(ctx, selectCalendar+"WHERE account = ? AND id = ?", normal(email), id).Scan); err != nil {
		return jobs.Calendar{}, fmt.Errorf("calendar %q of %s: %w", id, email, notFound(err))
	}
	return c.Calendar, nil
}

// An occurrence goes with its series: where that was deleted, so was it.
const selectEvents = `SELECT c.id, e.id, e.status, e.ical_uid, e.series, e.original_start, e.updated, e.etag, e.event,
		CASE WHEN e.deleted_at > 0 OR m.deleted_at IS NULL THEN e.deleted_at ELSE m.deleted_at END AS gone
	FROM events AS e JOIN calendars AS c ON c.num = e.calendar
		LEFT JOIN events AS m ON e.series <> '' AND m.calendar = e.calendar AND m.id = e.series
	WHERE c.account = ? AND c.id = ? AND e.id > ? AND (? OR e.deleted_at = 0 AND COALESCE(m.deleted_at, 0) = 0)
	ORDER BY e.id LIMIT ?`

// Events lists events of a calendar by id.
func (s *Store) Events(ctx context.Context, email, calendar string, q jobs.EventQuery) ([]jobs.Event, error) {
	return list(ctx, s, scanEvent, selectEvents, normal(email), calendar, q.After, q.Deleted, page(q.Limit))
}

func scanEvent(scan func(...any) error, e *jobs.Event) error {
	var text string
	err := scan(&e.Calendar, &e.ID, &e.Status, &e.ICalUID, &e.Series, &e.OriginalStart, millis{&e.Updated}, &e.ETag, &text,
		millis{&e.DeletedAt})
	e.JSON = json.RawMessage(text)
	return err
}

// calendar reads one calendar's row in a transaction.
func (x *tx) calendar(ctx context.Context, account, id string) (*calendarRow, error) {
	c := new(calendarRow)
	err := c.scan(x.QueryRowContext(ctx, selectCalendar+"WHERE account = ? AND id = ?", account, id).Scan)
	if err != nil {
		return nil, fmt.Errorf("calendar %q of %s: %w", id, account, notFound(err))
	}
	return c, nil
}

// save writes what may have changed in a calendar's row, but for its entry.
func (x *tx) saveCalendar(ctx context.Context, c *calendarRow) error {
	args := append([]any{c.State, clean(c.Reason), c.Round}, streamValues(c.Stream)...)
	_, err := x.ExecContext(ctx, "UPDATE calendars SET state = ?, reason = ?, round = ?, "+setStream+" WHERE num = ?", append(args, c.num)...)
	if err != nil {
		return fmt.Errorf("save calendar %q: %w", c.ID, err)
	}
	return nil
}

// changeCalendars changes the calendars of an account, and saves those that are not
// as before.
func (x *tx) changeCalendars(ctx context.Context, account string, change func(*jobs.Calendar)) error {
	all, err := x.calendars(ctx, account)
	if err != nil {
		return err
	}
	for _, c := range all {
		stream, state := c.Stream, c.State
		if change(&c.Calendar); c.Stream == stream && c.State == state {
			continue
		}
		if err := x.saveCalendar(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// calendars reads the rows of an account's calendars.
func (x *tx) calendars(ctx context.Context, account string) ([]*calendarRow, error) {
	return rows(ctx, x, func(scan func(...any) error, c **calendarRow) error {
		*c = new(calendarRow)
		return (*c).scan(scan)
	}, selectCalendar+"WHERE account = ? ORDER BY id", account)
}

// saveCalendarList writes a list of calendars as it is.
func (x *tx) saveCalendarList(ctx context.Context, l jobs.CalendarList) error {
	listed := l.Round // the round in which the list was last read
	if !l.Listed {
		listed--
	}
	args := append([]any{l.Account, toMillis(l.AskedAt), l.AskedAll, toMillis(l.BegunAt), toMillis(l.SyncedAt), toMillis(l.ResumeAt),
		l.Round, listed}, streamValues(l.Stream)...)
	if _, err := x.ExecContext(ctx, upsertList, args...); err != nil {
		return fmt.Errorf("save the list of calendars of %s: %w", l.Account, err)
	}
	return nil
}

// exists reports whether a query finds a row.
func (x *tx) exists(ctx context.Context, query string, args ...any) (bool, error) {
	var one int
	err := x.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

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
