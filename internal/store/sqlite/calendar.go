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
	return []any{&s.SyncToken, &s.PageToken, &s.Pass, &s.Gen, &s.Pages, &s.Restarts, &s.Barren,
		millis{&s.SyncedAt}, millis{&s.ResyncedAt}, &s.Resyncs, &s.Expiries, &s.Failures, millis{&s.NextTry}}
}

func streamValues(s jobs.Stream) []any {
	return []any{s.SyncToken, s.PageToken, s.Pass, s.Gen, s.Pages, s.Restarts, s.Barren,
		toMillis(s.SyncedAt), toMillis(s.ResyncedAt), s.Resyncs, s.Expiries, s.Failures, toMillis(s.NextTry)}
}

var (
	setStream = strings.Join(streamColumns, " = ?, ") + " = ?"

	selectList = `SELECT account, asked_at, asked_all, begun_at, done_at, resume_at, round, listed = round, ` +
		strings.Join(streamColumns, ", ") + " FROM calendar_lists "
	selectCalendar = `SELECT num, round, account, id, summary, time_zone, access_role, is_primary, entry, state, reason, ` +
		strings.Join(streamColumns, ", ") + " FROM calendars "
)

// calendarRow is a calendar's row with its internal key and the round that was
// last done with it.
type calendarRow struct {
	num, round int64
	jobs.Calendar
}

func (c *calendarRow) scan(scan func(...any) error) error {
	var entry string
	err := scan(append([]any{&c.num, &c.round, &c.Account, &c.ID, &c.Summary, &c.TimeZone, &c.AccessRole, &c.Primary,
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

func scanList(scan func(...any) error, l *jobs.CalendarList) error {
	return scan(append([]any{&l.Account, millis{&l.AskedAt}, &l.AskedAll, millis{&l.BegunAt}, millis{&l.SyncedAt},
		millis{&l.ResumeAt}, &l.Round, &l.Listed}, streamFields(&l.Stream)...)...)
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
	if err := scanList(x.QueryRowContext(ctx, selectList+"WHERE account = ?", account).Scan, &l); err != nil {
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
	args := append([]any{c.State, clean(c.Reason), c.round}, streamValues(c.Stream)...)
	_, err := x.ExecContext(ctx, "UPDATE calendars SET state = ?, reason = ?, round = ?, "+setStream+" WHERE num = ?", append(args, c.num)...)
	if err != nil {
		return fmt.Errorf("save calendar %q: %w", c.ID, err)
	}
	return nil
}

func (x *tx) saveListStream(ctx context.Context, l jobs.CalendarList) error {
	_, err := x.ExecContext(ctx, "UPDATE calendar_lists SET "+setStream+" WHERE account = ?", append(streamValues(l.Stream), l.Account)...)
	return err
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
