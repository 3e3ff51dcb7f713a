package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

// applyEvent brings what Google says of one event into its row, by [jobs.Event.Over].
// Seen is when the calendar had last changed as Google said it.
func (x *tx) applyEvent(ctx context.Context, c *calendarRow, e jobs.Event, seen time.Time) error {
	var old jobs.Event
	var text string
	err := x.QueryRowContext(ctx, selectEvent, c.num, e.ID).Scan(&old.Status, &old.ICalUID, &old.Series, &old.OriginalStart,
		millis{&old.Updated}, &old.ETag, &text, millis{&old.DeletedAt})
	if err == nil {
		old.ID, old.JSON = e.ID, json.RawMessage(text)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	e, err = e.Over(old, seen, x.moment(), func(id string) (bool, error) {
		return x.exists(ctx, "SELECT 1 FROM events WHERE calendar = ? AND id = ? AND series = ''", c.num, id)
	})
	if err != nil {
		return err
	}
	_, err = x.ExecContext(ctx, upsertEvent, c.num, e.ID, clean(e.Status), clean(e.ICalUID), clean(e.Series), clean(e.OriginalStart),
		toMillis(e.Updated), clean(e.ETag), clean(string(e.JSON)), c.Stream.Gen, toMillis(e.DeletedAt))
	if err != nil || old.ID != "" || e.Cancelled() || !e.IsSeries() {
		return err
	}
	return x.adopt(ctx, c, e.ID)
}

// orphans are tombstones with the ids of occurrences, of a series that was not
// known: a range of the key, since the character after "_" is "`".
const orphans = "SELECT id FROM events WHERE calendar = ? AND id > ? AND id < ? AND series = '' AND status = ?"

// adopt gives a series that is new the tombstones that came before it.
func (x *tx) adopt(ctx context.Context, c *calendarRow, series string) error {
	ids, err := x.ids(ctx, orphans, c.num, series+"_", series+"`", jobs.EventCancelled)
	if err != nil {
		return err
	}
	for _, id := range ids {
		e := jobs.Event{ID: id, Status: jobs.EventCancelled}
		if !e.Adopt(series) {
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
