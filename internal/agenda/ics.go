package agenda

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"

	"headroom/jobs"
)

// WriteICS writes the calendar as iCalendar: a VTIMEZONE for every zone that is
// used, a VEVENT for every event, series and occurrence that differs from its
// series. A cancelled occurrence is an EXDATE of its series, which every reader
// reads. It returns the number of VEVENTs. [Agenda.Problems] then includes what the
// file lacks.
//
// The same events give the same bytes.
func (a *Agenda) WriteICS(w io.Writer) (int, error) {
	c := ical.NewCalendar()
	c.Props.SetText(ical.PropVersion, "2.0")
	c.Props.SetText(ical.PropProductID, "-//Headroom//Headroom//EN")
	c.Props.SetText(ical.PropCalendarScale, "GREGORIAN")
	c.Props.SetText("X-WR-CALNAME", clean(cmp.Or(a.calendar.Summary, a.calendar.ID)))
	if _, known := iana(a.zone.String()); known && !a.repeatsInUTC() {
		c.Props.SetText("X-WR-TIMEZONE", a.zone.String())
	}
	f := &icsFile{zones: map[string]*zoneUse{}}
	f.use(a.zone.String(), time.Time{})
	for _, e := range a.singles {
		single := f.event(e, e.uid())
		if e.stored.Series != "" && !e.original.IsZero() {
			f.time(single, ical.PropRecurrenceID, e.original)
		}
	}
	for _, s := range a.series {
		if err := f.series(s); err != nil {
			a.problems = append(a.problems, a.problem(s.stored.ID, err))
		}
	}
	c.Children = append(f.timezones(), f.events...)
	return len(f.events), ical.NewEncoder(&folder{w}).Encode(c)
}

// repeatsInUTC reports whether a series repeats by the clocks of UTC. Readers replace
// UTC by X-WR-TIMEZONE, and such a series would then move with that zone's clocks.
func (a *Agenda) repeatsInUTC() bool {
	return a.zone != time.UTC && slices.ContainsFunc(a.series, func(s *series) bool {
		name, _ := s.start.Local().Zone()
		return !s.allDay() && name == "UTC"
	})
}

// uid returns an event's UID. Occurrences have the UID of their series.
func (e *event) uid() string {
	return cmp.Or(clean(e.ICalUID), cmp.Or(e.stored.Series, e.stored.ID)+"@google.com")
}

// An icsFile collects the parts of a file.
type icsFile struct {
	events []*ical.Component
	zones  map[string]*zoneUse
}

// zoneUse is the span in which a zone is used.
type zoneUse struct{ first, last time.Time }

// use records that a moment is written in a zone. It ignores the zero moment.
func (f *icsFile) use(zone string, at time.Time) {
	u := f.zones[zone]
	if u == nil {
		u = &zoneUse{}
		f.zones[zone] = u
	}
	if at.IsZero() {
		return
	}
	if u.first.IsZero() || at.Before(u.first) {
		u.first = at
	}
	if at.After(u.last) {
		u.last = at
	}
}

// unused is the year for which a zone is described if no time is written in it.
var unused = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (f *icsFile) timezones() (all []*ical.Component) {
	var names []string
	for name := range f.zones {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		u := f.zones[name]
		if u.first.IsZero() {
			u.first, u.last = unused, unused
		}
		if zone, ok := location(name); ok {
			all = append(all, timezone(zone, u.first, u.last))
		}
	}
	return all
}

// time writes a time of an event.
func (f *icsFile) time(c *ical.Component, name string, w When) {
	prop := f.when(name, w)
	c.Props.Set(prop)
}

func (f *icsFile) when(name string, w When) *ical.Prop {
	prop := ical.NewProp(name)
	if w.Date != "" {
		prop.SetValueType(ical.ValueDate)
		prop.Value = strings.ReplaceAll(w.Date, "-", "")
		return prop
	}
	zone := w.location()
	if zone == time.UTC {
		prop.Value = w.Time.UTC().Format(utcLayout)
		return prop
	}
	f.use(w.Zone, w.Time)
	prop.Params.Set(ical.ParamTimezoneID, w.Zone)
	prop.Value = w.Time.In(zone).Format(localLayout)
	return prop
}

const utcLayout = "20060102T150405Z"

// series writes a series and its exceptions. It leaves out a series without
// occurrences, because some readers refuse a whole file that has one.
func (f *icsFile) series(s *series) error {
	r := s.repetition()
	if !r.empty {
		c := f.event(s.event, s.uid())
		if r.rule != "" {
			c.Props.Add(&ical.Prop{Name: ical.PropRecurrenceRule, Params: ical.Params{}, Value: r.rule})
		}
		for _, at := range r.with {
			c.Props.Add(f.when(ical.PropRecurrenceDates, at))
		}
		for _, at := range r.without {
			c.Props.Add(f.when(ical.PropExceptionDates, at))
		}
	}
	for _, e := range s.exceptions {
		if e.stored.Cancelled() {
			continue
		}
		exception := f.event(e, s.uid())
		if !e.original.IsZero() {
			f.time(exception, ical.PropRecurrenceID, s.like(e.original))
		}
	}
	return r.err
}

// like returns the original start of an exception in the form of the series' own
// start, as RFC 5545 requires.
func (s *series) like(w When) When {
	switch {
	case s.allDay():
		return When{Date: s.key(w)}
	case w.Date == "":
		return When{Time: w.Time, Zone: s.start.Zone}
	}
	at, err := s.date(strings.ReplaceAll(w.Date, "-", ""), "")
	if err != nil {
		return w
	}
	return s.at(at)
}

// clean removes characters that a line must not have.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// A folder breaks lines of more than 75 bytes (RFC 5545). Each Write gets one line.
type folder struct{ w io.Writer }

func (f *folder) Write(line []byte) (int, error) {
	const most = 75
	var out []byte
	rest := line
	for width := most; len(rest)-len("\r\n") > width; width = most - 1 {
		n := width
		for n > 1 && !utf8.RuneStart(rest[n]) {
			n--
		}
		out = append(append(out, rest[:n]...), "\r\n "...)
		rest = rest[n:]
	}
	if _, err := f.w.Write(append(out, rest...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// stamp returns when the event was last changed, or created.
func stamp(stored jobs.Event, created string) time.Time {
	if !stored.Updated.IsZero() {
		return inWorld(stored.Updated)
	}
	if at, err := time.Parse(time.RFC3339, created); err == nil {
		return inWorld(at)
	}
	return time.Unix(0, 0).UTC()
}
