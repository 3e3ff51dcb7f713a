package calendar

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"

	"headroom/internal/lab/fakegoogle/wire"
)

// givenID is what an id that a client makes up may be, from 5 to 1024 characters.
var givenID = regexp.MustCompile(`^[0-9a-v]{5,}$`)

// insertEvent serves calendar.events.insert. The caller holds the lock.
func (c *Calendar) insertEvent(r *http.Request) (any, *wire.Error) {
	var e Event
	if bad := readBody(r, &e); bad != nil {
		return nil, bad
	}
	if e.ID != "" && (!givenID.MatchString(e.ID) || len(e.ID) > 1024) {
		return nil, badRequest("invalid", "Invalid resource id value.", "")
	}
	if _, ok := c.events[e.ID]; ok {
		return nil, wire.NewError(http.StatusConflict, "global", "duplicate", "The requested identifier already exists.")
	}
	if bad := c.validate(&e); bad != nil {
		return nil, bad
	}
	e.RecurringEventID, e.OriginalStartTime, e.Created = "", nil, ""
	stored, err := c.add(e)
	if err != nil {
		return nil, badRequest("invalid", err.Error(), "")
	}
	return c.rendered(stored, c.zone), nil
}

// validate refuses events that Google would.
func (c *Calendar) validate(e *Event) *wire.Error {
	switch {
	case e.Start == nil || e.Start.Date == "" && e.Start.DateTime == "":
		return badRequest("required", "Missing start time.", "")
	case e.End == nil || e.End.Date == "" && e.End.DateTime == "":
		return badRequest("required", "Missing end time.", "")
	case (e.Start.Date == "") != (e.End.Date == ""):
		return badRequest("invalid", "Start and end times must either both be date or both be dateTime.", "")
	case len(e.Recurrence) > 0 && e.Start.Date == "" && e.Start.TimeZone == "":
		return badRequest("required", "Missing time zone definition for start time.", "")
	}
	start, err := e.Start.moment(c.zone)
	end, err2 := e.End.moment(c.zone)
	if err != nil || err2 != nil {
		return badRequest("invalid", "Invalid value for start or end time.", "")
	}
	if end.Before(start) {
		bad := badRequest("timeRangeEmpty", "The specified time range is empty.", "")
		bad.Errors[0].Domain = "calendar"
		return bad
	}
	if len(e.Recurrence) > 0 {
		if _, _, err := c.ruleSet(e); err != nil {
			return badRequest("invalid", "Invalid recurrence rule.", "")
		}
	}
	return nil
}

// changeEvent serves calendar.events.patch and update, of events and of
// occurrences. The caller holds the lock.
func (c *Calendar) changeEvent(r *http.Request, id string, patch bool) (any, *wire.Error) {
	old, bad := c.writable(r, id)
	if bad != nil {
		return nil, bad
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestEventBody))
	if err != nil {
		return nil, wire.NewError(http.StatusBadRequest, "global", "parseError", "Parse Error")
	}
	// Decoding into the old event would write into what readers hold: maps and
	// slices are made anew.
	var changed Event
	if patch {
		changed, err = merged(old, body)
	} else {
		err = json.Unmarshal(body, &changed)
		changed.Created, changed.ICalUID, changed.Creator, changed.Organizer = old.Created, old.ICalUID, old.Creator, old.Organizer
		changed.EventType, changed.Reminders = old.EventType, old.Reminders
	}
	if err != nil {
		return nil, wire.NewError(http.StatusBadRequest, "global", "parseError", "Parse Error: "+err.Error())
	}
	if changed.Status == EventCancelled {
		return nil, c.deleteEvent(r, id)
	}
	if bad := c.validate(&changed); bad != nil {
		return nil, bad
	}
	stored, err := c.update(id, func(e *Event) { *e = changed })
	if err != nil {
		return nil, badRequest("invalid", err.Error(), "")
	}
	return c.rendered(stored, c.zone), nil
}

// merged is an event with the fields of a patch in place of its own: objects are
// merged, arrays are replaced, null takes away.
func merged(old Event, patch []byte) (Event, error) {
	encoded, err := json.Marshal(old)
	if err != nil {
		return Event{}, err
	}
	var base, change map[string]any
	if err := errors.Join(json.Unmarshal(encoded, &base), json.Unmarshal(patch, &change)); err != nil {
		return Event{}, err
	}
	encoded, err = json.Marshal(mergeObjects(base, change))
	if err != nil {
		return Event{}, err
	}
	var e Event
	return e, json.NewDecoder(bytes.NewReader(encoded)).Decode(&e)
}

func mergeObjects(base, change map[string]any) map[string]any {
	if base == nil {
		base = map[string]any{}
	}
	for key, value := range change {
		object, ok := value.(map[string]any)
		switch {
		case value == nil:
			delete(base, key)
		case ok:
			inner, _ := base[key].(map[string]any)
			base[key] = mergeObjects(inner, object)
		default:
			base[key] = value
		}
	}
	return base
}

// writable finds the event that a request changes, and holds it to If-Match.
func (c *Calendar) writable(r *http.Request, id string) (Event, *wire.Error) {
	if e, ok := c.events[id]; ok && e.cancelled() {
		return Event{}, gone("deleted")
	}
	e, err := c.current(id)
	if err != nil {
		return Event{}, notFound()
	}
	if etag := r.Header.Get("If-Match"); etag != "" && etag != "*" && etag != e.Etag {
		return Event{}, wire.NewError(http.StatusPreconditionFailed, "global", "conditionNotMet", "Precondition Failed")
	}
	return e, nil
}

// deleteEvent serves calendar.events.delete. The caller holds the lock.
func (c *Calendar) deleteEvent(r *http.Request, id string) *wire.Error {
	if _, bad := c.writable(r, id); bad != nil {
		return bad
	}
	if err := c.removeSeries(id, true); err != nil {
		return notFound()
	}
	return nil
}
