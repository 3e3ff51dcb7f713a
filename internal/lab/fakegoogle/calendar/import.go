package calendar

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-ical"

	"headroom/internal/lab/fakegoogle/wire"
)

// importICS fills a calendar with what a file holds and returns what could not be
// taken as it stands.
func (c *Calendar) importICS(text []byte) (problems []string) {
	f := readICS(text)
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	i := &importer{calendar: c, file: f, zones: newZoneNames(f), masters: map[string]Event{}}
	i.settings()
	var exceptions []*ical.Component
	others := map[string]int{}
	for _, calendar := range f.calendars {
		for _, child := range calendar.Children {
			switch {
			case child.Name == ical.CompTimezone:
			case child.Name != ical.CompEvent:
				others[child.Name]++
			case child.Props.Get(ical.PropRecurrenceID) != nil:
				exceptions = append(exceptions, child)
			default:
				i.try(child, i.event)
			}
		}
	}
	for _, child := range exceptions { // after all masters, wherever they stand
		i.try(child, i.exception)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		f.report("%d %s left out: a calendar of Google's has events only", others[name], name)
	}
	return f.problems
}

// An importer turns components into events of a calendar.
type importer struct {
	calendar *Calendar
	file     *icsFile
	zones    *zoneNames
	masters  map[string]Event // by UID; the first, or the first that recurs
}

// settings reads the name and the zone of the calendar.
func (i *importer) settings() {
	for _, calendar := range i.file.calendars {
		if p := calendar.Props.Get("X-WR-CALNAME"); p != nil && p.Value != "" {
			i.calendar.summary = p.Value
		}
		if p := calendar.Props.Get("X-WR-TIMEZONE"); p != nil && p.Value != "" {
			i.zones.usual = i.zones.ianaName(p.Value)
		}
	}
	if zone, err := time.LoadLocation(i.zones.usual); err == nil {
		i.calendar.zone = zone
	}
}

// try reads one component, and reports what keeps it from being an event.
func (i *importer) try(component *ical.Component, read func(*ical.Component) error) {
	defer func() {
		if p := recover(); p != nil {
			i.file.report("event %q left out: %v", uidOf(component), p)
		}
	}()
	if err := read(component); err != nil {
		i.file.report("event %q left out: %v", uidOf(component), err)
	}
}

func uidOf(component *ical.Component) string {
	if p := component.Props.Get(ical.PropUID); p != nil {
		return p.Value
	}
	return ""
}

// event adds an event or the master of a series.
func (i *importer) event(component *ical.Component) error {
	e, err := i.read(component)
	if err != nil {
		return err
	}
	c, uid := i.calendar, uidOf(component)
	for n := 1; ; n++ { // several may have the same UID
		e.ID = madeID(c.account.email, c.id, cmp.Or(uid, fmt.Sprint(c.made)), strconv.Itoa(n))
		if _, taken := c.events[e.ID]; !taken {
			break
		}
	}
	e.Recurrence = i.recurrence(component)
	if e.master() {
		if _, _, err := c.ruleSet(&e); err != nil {
			i.file.report("event %q: its recurrence cannot be read, so that it has one occurrence: %v", uid, err)
		}
	}
	if err := i.put(e); err != nil {
		return err
	}
	if first, ok := i.masters[uid]; !ok || !first.master() && e.master() {
		i.masters[uid] = e
	}
	return nil
}

func (i *importer) put(e Event) error {
	if err := i.calendar.normalize(&e); err != nil {
		return err
	}
	i.calendar.put(e)
	return nil
}

// exception adds an occurrence that differs from its series. The
// series need not be in the file.
func (i *importer) exception(component *ical.Component) error {
	e, err := i.read(component)
	if err != nil {
		return err
	}
	c, uid := i.calendar, uidOf(component)
	original := component.Props.Get(ical.PropRecurrenceID)
	if original.Params.Get("RANGE") != "" {
		i.file.report("event %q: an exception for this and all that follow is taken for this one only", uid)
	}
	if e.OriginalStartTime, err = i.time(original); err != nil {
		return fmt.Errorf("original start: %w", err)
	}
	if master, ok := i.masters[uid]; ok {
		e.RecurringEventID = master.ID
	} else {
		e.RecurringEventID = madeID(c.account.email, c.id, uid, "1")
	}
	e.ID = e.RecurringEventID + "_" + occurrenceSuffix(e.OriginalStartTime, c.zone)
	if old, ok := c.events[e.ID]; ok {
		i.file.report("event %q: two exceptions for %s, of which the one with the higher sequence is kept", uid, occurrenceSuffix(e.OriginalStartTime, c.zone))
		if old.Sequence > e.Sequence {
			return nil
		}
	}
	return i.put(e)
}

// read takes over the properties of an event.
func (i *importer) read(component *ical.Component) (Event, error) {
	p := component.Props
	text := func(name string) string {
		s, err := p.Text(name)
		if prop := p.Get(name); err != nil && prop != nil {
			return prop.Value
		}
		return s
	}
	e := Event{
		Summary: text(ical.PropSummary), Description: text(ical.PropDescription), Location: text(ical.PropLocation),
		ICalUID: uidOf(component), Status: EventConfirmed,
	}
	switch strings.ToUpper(text(ical.PropStatus)) {
	case "CANCELLED":
		e.Status = EventCancelled
	case "TENTATIVE":
		e.Status = EventTentative
	}
	if strings.EqualFold(text(ical.PropTransparency), "TRANSPARENT") {
		e.Transparency = "transparent"
	}
	if class := strings.ToLower(text(ical.PropClass)); class == "private" || class == "confidential" || class == "public" {
		e.Visibility = class
	}
	if sequence := p.Get(ical.PropSequence); sequence != nil {
		e.Sequence, _ = strconv.Atoi(strings.TrimSpace(sequence.Value))
	}
	if created := p.Get(ical.PropCreated); created != nil {
		if at, err := time.Parse("20060102T150405Z", created.Value); err == nil {
			e.Created = at.Format(stampLayout)
		}
	}
	i.guests(p, &e)
	return e, i.times(component, &e)
}

// times reads start and end; an event may have a duration instead of an end, or
// neither.
func (i *importer) times(component *ical.Component, e *Event) (err error) {
	start := component.Props.Get(ical.PropDateTimeStart)
	if start == nil {
		return fmt.Errorf("it has no start")
	}
	if e.Start, err = i.time(start); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	from, err := e.Start.moment(i.calendar.zone)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	to := from
	if e.Start.Date != "" {
		to = from.AddDate(0, 0, 1)
	}
	if p := component.Props.Get(ical.PropDuration); p != nil {
		d, err := p.Duration()
		if err != nil || d < 0 {
			i.file.report("event %q: its duration %q cannot be used: it has none", e.ICalUID, p.Value)
			d = 0
		}
		to = from.Add(d)
		if e.Start.Date != "" {
			to = from.AddDate(0, 0, max(1, int(d/(24*time.Hour))))
		}
	}
	e.End = e.Start.like(to, i.calendar.zone)
	unspecified := component.Props.Get(ical.PropDuration) == nil && e.Start.Date == ""
	end := component.Props.Get(ical.PropDateTimeEnd)
	if end == nil {
		e.EndTimeUnspecified = unspecified
		return nil
	}
	given, err := i.time(end)
	if err != nil {
		i.file.report("event %q: its end cannot be read, so that it has none: %v", e.ICalUID, err)
		e.EndTimeUnspecified = unspecified
		return nil
	}
	e.End = given
	i.fixEnd(e, from)
	return nil
}

// fixEnd holds an end to what Google takes: of the kind of the start, and not
// before it.
func (i *importer) fixEnd(e *Event, from time.Time) {
	zone := i.calendar.zone
	to, err := e.End.moment(zone)
	allDay := e.Start.Date != ""
	switch {
	case err == nil && allDay != (e.End.Date != ""):
		i.file.report("event %q: one of start and end is a day: the end is taken for the same kind as the start", e.ICalUID)
		e.End = e.Start.like(to, zone)
	case err == nil && to.Before(from):
		i.file.report("event %q ends before it begins: it ends when it begins", e.ICalUID)
		e.End = e.Start.like(from, zone)
	}
	if allDay && e.End.Date <= e.Start.Date { // exclusive: a day lasts until the next
		e.End = e.Start.like(from.AddDate(0, 0, 1), zone)
	}
}

// time reads a date, or a moment in UTC, in a zone or in the calendar's.
func (i *importer) time(p *ical.Prop) (*EventTime, error) {
	value := strings.TrimSpace(p.Value)
	if day, err := time.Parse("20060102", value); err == nil {
		return &EventTime{Date: day.Format(dayLayout)}, nil
	}
	if at, err := time.Parse("20060102T150405Z", value); err == nil {
		return &EventTime{DateTime: at.Format(time.RFC3339), TimeZone: "UTC"}, nil
	}
	name := i.zones.usual
	if id := zoneParam(p); id != "" {
		name = i.zones.ianaName(id)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	at, err := time.ParseInLocation("20060102T150405", value, zone)
	if err != nil {
		return nil, fmt.Errorf("%q is no date and no time", value)
	}
	return &EventTime{DateTime: rfc3339(at), TimeZone: name}, nil
}

// recurrence writes the lines of a series as Google does, with IANA's zones.
func (i *importer) recurrence(component *ical.Component) []string {
	var lines []string
	for _, name := range []string{ical.PropRecurrenceRule, "EXRULE", ical.PropExceptionDates, ical.PropRecurrenceDates} {
		for _, p := range component.Props.Values(name) {
			line := name
			if value := p.Params.Get(ical.ParamValue); value != "" && !strings.EqualFold(value, "DATE-TIME") {
				line += ";VALUE=" + strings.ToUpper(value)
			}
			if id := zoneParam(&p); id != "" {
				line += ";TZID=" + i.zones.ianaName(id)
			}
			lines = append(lines, line+":"+strings.ReplaceAll(p.Value, " ", ""))
		}
	}
	return lines
}

// guests reads the organizer and those who were invited.
func (i *importer) guests(p ical.Props, e *Event) {
	address := func(p *ical.Prop) string {
		if len(p.Value) >= 7 && strings.EqualFold(p.Value[:7], "mailto:") {
			return p.Value[7:]
		}
		return p.Value
	}
	self := func(email string) bool { return wire.AddressKey(email) == wire.AddressKey(i.calendar.account.email) }
	if o := p.Get(ical.PropOrganizer); o != nil {
		e.Organizer = &EventPerson{Email: address(o), DisplayName: o.Params.Get(ical.ParamCommonName), Self: self(address(o))}
	}
	for _, a := range p.Values(ical.PropAttendee) {
		email := address(&a)
		e.Attendees = append(e.Attendees, EventAttendee{
			Email: email, DisplayName: a.Params.Get(ical.ParamCommonName), Self: self(email),
			Organizer: e.Organizer != nil && wire.AddressKey(e.Organizer.Email) == wire.AddressKey(email),
			Optional:  strings.EqualFold(a.Params.Get(ical.ParamRole), "OPT-PARTICIPANT"),
			Resource:  strings.EqualFold(a.Params.Get(ical.ParamCalendarUserType), "RESOURCE"),
			ResponseStatus: cmp.Or(map[string]string{
				"ACCEPTED": "accepted", "DECLINED": "declined", "TENTATIVE": "tentative",
			}[strings.ToUpper(a.Params.Get(ical.ParamParticipationStatus))], "needsAction"),
		})
	}
}
