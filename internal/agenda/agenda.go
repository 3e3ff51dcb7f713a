package agenda

import (
	"cmp"
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
	zoneless bool           // the calendar's own zone is unknown
	singles  []*event       // events that do not repeat, and exceptions whose series is missing
	series   []*series      // by id
	problems []Problem
	odd      []oddZone
}

// A series is an event that repeats, with its exceptions: the occurrences that differ.
type series struct {
	*event
	rows       []*event // all stored rows
	exceptions []*event // one for each original start
}

// settled chooses one of several rows for one original start: the newest that takes
// place, or the newest if none does.
func (s *series) settled() (all []*event) {
	at := map[string]int{}
	for _, e := range s.rows {
		key := s.key(e.original)
		i, known := at[key]
		switch {
		case !known || e.original.IsZero():
			at[key] = len(all)
			all = append(all, e)
		case e.outranks(all[i]):
			all[i] = e
		}
	}
	return all
}

// A Problem is a part of an event that could not be read. The rest of the event is used.
type Problem struct {
	Calendar string `json:"calendar"`
	Event    string `json:"event"`
	Text     string `json:"text"`
	Notice   bool   `json:"notice,omitempty"` // nothing is missing: it reports how an unusual value is read
}

func (p Problem) String() string {
	if p.Event == "" {
		return fmt.Sprintf("calendar %s: %s", p.Calendar, p.Text)
	}
	return fmt.Sprintf("event %s of calendar %s: %s", p.Event, p.Calendar, p.Text)
}

// New reads the events of a calendar and ignores tombstones. Days begin in the
// calendar's zone, or in UTC if its zone is unknown.
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
	orphans := map[string]*series{}
	for _, e := range exceptions {
		s := masters[e.stored.Series]
		if s == nil {
			if s = orphans[e.stored.Series]; s == nil {
				s = &series{event: e}
				orphans[e.stored.Series] = s
			}
		}
		s.rows = append(s.rows, e)
	}
	for _, s := range masters {
		s.exceptions = s.settled()
		for _, e := range s.exceptions {
			e.ICalUID = cmp.Or(e.ICalUID, s.ICalUID)
		}
	}
	for _, s := range orphans {
		a.singles = append(a.singles, slices.DeleteFunc(s.settled(), func(e *event) bool { return e.stored.Cancelled() })...)
	}
	slices.SortFunc(a.singles, func(x, y *event) int { return strings.Compare(x.stored.ID, y.stored.ID) })
	a.problems = append(a.problems, a.oddZones()...)
	slices.SortFunc(a.series, func(x, y *series) int { return strings.Compare(x.stored.ID, y.stored.ID) })
	return a
}

// Problems returns what could not be read of events, and what a written file lacks.
func (a *Agenda) Problems() []Problem { return a.problems }

func (a *Agenda) problem(id string, err error) Problem {
	return Problem{Calendar: a.calendar.ID, Event: id, Text: strings.ReplaceAll(err.Error(), "\n", "; ")}
}
