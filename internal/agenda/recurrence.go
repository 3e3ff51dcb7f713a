package agenda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// maxSteps bounds how many occurrences of a rule with a count are gone through:
// those before the span have to be.
const maxSteps = 1_000_000

// A line is one of an event's recurrence: RRULE, EXRULE, RDATE or EXDATE.
type line struct {
	name   string
	params map[string]string
	value  string
}

func readLine(text string) (line, error) {
	text = strings.TrimSpace(text)
	colon := strings.LastIndexByte(text, ':') // no value has one, but odd zones do
	if colon < 0 {
		return line{}, fmt.Errorf("recurrence %q has no value", text)
	}
	head, value := text[:colon], text[colon+1:]
	name, params, _ := strings.Cut(head, ";")
	l := line{name: strings.ToUpper(name), params: map[string]string{}, value: strings.TrimSpace(value)}
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(param, "=")
		l.params[strings.ToUpper(key)] = strings.Trim(value, `"`)
	}
	return l, nil
}

// starts lists when the occurrences of a series begin, those that exceptions stand
// for included, in its zone and in order; all that begin within from and to on its
// wall clock. What the error says could not be understood is left out.
func (s *series) starts(from, to time.Time) ([]time.Time, error) {
	var problems []error
	first := s.start.in(s.zone).In(s.zone)
	with, without := []time.Time{first}, map[int64]bool{}
	for _, text := range s.Recurrence {
		l, err := readLine(text)
		var found []time.Time
		if err == nil {
			found, err = s.read(l, onWall(first), from, to)
		}
		if err != nil {
			problems = append(problems, err)
		}
		switch l.name {
		case "RRULE", "RDATE":
			with = append(with, found...)
		case "EXRULE", "EXDATE":
			for _, at := range found {
				without[at.Unix()] = true
			}
		}
	}
	with = slices.DeleteFunc(with, func(t time.Time) bool {
		wall := onWall(t)
		return without[t.Unix()] || wall.Before(from) || !wall.Before(to)
	})
	slices.SortFunc(with, time.Time.Compare)
	return slices.CompactFunc(with, time.Time.Equal), errors.Join(problems...)
}

// read is what one line of the recurrence names.
func (s *series) read(l line, first, from, to time.Time) ([]time.Time, error) {
	switch l.name {
	case "RRULE", "EXRULE":
		walls, err := s.rule(l.value, first, from, to)
		all := make([]time.Time, 0, len(walls))
		for _, wall := range walls {
			all = append(all, instant(wall, s.zone))
		}
		return all, err
	case "RDATE", "EXDATE":
		return s.dates(l)
	}
	return nil, fmt.Errorf("recurrence has an unknown %q", l.name)
}

// rule works out a rule on the wall clock, where every day has 24 hours.
func (s *series) rule(text string, first, from, to time.Time) ([]time.Time, error) {
	option, err := s.option(text)
	if err != nil {
		return nil, err
	}
	option.Dtstart = first
	if option.Until.IsZero() || option.Until.After(to) {
		option.Until = to
	}
	if option.Count == 0 {
		option.Dtstart = skip(option, from)
	}
	if option.Until.Before(option.Dtstart) {
		return nil, nil
	}
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	var all []time.Time
	next := rule.Iterator()
	for range maxSteps {
		at, ok := next()
		switch {
		case !ok:
			return all, nil
		case at.Before(from):
			continue
		case len(all) == MaxOccurrences:
			return all, tooManyError(MaxOccurrences)
		}
		all = append(all, at)
	}
	return all, fmt.Errorf("rule %q: more than %d occurrences before those asked for", text, maxSteps)
}

// option reads a rule, with its end as it is on the wall clock. Where an end is a
// day and the series has times, the whole of that day counts.
func (s *series) option(text string) (*rrule.ROption, error) {
	text = plainRule(text)
	option, err := rrule.StrToROption(text)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	if option.Count < 0 || option.Interval < 0 {
		return nil, fmt.Errorf("rule %q counts below zero", text)
	}
	if option.Until.IsZero() {
		return option, nil
	}
	_, end, _ := strings.Cut(text, "UNTIL=")
	end, _, _ = strings.Cut(end, ";")
	switch {
	case s.allDay():
		option.Until = option.Until.Truncate(24 * time.Hour)
	case len(end) == len("20060102"):
		option.Until = option.Until.Add(24*time.Hour - time.Second)
	case strings.HasSuffix(end, "Z"):
		option.Until = onWall(option.Until.In(s.zone))
	}
	return option, nil
}

// plainRule is a rule in capitals, without spaces and empty parts at its ends.
func plainRule(text string) string {
	return strings.Trim(strings.ToUpper(strings.ReplaceAll(text, " ", "")), ";")
}

// skip is a start for a rule without a count from which on it yields what it
// yields from its own, near to but not after the given one: whole intervals later.
func skip(option *rrule.ROption, to time.Time) time.Time {
	unit := map[rrule.Frequency]time.Duration{
		rrule.WEEKLY: 7 * 24 * time.Hour, rrule.DAILY: 24 * time.Hour,
		rrule.HOURLY: time.Hour, rrule.MINUTELY: time.Minute, rrule.SECONDLY: time.Second,
	}[option.Freq]
	const longest = 10_000 // intervals beyond it have few occurrences anyway
	step := unit * time.Duration(min(max(1, option.Interval), longest))
	// Begun one step early, as a rule may have occurrences earlier in its first week.
	span := to.Add(-step).Sub(option.Dtstart)
	if unit == 0 || option.Interval > longest || span < step {
		return option.Dtstart
	}
	return option.Dtstart.Add(span / step * step)
}

// dates reads the moments or days of a list. A day in a list of a series with
// times means the occurrence at the series' own time of day; of a period it is the
// beginning that counts.
func (s *series) dates(l line) (all []time.Time, err error) {
	for text := range strings.SplitSeq(l.value, ",") {
		begin, _, _ := strings.Cut(strings.TrimSpace(text), "/")
		at, failed := s.date(begin, l.params["TZID"])
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s %q: %w", l.name, text, failed))
			continue
		}
		all = append(all, at)
	}
	return all, err
}

func (s *series) date(text, zone string) (time.Time, error) {
	if len(text) == len("20060102") {
		day, err := time.Parse("20060102", text)
		if err != nil || s.allDay() {
			return day, err
		}
		first := onWall(s.start.Time.In(s.zone))
		return instant(day.Add(first.Sub(first.Truncate(24*time.Hour))), s.zone), nil
	}
	wall, err := time.Parse("20060102T150405", strings.TrimSuffix(text, "Z"))
	if err != nil {
		return time.Time{}, err
	}
	own := s.zone
	switch {
	case s.allDay():
		return wall.Truncate(24 * time.Hour), nil
	case strings.HasSuffix(text, "Z"):
		own = time.UTC
	case zone != "":
		if named, ok := location(zone); ok { // if not, it is the series' own
			own = named
		}
	}
	return instant(wall, own).In(s.zone), nil
}
