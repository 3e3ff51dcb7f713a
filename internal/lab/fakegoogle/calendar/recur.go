package calendar

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// mostOccurrences bounds the occurrences that a series is expanded to, counted
// from its beginning: a series without end has no last one. Google's bound is
// unverified.
const mostOccurrences = 5_000

// starts yields when the occurrences of a series begin, moved and cancelled ones
// at their original times, oldest first. A rule that cannot be read yields the
// first occurrence alone.
func (c *Calendar) starts(master *Event) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		first, set, err := c.ruleSet(master)
		if err != nil {
			if !first.IsZero() {
				yield(first)
			}
			return
		}
		next := set.Iterator()
		for range mostOccurrences {
			at, ok := next()
			if !ok || !yield(at) {
				return
			}
		}
	}
}

// ruleSet reads the recurrence of a series. Days are counted in UTC, where all
// are of the same length.
func (c *Calendar) ruleSet(master *Event) (first time.Time, set *rrule.Set, err error) {
	zone := time.UTC
	if master.Start.Date == "" {
		if zone, err = master.Start.location(c.zone); err != nil {
			return time.Time{}, nil, err
		}
	}
	if first, err = master.Start.moment(zone); err != nil {
		return time.Time{}, nil, err
	}
	first = first.In(zone)
	set = &rrule.Set{}
	set.DTStart(first)
	hasRule := false
	for _, line := range master.Recurrence {
		name, value, _ := strings.Cut(line, ":")
		name, params, _ := strings.Cut(name, ";")
		switch strings.ToUpper(name) {
		case "RRULE":
			if hasRule {
				return first, nil, errors.New("it has two rules")
			}
			hasRule = true
			err = addRule(set, value, first)
		case "EXDATE":
			err = eachDate(params, value, zone, set.ExDate)
		case "RDATE":
			err = eachDate(params, value, zone, set.RDate)
		case "EXRULE": // not in use since RFC 5545
		default:
			err = fmt.Errorf("%q is no line of a recurrence", line)
		}
		if err != nil {
			return first, nil, err
		}
	}
	// A series begins with its start, also where its rule leaves that out; COUNT does
	// not count it then.
	set.RDate(first)
	return first, set, nil
}

// addRule reads a rule. Its end may be a day though its occurrences are moments.
func addRule(set *rrule.Set, value string, first time.Time) error {
	option, err := rrule.StrToROptionInLocation(strings.ToUpper(strings.TrimSpace(value)), first.Location())
	if err != nil {
		return err
	}
	if until := option.Until; !until.IsZero() && !strings.Contains(afterUntil(value), "T") {
		option.Until = time.Date(until.Year(), until.Month(), until.Day(), 23, 59, 59, 0, first.Location())
	}
	option.Dtstart = first
	rule, err := rrule.NewRRule(*option)
	if err == nil {
		set.RRule(rule)
	}
	return err
}

// afterUntil is the value of UNTIL.
func afterUntil(rule string) string {
	_, rest, _ := strings.Cut(strings.ToUpper(rule), "UNTIL=")
	until, _, _ := strings.Cut(rest, ";")
	return until
}

// eachDate reads a list of dates or moments; of a period its beginning.
func eachDate(params, value string, zone *time.Location, do func(time.Time)) error {
	for param := range strings.SplitSeq(params, ";") {
		if id, ok := strings.CutPrefix(param, "TZID="); ok {
			if named, err := time.LoadLocation(id); err == nil {
				zone = named
			}
		}
	}
	for one := range strings.SplitSeq(value, ",") {
		one, _, _ = strings.Cut(strings.TrimSpace(one), "/")
		if one == "" {
			continue
		}
		at, err := time.ParseInLocation("20060102T150405", one, zone)
		if err != nil {
			at, err = time.Parse("20060102T150405Z", one)
		}
		if err != nil {
			at, err = time.ParseInLocation("20060102", one, zone)
		}
		if err != nil {
			return fmt.Errorf("%q is no date and no time", one)
		}
		do(at)
	}
	return nil
}

// timeOf writes the start of an occurrence as its series writes its own.
func (c *Calendar) timeOf(master *Event, at time.Time) *EventTime {
	if master.Start.Date != "" {
		return &EventTime{Date: at.Format(dayLayout)}
	}
	return master.Start.like(at, c.zone)
}

// instance makes the occurrence of a series that begins at a moment of its rule.
func (c *Calendar) instance(master *Event, at time.Time, length eventLength) Event {
	e := *master
	e.Recurrence = nil
	e.RecurringEventID = master.ID
	e.Start, e.OriginalStartTime = c.timeOf(master, at), c.timeOf(master, at)
	if master.Start.Date != "" {
		e.End = &EventTime{Date: length.after(at).Format(dayLayout)}
	} else {
		e.End = master.End.like(length.after(at), c.zone)
	}
	e.ID = master.ID + "_" + occurrenceSuffix(e.OriginalStartTime, c.zone)
	return e
}

// occurrence makes the occurrence that an id names, if its series has one then.
func (c *Calendar) occurrence(id string) (Event, bool) {
	parts := occurrenceName.FindStringSubmatch(id)
	if parts == nil {
		return Event{}, false
	}
	master, ok := c.events[parts[1]]
	if !ok || master.cancelled() || !master.master() {
		return Event{}, false
	}
	for e := range c.instances(&master.Event) {
		if e.ID == id {
			return e, true
		}
	}
	return Event{}, false
}

// instances yields the occurrences of a series as its rule has them.
func (c *Calendar) instances(master *Event) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		length, err := c.length(*master)
		if err != nil {
			return
		}
		for at := range c.starts(master) {
			if !yield(c.instance(master, at, length)) {
				return
			}
		}
	}
}

// overlaps reports whether an event, or an occurrence of a series, ends after min
// and begins before max; a zero bound is none.
func (c *Calendar) overlaps(e *Event, min, max time.Time) bool {
	if min.IsZero() && max.IsZero() {
		return true
	}
	if !e.master() {
		return c.within(e, min, max)
	}
	for o := range c.instances(e) {
		if start, err := o.Start.moment(c.zone); err == nil && !max.IsZero() && !start.Before(max) {
			return false
		}
		if c.within(&o, min, max) {
			return true
		}
	}
	return false
}

func (c *Calendar) within(e *Event, min, max time.Time) bool {
	start, err := e.Start.moment(c.zone)
	end, err2 := e.End.moment(c.zone)
	if err != nil || err2 != nil {
		return false
	}
	return (min.IsZero() || end.After(min)) && (max.IsZero() || start.Before(max))
}

// shownOccurrences is what a query that asks for single events returns of a
// series: its occurrences, but those that an exception stands for.
func (c *Calendar) shownOccurrences(master *storedEvent, query eventQuery) []Event {
	if master.cancelled() && !query.showDeleted {
		return nil
	}
	var all []Event
	for e := range c.instances(&master.Event) {
		if _, excepted := c.events[e.ID]; excepted {
			continue
		}
		if !query.timeMax.IsZero() {
			if start, err := e.Start.moment(c.zone); err == nil && !start.Before(query.timeMax) {
				break
			}
		}
		if master.cancelled() {
			all = append(all, e.stub())
		} else if c.within(&e, query.timeMin, query.timeMax) {
			all = append(all, e)
		}
	}
	return all
}
