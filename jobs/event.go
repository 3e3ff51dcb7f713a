package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Over returns the row of an event of which Google now says e, over its row before,
// which is the zero Event if there was none. Seen is when the calendar had last
// changed as Google said it. IsSeries reports whether an id is that of a series that
// is stored.
//
// One owner reads a calendar at a time, page after page, so what Google says later is
// the truth, whatever its date: an event that is restored comes with the date that it
// had before.
func (e Event) Over(old Event, seen, now time.Time, isSeries func(id string) (bool, error)) (Event, error) {
	if !e.Cancelled() {
		return e, nil
	}
	if old.ID != "" {
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
	if series, start, ok := occurrence(e.ID); e.Series == "" && ok {
		switch stored, err := isSeries(series); {
		case err != nil:
			return e, err
		case stored:
			e.Series, e.OriginalStart = series, cmp.Or(start, e.OriginalStart)
		}
	}
	if e.Series != "" {
		return e, nil // the series lives; if it does not, that decides
	}
	e.DeletedAt = old.DeletedAt
	if e.DeletedAt.IsZero() {
		e.DeletedAt = now
	}
	return e, nil
}

// IsSeries reports whether the event is a series.
func (e Event) IsSeries() bool { return bytes.Contains(e.JSON, []byte(`"recurrence"`)) }

// Adopt makes a tombstone that came before its series an occurrence of it, which does
// not take place. It reports false for any other event.
func (e *Event) Adopt(series string) bool {
	of, start, ok := occurrence(e.ID)
	if !ok || of != series || e.Series != "" || !e.Cancelled() {
		return false
	}
	e.Series, e.OriginalStart, e.DeletedAt = series, start, time.Time{}
	return true
}

// occurrenceID is the id of an occurrence: that of the series, and the original start
// in UTC or the date.
var occurrenceID = regexp.MustCompile(`^(.+)_(\d{8}T\d{6}Z|\d{8})$`)

// occurrence is what a tombstone with few fields may leave out: the series that the
// event is an occurrence of, and its original start.
func occurrence(id string) (series, start string, ok bool) {
	parts := occurrenceID.FindStringSubmatch(id)
	if parts == nil {
		return "", "", false
	}
	if at, err := time.Parse("20060102T150405Z", parts[2]); err == nil {
		start = at.Format(time.RFC3339)
	} else if day, err := time.Parse("20060102", parts[2]); err == nil {
		start = day.Format(time.DateOnly)
	}
	return parts[1], start, true
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
