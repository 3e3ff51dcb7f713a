package agenda

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxOccurrences bounds the occurrences of one series within a span.
	MaxOccurrences = 100_000
	// MaxListed bounds the occurrences of all events together.
	MaxListed = 250_000
)

// An Occurrence is one time at which an event takes place.
type Occurrence struct {
	Calendar string `json:"calendar"`
	ID       string `json:"id"` // as Google names it
	ICalUID  string `json:"ical_uid,omitempty"`
	Series   string `json:"series,omitempty"` // the id of the event that repeats
	Summary  string `json:"summary,omitempty"`
	Start    When   `json:"start"`
	End      When   `json:"end"`               // exclusive
	Original When   `json:"original,omitzero"` // when it would have begun, if it differs from its series
}

// A Span is the time from From, inclusive, to To, exclusive.
type Span struct{ From, To time.Time }

// holds reports whether the time from start to end overlaps the span. A time without
// length overlaps it if it begins within.
func (s Span) holds(from, to time.Time) bool {
	return from.Before(s.To) && (to.After(s.From) || from.Equal(s.From))
}

// holds reports whether an occurrence with such a start and end overlaps a span. A
// day lasts at least that day.
func (a *Agenda) holds(span Span, start, end When) bool {
	if start.Date != "" && end.Date <= start.Date {
		end = start.addDays(1)
	}
	return span.holds(start.in(a.zone), end.in(a.zone))
}

// Occurrences lists the occurrences within a span, ordered by their start. Days are
// days of the calendar's zone. The problems include what could not be read of a
// series' rule; the other occurrences of the series are listed.
func (a *Agenda) Occurrences(span Span) ([]Occurrence, []Problem) {
	all, problems, _ := a.List(context.Background(), span)
	return all, problems
}

// List is [Agenda.Occurrences] with a context. The error is that of ctx.
func (a *Agenda) List(ctx context.Context, span Span) (all []Occurrence, problems []Problem, err error) {
	cut := false
	problems, err = a.Walk(ctx, span, time.Time{}, func(o Occurrence) bool {
		if cut = len(all) == MaxListed; !cut {
			all = append(all, o)
		}
		return !cut
	})
	if cut {
		problems = append(problems, a.problem("", tooManyError(MaxListed)))
	}
	return all, problems, err
}

// Walk calls use with the occurrences within a span, in the order of
// [Agenda.Occurrences], from those that begin at a moment on, until use returns false.
// It holds one occurrence of each event at a time. The error is that of ctx.
func (a *Agenda) Walk(ctx context.Context, span Span, from time.Time, use func(Occurrence) bool) ([]Problem, error) {
	problems := slices.Clone(a.problems)
	if span.To.After(endOfTime) {
		span.To = endOfTime
	}
	var once []Occurrence
	one := func(e *event) {
		if o := a.occurrence(e); a.holds(span, o.Start, o.End) && !o.Start.in(a.zone).Before(from) {
			once = append(once, o)
		}
	}
	for _, e := range a.singles {
		one(e)
	}
	upcoming := &heads{zone: a.zone}
	var walks []*seriesWalk
	for _, s := range a.series {
		for _, e := range s.exceptions {
			if !e.stored.Cancelled() {
				one(e)
			}
		}
		w := a.walk(ctx, s, span, from)
		walks = append(walks, w)
		upcoming.add(w.next)
	}
	slices.SortFunc(once, upcoming.compare)
	upcoming.add(func() (o Occurrence, ok bool) {
		if len(once) == 0 {
			return o, false
		}
		o, once = once[0], once[1:]
		return o, true
	})
	heap.Init(upcoming)
	for upcoming.Len() > 0 && ctx.Err() == nil && use(upcoming.all[0].at) {
		upcoming.advance()
	}
	for _, w := range walks {
		if err := w.err(); err != nil {
			problems = append(problems, a.problem(w.series.stored.ID, err))
		}
	}
	return problems, ctx.Err()
}

// A seriesWalk iterates over the occurrences of a series within a span, without its
// exceptions.
type seriesWalk struct {
	*walk
	agenda   *Agenda
	series   *series
	span     Span
	from     time.Time
	excepted map[string]bool
	starts   times
	found    int
}

func (a *Agenda) walk(ctx context.Context, s *series, span Span, from time.Time) *seriesWalk {
	w := &seriesWalk{walk: newWalk(ctx), agenda: a, series: s, span: span, from: from, excepted: map[string]bool{}}
	for _, e := range s.exceptions {
		w.excepted[s.key(e.original)] = true
	}
	lasts := s.end.in(a.zone).Sub(s.start.in(a.zone))
	first := span.From.Add(-max(0, lasts))
	if from.After(first) {
		first = from
	}
	zone := s.zone
	if s.allDay() {
		zone = a.zone
	}
	w.starts = s.starts(w.walk, onWall(first.In(zone)).Add(-slack(zone, first)-s.dayLength()), onWall(span.To.In(zone)).Add(longestSlack))
	return w
}

// longestSlack is longer than any change of clocks.
const longestSlack = 25 * time.Hour

// slack returns how much earlier a clock may show the same time as at a moment or
// later: zero unless it is set back around then.
func slack(zone *time.Location, at time.Time) time.Duration {
	_, before := at.Add(-longestSlack).In(zone).Zone()
	_, after := at.Add(longestSlack).In(zone).Zone()
	if before == after {
		return 0
	}
	return longestSlack
}

// dayLength returns the least length of an occurrence of a series.
func (s *series) dayLength() time.Duration {
	if s.allDay() {
		return 24 * time.Hour
	}
	return 0
}

// next returns the next occurrence within the span.
func (w *seriesWalk) next() (o Occurrence, ok bool) {
	s := w.series
	for {
		at, ok := w.starts()
		if !ok {
			return o, false
		}
		start := s.at(at)
		begins := start.in(w.agenda.zone)
		if !begins.Before(w.span.To) {
			return o, false
		}
		end := s.endOf(at)
		if begins.Before(w.from) || !w.agenda.holds(w.span, start, end) ||
			w.excepted[s.key(start)] || w.excepted[onWall(at).Format(dayLayout)] && !s.allDay() {
			continue
		}
		if w.found == MaxOccurrences {
			w.note(tooManyError(MaxOccurrences))
			return o, false
		}
		w.found++
		return Occurrence{
			Calendar: w.agenda.calendar.ID, ID: s.stored.ID + "_" + start.suffix(), ICalUID: s.ICalUID, Series: s.stored.ID, Summary: s.Summary,
			Start: start, End: end,
		}, true
	}
}

// heads is a heap of iterators, ordered by the next occurrence of each.
type heads struct {
	zone *time.Location // in which days begin
	all  []head
}

type head struct {
	next func() (Occurrence, bool)
	at   Occurrence
}

// add adds an iterator, unless it is at its end.
func (h *heads) add(next func() (Occurrence, bool)) {
	if at, ok := next(); ok {
		h.all = append(h.all, head{next, at})
	}
}

// advance moves the first iterator to its next occurrence.
func (h *heads) advance() {
	if at, ok := h.all[0].next(); ok {
		h.all[0].at = at
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
}

// compare orders occurrences by start, and then by id.
func (h *heads) compare(x, y Occurrence) int {
	return cmp.Or(x.Start.in(h.zone).Compare(y.Start.in(h.zone)), strings.Compare(x.ID, y.ID))
}

func (h *heads) Len() int           { return len(h.all) }
func (h *heads) Less(i, j int) bool { return h.compare(h.all[i].at, h.all[j].at) < 0 }
func (h *heads) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *heads) Push(x any)         { h.all = append(h.all, x.(head)) }

// Pop implements [heap.Interface].
func (h *heads) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}

// Within lists the ids of the stored events that take place within a span; a series
// does if any of its occurrences does. A cancelled occurrence counts at its original
// time. A zero bound does not limit the span. The problems name the events for which
// this is unknown.
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
		for _, e := range s.rows {
			one(e)
		}
	}
	return ids, problems
}

// endOfTime is after all that takes place.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// takesPlace reports whether a series has an occurrence within a span.
func (a *Agenda) takesPlace(s *series, span Span) (bool, error) {
	for _, e := range s.exceptions {
		if !e.stored.Cancelled() && a.holds(span, e.start, e.end) {
			return true, nil
		}
	}
	w := a.walk(context.Background(), s, span, time.Time{})
	_, found := w.next()
	return found, w.err()
}

// occurrence returns the one occurrence of an event that does not repeat, or of an
// exception.
func (a *Agenda) occurrence(e *event) Occurrence {
	return Occurrence{
		Calendar: a.calendar.ID, ID: e.stored.ID, ICalUID: e.ICalUID, Series: e.stored.Series, Summary: e.Summary,
		Start: e.start, End: e.end, Original: e.original,
	}
}

// at writes a moment as the series writes its start.
func (s *series) at(t time.Time) When {
	if s.allDay() {
		return When{Date: dayOf(t)}
	}
	return When{Time: inWorld(t), Zone: s.start.Zone}
}

// endOf returns the end of the occurrence that begins at t: the same number of days
// later, or exactly as much time.
func (s *series) endOf(t time.Time) When {
	length := s.end.in(time.UTC).Sub(s.start.in(time.UTC))
	if s.allDay() {
		return When{Date: dayOf(t.Add(length))}
	}
	return When{Time: inWorld(t.Add(length)), Zone: s.end.Zone}
}

// key identifies an occurrence of a series by its original start.
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

// suffix returns what the id of an occurrence adds to the id of its series.
func (w When) suffix() string {
	if w.Date != "" {
		return strings.ReplaceAll(w.Date, "-", "")
	}
	return w.Time.UTC().Format("20060102T150405Z")
}

// A tooManyError reports that a series has too many occurrences within a span.
func tooManyError(n int) error {
	return fmt.Errorf("more than %d occurrences; ask for a shorter time", n)
}
