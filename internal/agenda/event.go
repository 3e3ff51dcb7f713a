package agenda

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lenient"
	"headroom/jobs"
)

const dayLayout = "2006-01-02"

// When is a day, or a moment with the zone in which it is kept.
type When struct {
	Date string    `json:"date,omitempty"`
	Time time.Time `json:"time,omitzero"`
	Zone string    `json:"zone,omitempty"`
}

// IsZero reports whether w holds neither a day nor a moment.
func (w When) IsZero() bool { return w.Date == "" && w.Time.IsZero() }

// in returns the moment; a day begins at midnight in zone.
func (w When) in(zone *time.Location) time.Time {
	if w.Date == "" {
		return w.Time
	}
	day, _ := time.Parse(dayLayout, w.Date) // it was read before
	return instant(day, zone)
}

// Local returns the moment by the clocks of its zone, or the beginning of a day in UTC.
func (w When) Local() time.Time { return w.in(time.UTC).In(w.location()) }

// location returns the zone of a moment.
func (w When) location() *time.Location {
	if zone, ok := location(w.Zone); ok {
		return zone
	}
	return time.UTC
}

// addDays returns the day n days later, at most the last one that can be written.
func (w When) addDays(n int) When {
	return When{Date: dayOf(w.in(time.UTC).AddDate(0, 0, n))}
}

// An event is a stored event whose times were read.
type event struct {
	calendar.Event
	stored     jobs.Event
	start, end When
	original   When // of an occurrence
	zone       *time.Location
}

// allDay reports whether the event has days instead of times.
func (e *event) allDay() bool { return e.start.Date != "" }

// readEvent reads an event. A cancelled event needs no time but that of the
// occurrence that it cancels.
func (a *Agenda) readEvent(stored jobs.Event) (*event, error) {
	e := &event{stored: stored}
	odd, err := lenient.Unmarshal(stored.JSON, &e.Event, lenient.Text(timeOf))
	if err != nil {
		return nil, fmt.Errorf("read what Google gave: %w", err)
	}
	for _, p := range odd {
		a.problems = append(a.problems, a.problem(stored.ID, errors.New(p.String())))
	}
	if e.OriginalStartTime == nil {
		e.OriginalStartTime = originalOf(stored)
	}
	if e.OriginalStartTime != nil {
		if e.original, err = a.when(stored.ID, e.OriginalStartTime); err != nil {
			return nil, fmt.Errorf("original start: %w", err)
		}
	}
	if stored.Cancelled() {
		return e, nil
	}
	if e.start, err = a.when(stored.ID, e.Start); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	e.end = a.endOf(e)
	if e.zone = time.UTC; !e.allDay() {
		e.zone = e.start.location()
	}
	a.readLists(e)
	e.stored.JSON = nil // it is read, and there are many
	return e, nil
}

// outranks reports whether an exception, and not another one, replaces an occurrence.
func (e *event) outranks(other *event) bool {
	if living := !e.stored.Cancelled(); living == other.stored.Cancelled() {
		return living
	}
	return cmp.Or(e.stored.Updated.Compare(other.stored.Updated), cmp.Compare(e.Sequence, other.Sequence)) > 0
}

// timeOf reads a time that stands where an object with a time is usual.
func timeOf(text string) calendar.EventDateTime {
	if _, err := time.Parse(dayLayout, text); err == nil {
		return calendar.EventDateTime{Date: text}
	}
	return calendar.EventDateTime{DateTime: text}
}

// endOf returns when an event ends. If Google names no end after its start, it ends
// when it begins; a day without any end lasts that day.
func (a *Agenda) endOf(e *event) When {
	end, err := a.when(e.stored.ID, e.End)
	switch {
	case errors.Is(err, errNoTime) && e.allDay():
		return e.start.addDays(1)
	case err != nil || (end.Date != "") != e.allDay() || end.in(time.UTC).Before(e.start.in(time.UTC)):
		return e.start
	}
	return end
}

// originalOf reads an occurrence's original start from its id, because a thin
// tombstone may lack the field. It returns nil if the id does not have it either.
func originalOf(stored jobs.Event) *calendar.EventDateTime {
	if stored.OriginalStart != "" {
		original := timeOf(stored.OriginalStart)
		return &original
	}
	suffix, ok := strings.CutPrefix(stored.ID, stored.Series+"_")
	if !ok || stored.Series == "" {
		return nil
	}
	if at, err := time.Parse(utcLayout, suffix); err == nil {
		return &calendar.EventDateTime{DateTime: at.Format(time.RFC3339)}
	}
	if day, err := time.Parse("20060102", suffix); err == nil {
		return &calendar.EventDateTime{Date: day.Format(dayLayout)}
	}
	return nil
}

var errNoTime = errors.New("no time")

// when reads a time of an event as Google gives it. A moment without an offset is in
// its zone.
func (a *Agenda) when(event string, t *calendar.EventDateTime) (When, error) {
	switch {
	case t == nil || t.Date == "" && t.DateTime == "":
		return When{}, errNoTime
	case t.Date != "":
		_, err := time.Parse(dayLayout, t.Date)
		return When{Date: t.Date}, err
	}
	if at, err := time.Parse(time.RFC3339, t.DateTime); err == nil {
		_, offset := at.Zone()
		return When{Time: inWorld(at).Truncate(time.Second), Zone: a.zoneOf(event, t.TimeZone, fixed(offset)).String()}, nil
	}
	wall, err := time.Parse("2006-01-02T15:04:05", t.DateTime)
	if err != nil {
		return When{}, err
	}
	zone := a.zoneOf(event, t.TimeZone, a.zone)
	return When{Time: inWorld(instant(wall, zone)), Zone: zone.String()}, nil
}

// instant returns when the clocks of a zone show wall, which is given in UTC.
func instant(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	if short := wall.Sub(onWall(t)); short != 0 {
		// Never shown: time.Date used the offset on either side of the gap.
		return t.Add(max(0, short))
	}
	since, _ := t.ZoneBounds()
	if since.IsZero() {
		return t
	}
	_, before := since.Add(-time.Second).Zone()
	if first := wall.Add(-time.Duration(before) * time.Second).In(zone); first.Before(since) {
		return first
	}
	return t
}

// onWall returns what the clocks in the zone of t show, as a time in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
