package agenda

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"headroom/internal/lenient"
	"headroom/jobs"

	"google.golang.org/api/calendar/v3"
)

const dayLayout = "2006-01-02"

// When is a day, or a moment with the zone in which it is kept.
type When struct {
	Date string    `json:"date,omitempty"`
	Time time.Time `json:"time,omitzero"`
	Zone string    `json:"zone,omitempty"`
}

// IsZero reports whether there is no time at all.
func (w When) IsZero() bool { return w.Date == "" && w.Time.IsZero() }

// in is the moment; a day begins at midnight in zone.
func (w When) in(zone *time.Location) time.Time {
	if w.Date == "" {
		return w.Time
	}
	day, _ := time.Parse(dayLayout, w.Date) // it was read before
	return instant(day, zone)
}

// An event is a stored event whose times are understood.
type event struct {
	calendar.Event
	stored     jobs.Event
	start, end When
	original   When // of an occurrence
	zone       *time.Location
}

// allDay reports whether the event has days and no times.
func (e *event) allDay() bool { return e.start.Date != "" }

// readEvent understands an event. One that is cancelled need not have any time
// but that of the occurrence that it cancels.
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
		if e.original, err = a.when(e.OriginalStartTime); err != nil {
			return nil, fmt.Errorf("original start: %w", err)
		}
	}
	if stored.Cancelled() {
		return e, nil
	}
	if e.start, err = a.when(e.Start); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if e.end, err = a.when(e.End); err != nil || (e.end.Date == "") != (e.start.Date == "") {
		e.end = e.start
	}
	if e.zone = time.UTC; !e.allDay() {
		e.zone, err = time.LoadLocation(cmp.Or(e.start.Zone, a.zone.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("time zone of the start: %w", err)
	}
	return e, nil
}

// timeOf is a time that stands where an object with one is usual.
func timeOf(text string) calendar.EventDateTime {
	if _, err := time.Parse(dayLayout, text); err == nil {
		return calendar.EventDateTime{Date: text}
	}
	return calendar.EventDateTime{DateTime: text}
}

// originalOf is the original start of an occurrence that Google's own words leave
// out, as those of a thin tombstone may; nil if it is not known either.
func originalOf(stored jobs.Event) *calendar.EventDateTime {
	if _, err := time.Parse(dayLayout, stored.OriginalStart); err == nil {
		return &calendar.EventDateTime{Date: stored.OriginalStart}
	}
	if stored.OriginalStart == "" {
		return nil
	}
	return &calendar.EventDateTime{DateTime: stored.OriginalStart}
}

var errNoTime = errors.New("no time")

// when reads a time of Google's. A moment without an offset is one of its zone's.
func (a *Agenda) when(t *calendar.EventDateTime) (When, error) {
	switch {
	case t == nil || t.Date == "" && t.DateTime == "":
		return When{}, errNoTime
	case t.Date != "":
		_, err := time.Parse(dayLayout, t.Date)
		return When{Date: t.Date}, err
	}
	zone := cmp.Or(t.TimeZone, a.zone.String())
	if at, err := time.Parse(time.RFC3339, t.DateTime); err == nil {
		return When{Time: at.UTC(), Zone: zone}, nil
	}
	wall, err := time.Parse("2006-01-02T15:04:05", t.DateTime)
	if err != nil {
		return When{}, err
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return When{}, err
	}
	return When{Time: instant(wall, loc).UTC(), Zone: zone}, nil
}

// instant is when clocks in a zone show what wall, in UTC, says.
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

// onWall is what clocks in the zone of t show, in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
