package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"headroom/jobs"
)

const (
	selectEvent = "SELECT status, ical_uid, series, original_start, updated, etag, event, deleted_at FROM events WHERE calendar = ? AND id = ?"
	upsertEvent = `INSERT INTO events (calendar, id, status, ical_uid, series, original_start, updated, etag, event, gen, deleted_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (calendar, id) DO UPDATE SET status = excluded.status, ical_uid = excluded.ical_uid, series = excluded.series,
			original_start = excluded.original_start, updated = excluded.updated, etag = excluded.etag, event = excluded.event,
			gen = excluded.gen, deleted_at = excluded.deleted_at`
)

// applyEvent brings what Google says of one event into its row. Seen is when the
// calendar had last changed as Google said it.
//
// One owner reads a calendar at a time, page after page, so what Google says later
// is the truth, whatever its date: an event that is restored or put back comes with
// the date that it had before.
func (x *tx) applyEvent(ctx context.Context, c *calendarRow, e jobs.Event, seen time.Time) error {
	var old jobs.Event
	var text string
	err := x.QueryRowContext(ctx, selectEvent, c.num, e.ID).Scan(&old.Status, &old.ICalUID, &old.Series, &old.OriginalStart,
		millis{&old.Updated}, &old.ETag, &text, millis{&old.DeletedAt})
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	old.JSON = json.RawMessage(text)
	if e.Cancelled() {
		if e, err = x.cancelled(ctx, c, e, old, known, seen); err != nil {
			return err
		}
	}
	_, err = x.ExecContext(ctx, upsertEvent, c.num, e.ID, clean(e.Status), clean(e.ICalUID), clean(e.Series), clean(e.OriginalStart),
		toMillis(e.Updated), clean(e.ETag), clean(string(e.JSON)), c.Stream.Gen, toMillis(e.DeletedAt))
	if err != nil || known || e.Cancelled() || !bytes.Contains(e.JSON, []byte(`"recurrence"`)) {
		return err
	}
	return x.adopt(ctx, c, e.ID)
}

// orphans are thin tombstones with the ids of occurrences, of a series that was not
// known: a range of the key, since the character after "_" is "`".
const orphans = "SELECT id FROM events WHERE calendar = ? AND id > ? AND id < ? AND series = '' AND status = ?"

// adopt gives a series that is new the tombstones that came before it: they are of
// occurrences that do not take place, and not of events that were deleted.
func (x *tx) adopt(ctx context.Context, c *calendarRow, series string) error {
	ids, err := x.ids(ctx, orphans, c.num, series+"_", series+"`", jobs.EventCancelled)
	if err != nil {
		return err
	}
	for _, id := range ids {
		e := jobs.Event{ID: id}
		if err := x.findSeries(ctx, c, &e); err != nil {
			return err
		}
		if e.Series != series {
			continue
		}
		_, err := x.ExecContext(ctx, "UPDATE events SET series = ?, original_start = ?, deleted_at = 0 WHERE calendar = ? AND id = ?",
			e.Series, e.OriginalStart, c.num, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// cancelled is the row of an event that was deleted, or of an occurrence that does
// not take place: what was known, with what Google says laid over it.
func (x *tx) cancelled(ctx context.Context, c *calendarRow, e, old jobs.Event, known bool, seen time.Time) (jobs.Event, error) {
	if known {
		var err error
		if e.JSON, err = overlay(old.JSON, e.JSON); err != nil {
			return e, err
		}
		e.ICalUID = cmp.Or(e.ICalUID, old.ICalUID)
		e.Series, e.OriginalStart = cmp.Or(e.Series, old.Series), cmp.Or(e.OriginalStart, old.OriginalStart)
		e.ETag = cmp.Or(e.ETag, old.ETag)
	}
	if e.Updated.IsZero() {
		e.Updated = old.Updated
		if seen.After(e.Updated) {
			e.Updated = seen
		}
	}
	if e.Series == "" {
		if err := x.findSeries(ctx, c, &e); err != nil {
			return e, err
		}
	}
	if e.Series != "" {
		return e, nil // the series lives; if it does not, that decides
	}
	e.DeletedAt = old.DeletedAt
	if e.DeletedAt.IsZero() {
		e.DeletedAt = x.moment()
	}
	return e, nil
}

// occurrenceID is the id of an occurrence: that of the series, and the original
// start in UTC or the date.
var occurrenceID = regexp.MustCompile(`^(.+)_(\d{8}T\d{6}Z|\d{8})$`)

// findSeries finds out what a thin tombstone may leave out: that it is about an
// occurrence of a series that is known.
func (x *tx) findSeries(ctx context.Context, c *calendarRow, e *jobs.Event) error {
	parts := occurrenceID.FindStringSubmatch(e.ID)
	if parts == nil {
		return nil
	}
	known, err := x.exists(ctx, "SELECT 1 FROM events WHERE calendar = ? AND id = ? AND series = ''", c.num, parts[1])
	if err != nil || !known {
		return err
	}
	e.Series = parts[1]
	if at, err := time.Parse("20060102T150405Z", parts[2]); err == nil {
		e.OriginalStart = at.Format(time.RFC3339)
	} else if day, err := time.Parse("20060102", parts[2]); err == nil {
		e.OriginalStart = day.Format(time.DateOnly)
	}
	return nil
}

// overlay lays the fields of one JSON object over those of another.
func overlay(under, over json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, object := range []json.RawMessage{under, over} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, fmt.Errorf("its JSON: %w", err)
		}
		for name, value := range fields {
			if string(value) != "null" {
				all[name] = value
			}
		}
	}
	return json.Marshal(all)
}
