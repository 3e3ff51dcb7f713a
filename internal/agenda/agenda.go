package agenda

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headroom/jobs"
)

// An Agenda is the events of one calendar. Make it with [New].
type Agenda struct {
	calendar jobs.Calendar
	zone     *time.Location // in which days begin
	zoneless bool           // the calendar's own zone is not known
	singles  []*event       // without repetition; exceptions whose series is not there among them
	series   []*series      // by id
	problems []Problem
	odd      []oddZone
}

// A series is an event that repeats, with the occurrences that differ from it.
type series struct {
	*event
	exceptions []*event
}

// A Problem is what could not be understood of an event. What could be is there.
type Problem struct {
	Calendar string `json:"calendar"`
	Event    string `json:"event"`
	Text     string `json:"text"`
	Notice   bool   `json:"notice,omitempty"` // nothing is missing: it says how something odd is read
}

func (p Problem) String() string {
	if p.Event == "" {
		return fmt.Sprintf("calendar %s: %s", p.Calendar, p.Text)
	}
	return fmt.Sprintf("event %s of calendar %s: %s", p.Event, p.Calendar, p.Text)
}

// New reads the events of a calendar. Tombstones count for nothing. Days begin in
// the calendar's zone, or in UTC where it has none that is known.
func New(c jobs.Calendar, events []jobs.Event) *Agenda {
	a := &Agenda{calendar: c, zone: time.UTC}
	if c.TimeZone != "" {
		a.readZone()
	}
	masters := map[string]*series{}
	var exceptions []*event
	for _, stored := range events {
		if !stored.DeletedAt.IsZero() {
			continue
		}
		e, err := a.readEvent(stored)
		switch {
		case err != nil:
			a.problems = append(a.problems, a.problem(stored.ID, err))
		case stored.Series != "":
			exceptions = append(exceptions, e)
		case stored.Cancelled():
		case len(e.Recurrence) > 0:
			s := &series{event: e}
			masters[stored.ID] = s
			a.series = append(a.series, s)
		default:
			a.singles = append(a.singles, e)
		}
	}
	for _, e := range exceptions {
		if s := masters[e.stored.Series]; s != nil {
			s.exceptions = append(s.exceptions, e)
		} else if !e.stored.Cancelled() {
			a.singles = append(a.singles, e)
		}
	}
	a.problems = append(a.problems, a.oddZones()...)
	slices.SortFunc(a.series, func(x, y *series) int { return strings.Compare(x.stored.ID, y.stored.ID) })
	return a
}

func (a *Agenda) problem(id string, err error) Problem {
	return Problem{Calendar: a.calendar.ID, Event: id, Text: strings.ReplaceAll(err.Error(), "\n", "; ")}
}
