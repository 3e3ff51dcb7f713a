package agenda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxOccurrences bounds the occurrences of one series within a span.
const MaxOccurrences = 100_000

// An Occurrence is one time at which an event takes place.
type Occurrence struct {
	Calendar string `json:"calendar"`
	ID       string `json:"id"` // as Google names it
	ICalUID  string `json:"ical_uid,omitempty"`
	Series   string `json:"series,omitempty"` // the id of the event that repeats
	Summary  string `json:"summary,omitempty"`
	Start    When   `json:"start"`
	End      When   `json:"end"`               // exclusive
	Original When   `json:"original,omitzero"` // when it would have begun, where it differs from its series
}

// A Span is the time from From to, and without, To.
type Span struct{ From, To time.Time }

// holds reports whether something takes place within the span; what has no length
// does when it begins there.
func (s Span) holds(from, to time.Time) bool {
	return from.Before(s.To) && (to.After(s.From) || from.Equal(s.From))
}

// holds reports whether what has such a start and end takes place within a span. A
// day lasts that day at least.
func (a *Agenda) holds(span Span, start, end When) bool {
	if start.Date != "" && end.Date <= start.Date {
		end = start.addDays(1)
	}
	return span.holds(start.in(a.zone), end.in(a.zone))
}

// Occurrences lists what takes place within a span, by its beginning. Days are
// those of the calendar's zone. What a series' rule does not let be understood is
// among the problems; its other occurrences are there.
func (a *Agenda) Occurrences(span Span) ([]Occurrence, []Problem) {
	problems := slices.Clone(a.problems)
	var all []Occurrence
	add := func(o Occurrence) {
		if a.holds(span, o.Start, o.End) {
			all = append(all, o)
		}
	}
	for _, e := range a.singles {
		add(a.occurrence(e))
	}
	for _, s := range a.series {
		if err := a.expand(s, span, add); err != nil {
			problems = append(problems, a.problem(s.stored.ID, err))
		}
	}
	slices.SortStableFunc(all, func(x, y Occurrence) int {
		return cmp.Or(x.Start.in(a.zone).Compare(y.Start.in(a.zone)), strings.Compare(x.ID, y.ID))
	})
	return all, problems
}

// forever is how far an open span reaches from its beginning, or from that of a
// series.
const forever = 200 * 365 * 24 * time.Hour

// Within lists the ids of the stored events that take place within a span, a
// series if any of its occurrences does. Of a cancelled occurrence it is the
// original time that counts. A bound that is zero is none. The problems name the
// events of which that is not known.
func (a *Agenda) Within(span Span) (map[string]bool, []Problem) {
	if span.To.IsZero() {
		span.To = endOfTime
	}
	ids, problems := map[string]bool{}, slices.Clone(a.problems)
	one := func(e *event) {
		start, end := e.start, e.end
		if e.stored.Cancelled() {
			start, end = e.original, e.original
		}
		ids[e.stored.ID] = a.holds(span, start, end)
	}
	for _, e := range a.singles {
		one(e)
	}
	for _, s := range a.series {
		found, err := a.takesPlace(s, span)
		if ids[s.stored.ID] = found; err != nil && !found {
			problems = append(problems, a.problem(s.stored.ID, err))
		}
		for _, e := range s.exceptions {
			one(e)
		}
	}
	return ids, problems
}

// endOfTime is after all that takes place.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// takesPlace looks for an occurrence of a series, in ever longer spans.
func (a *Agenda) takesPlace(s *series, span Span) (found bool, err error) {
	if first := s.start.in(a.zone); span.From.Before(first) {
		span.From = first
	}
	for length := 30 * 24 * time.Hour; ; length *= 12 {
		part := Span{span.From, span.From.Add(min(length, forever))}
		if part.To.After(span.To) {
			part.To = span.To
		}
		err = a.expand(s, part, func(o Occurrence) { found = found || a.holds(part, o.Start, o.End) })
		if found || !part.To.Before(span.To) || length > forever {
			return found, err
		}
	}
}

// occurrence is the one time at which an event that does not repeat takes place.
func (a *Agenda) occurrence(e *event) Occurrence {
	return Occurrence{
		Calendar: a.calendar.ID, ID: e.stored.ID, ICalUID: e.ICalUID, Series: e.stored.Series, Summary: e.Summary,
		Start: e.start, End: e.end, Original: e.original,
	}
}

// expand hands over the occurrences of a series that may be within a span.
func (a *Agenda) expand(s *series, span Span, add func(Occurrence)) error {
	excepted := map[string]bool{}
	for _, e := range s.exceptions {
		excepted[s.key(e.original)] = true
		if !e.stored.Cancelled() {
			add(a.occurrence(e))
		}
	}
	lasts := s.end.in(a.zone).Sub(s.start.in(a.zone))
	const zones = 48 * time.Hour // a wall clock is never further from UTC
	starts, err := s.starts(onWall(span.From.In(s.zone)).Add(-lasts-zones), onWall(span.To.In(s.zone)).Add(zones))
	for _, at := range starts {
		start := s.at(at)
		if excepted[s.key(start)] || excepted[onWall(at).Format(dayLayout)] && !s.allDay() {
			continue
		}
		add(Occurrence{
			Calendar: a.calendar.ID, ID: s.stored.ID + "_" + start.suffix(), ICalUID: s.ICalUID, Series: s.stored.ID, Summary: s.Summary,
			Start: start, End: s.endOf(at),
		})
	}
	return err
}

// at writes a moment as the series writes its start.
func (s *series) at(t time.Time) When {
	if s.allDay() {
		return When{Date: t.Format(dayLayout)}
	}
	return When{Time: t.UTC(), Zone: s.start.Zone}
}

// endOf is the end of the occurrence that begins at t: the same number of days
// later, or exactly as much time.
func (s *series) endOf(t time.Time) When {
	length := s.end.in(time.UTC).Sub(s.start.in(time.UTC))
	if s.allDay() {
		return When{Date: t.Add(length).Format(dayLayout)}
	}
	return When{Time: t.Add(length).UTC(), Zone: s.end.Zone}
}

// key tells the occurrences of a series apart, by their original starts.
func (s *series) key(w When) string {
	if s.allDay() && w.Date == "" {
		return w.Local().Format(dayLayout)
	}
	return w.key()
}

func (w When) key() string {
	if w.Date != "" {
		return w.Date
	}
	return w.Time.UTC().Format(time.RFC3339)
}

// suffix is what the id of an occurrence adds to that of its series.
func (w When) suffix() string {
	if w.Date != "" {
		return strings.ReplaceAll(w.Date, "-", "")
	}
	return w.Time.UTC().Format("20060102T150405Z")
}

// tooManyError says that a series takes place too often within a span.
func tooManyError(n int) error {
	return fmt.Errorf("more than %d occurrences; ask for a shorter time", n)
}
