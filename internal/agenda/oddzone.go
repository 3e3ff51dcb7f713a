package agenda

import (
	"fmt"
	"time"
)

// An oddZone is the name of a zone that is not one of IANA's.
type oddZone struct {
	name        string
	taken       string // how it is read
	first, last string // ids of events that have it
	more        int    // events after the first
}

// readZone reads the calendar's own zone.
func (a *Agenda) readZone() {
	zone, found := location(a.calendar.TimeZone)
	if a.zoneless = !found; found {
		a.zone = zone
	}
	if !found || zone.String() != a.calendar.TimeZone {
		a.problems = append(a.problems, Problem{Calendar: a.calendar.ID, Notice: true,
			Text: fmt.Sprintf("its time zone %q is none of IANA's: its days begin in %s", a.calendar.TimeZone, a.zone)})
	}
}

// zoneOf returns the zone of a time of an event: the one that it names, otherwise the
// calendar's. If the named zone is unknown, or is the calendar's own, it returns or.
func (a *Agenda) zoneOf(event, name string, or *time.Location) *time.Location {
	if name == "" {
		if a.zoneless {
			return or
		}
		return a.zone
	}
	zone, found := location(name)
	switch {
	case !found:
		a.noteZone(event, name, "its times keep the distance from UTC that they come with")
		return or
	case zone.String() != name:
		a.noteZone(event, name, "it is taken for "+zone.String())
	}
	return zone
}

// noteZone records that an event has an odd zone.
func (a *Agenda) noteZone(event, name, taken string) {
	if name == a.calendar.TimeZone {
		return // the calendar's own notice covers it
	}
	for i := range a.odd {
		o := &a.odd[i]
		if o.name != name {
			continue
		}
		if o.last != event {
			o.last = event
			o.more++
		}
		return
	}
	a.odd = append(a.odd, oddZone{name: name, taken: taken, first: event, last: event})
}

// oddZones returns one notice for each odd zone, however many events have it.
func (a *Agenda) oddZones() (notices []Problem) {
	for _, o := range a.odd {
		text := fmt.Sprintf("time zone %q is none of IANA's: %s", o.name, o.taken)
		if o.more > 0 {
			text += fmt.Sprintf(" (so in %d more events)", o.more)
		}
		notices = append(notices, Problem{Calendar: a.calendar.ID, Event: o.first, Text: text, Notice: true})
	}
	return notices
}

// readLists records the odd zones in a series' lists of dates.
func (a *Agenda) readLists(e *event) {
	for _, text := range e.Recurrence {
		if l, err := readLine(text); err == nil && l.params["TZID"] != "" {
			a.zoneOf(e.stored.ID, l.params["TZID"], e.zone)
		}
	}
}
