package agenda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// maxSteps bounds how many occurrences of a rule with a count are generated, because
// those before the span must be generated too.
const maxSteps = 1_000_000

// A line is one line of an event's recurrence: RRULE, EXRULE, RDATE or EXDATE.
type line struct {
	name   string
	params map[string]string
	value  string
}

func readLine(text string) (line, error) {
	text = strings.TrimSpace(text)
	colon := strings.LastIndexByte(text, ':') // values have none, but odd zones do
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

// starts iterates over the starts of a series' occurrences, including those that
// exceptions replace, in its zone and in order: all that begin within from and to on
// its wall clock. It records and skips what cannot be read.
func (s *series) starts(w *walk, from, to time.Time) times {
	first := s.start.in(s.zone).In(s.zone)
	with := []times{listed(from, first)}
	var without []times
	for _, text := range s.Recurrence {
		l, err := readLine(text)
		var found times
		if err == nil {
			found, err = s.read(w, l, onWall(first), from, to)
		}
		if err != nil {
			w.note(err)
		}
		switch {
		case found == nil:
		case strings.HasPrefix(l.name, "EX"):
			without = append(without, found)
		default:
			with = append(with, found)
		}
	}
	return w.stopping(less(merged(with...), merged(without...)))
}

// read returns the dates that one line of the recurrence names.
func (s *series) read(w *walk, l line, first, from, to time.Time) (times, error) {
	switch l.name {
	case "RRULE", "EXRULE":
		return s.rule(w, l.value, first, from, to)
	case "RDATE", "EXDATE":
		all, err := s.dates(l)
		return listed(from, all...), err
	}
	return nil, fmt.Errorf("recurrence has an unknown %q", l.name)
}

// rule expands a rule on the wall clock, where every day has 24 hours.
func (s *series) rule(w *walk, text string, first, from, to time.Time) (times, error) {
	option, err := s.option(text)
	if err != nil {
		return nil, err
	}
	option.Dtstart = first
	if option.Until.IsZero() || option.Until.After(to) {
		option.Until = to
	}
	if !reachable(option) {
		return nil, nil
	}
	if option.Freq >= rrule.DAILY && limitsDays(option) {
		// The library tries days that a rule leaves out one by one or even second by
		// second, and cannot be stopped before it finds one. By years it is quick.
		days, err := w.rule(text, daysOnly(option, rrule.YEARLY))
		if err != nil {
			return nil, err
		}
		if _, any := days(); !any {
			return nil, nil
		}
	}
	if s.allDay() && option.Freq > rrule.DAILY && option.Count == 0 {
		return s.daysOf(w, text, option, from), nil
	}
	if option.Count == 0 {
		option.Dtstart = skip(option, from)
	}
	next, err := w.rule(text, option)
	if err != nil {
		return nil, err
	}
	walls := func() (time.Time, bool) {
		for before := 0; ; before++ {
			at, ok := next()
			if !ok || !at.Before(from) {
				return at, ok
			}
			if before == maxSteps {
				w.note(fmt.Errorf("rule %q: more than %d occurrences before those asked for", text, maxSteps))
				return at, false
			}
		}
	}
	if s.allDay() {
		return eachOnce(mapped(walls, wholeDay)), nil
	}
	return inOrder(walls, s.zone), nil
}

// daysOf iterates over the days on which a rule that repeats within days has an
// occurrence. It skips the rest of each day.
func (s *series) daysOf(w *walk, text string, option *rrule.ROption, from time.Time) times {
	own := option.Dtstart
	return func() (time.Time, bool) {
		option.Dtstart = own
		option.Dtstart = skip(option, from)
		next, err := w.rule(text, option)
		if err != nil {
			w.note(err)
			return time.Time{}, false
		}
		for at, ok := next(); ok; at, ok = next() {
			if day := wholeDay(at); !day.Before(from) {
				from = day.AddDate(0, 0, 1)
				return day, true
			}
		}
		return time.Time{}, false
	}
}

// limitsDays reports whether a rule of days, or within days, leaves out days. A rule
// that is limited to months only always has some.
func limitsDays(o *rrule.ROption) bool {
	return len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday) > 0
}

// daysOnly returns the rule of the days on which a rule of days, or within days, may
// have an occurrence. It ignores which weekday of a month a day is.
func daysOnly(o *rrule.ROption, frequency rrule.Frequency) *rrule.ROption {
	week := []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}
	days := &rrule.ROption{
		Freq: frequency, Dtstart: wholeDay(o.Dtstart), Until: o.Until, Wkst: o.Wkst,
		Bymonth: o.Bymonth, Bymonthday: o.Bymonthday, Byyearday: o.Byyearday, Byweekno: o.Byweekno,
	}
	for _, day := range o.Byweekday {
		days.Byweekday = append(days.Byweekday, week[day.Day()])
	}
	return days
}

func wholeDay(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }

// longestInterval bounds intervals, which the library adds up: in each unit it is longer than the calendar.
const longestInterval = 1 << 40

// reachable reports whether a rule that counts hours, minutes or seconds ever reaches
// the ones that it is limited to. If not, the library would search for ever.
func reachable(o *rrule.ROption) bool {
	unit := map[rrule.Frequency]int{rrule.HOURLY: 3600, rrule.MINUTELY: 60, rrule.SECONDLY: 1}[o.Freq]
	if unit == 0 {
		return true
	}
	const day = 24 * 3600
	step := day // within the day, the part that all steps share
	for rest := max(1, o.Interval) * unit % day; rest != 0; {
		step, rest = rest, step%rest
	}
	begin := o.Dtstart.Hour()*3600 + o.Dtstart.Minute()*60 + o.Dtstart.Second()
	among := func(limit []int, n int) bool { return len(limit) == 0 || slices.Contains(limit, n) }
	for at := begin % step; at < day; at += step {
		if among(o.Byhour, at/3600) && (o.Freq < rrule.MINUTELY || among(o.Byminute, at/60%60)) &&
			(o.Freq < rrule.SECONDLY || among(o.Bysecond, at%60)) {
			return true
		}
	}
	return false
}

// option reads a rule, with its end on the wall clock. If the end is a day and the
// series has times, the whole day counts.
func (s *series) option(text string) (*rrule.ROption, error) {
	text = plainRule(text)
	option, err := rrule.StrToROption(text)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	switch {
	case option.Count < 0 || option.Interval < 0:
		return nil, fmt.Errorf("rule %q counts below zero", text)
	case option.Count == 0 && strings.Contains(text, "COUNT="):
		return nil, fmt.Errorf("rule %q counts to zero", text)
	}
	option.Interval = min(option.Interval, longestInterval)
	if _, err := rrule.NewRRule(*option); err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
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

// plainRule returns a rule in capitals, without spaces and empty parts at its ends.
func plainRule(text string) string {
	return strings.Trim(strings.ToUpper(strings.ReplaceAll(text, " ", "")), ";")
}

// skip returns a start for a rule without a count, whole intervals after its own, from
// which the rule yields the same occurrences. It is near the given moment, not after it.
func skip(option *rrule.ROption, to time.Time) time.Time {
	unit := map[rrule.Frequency]time.Duration{
		rrule.WEEKLY: 7 * 24 * time.Hour, rrule.DAILY: 24 * time.Hour,
		rrule.HOURLY: time.Hour, rrule.MINUTELY: time.Minute, rrule.SECONDLY: time.Second,
	}[option.Freq]
	const longest = 10_000 // rules with longer intervals have few occurrences anyway
	step := unit * time.Duration(min(max(1, option.Interval), longest))
	// Start one step early: a rule may have occurrences earlier in its first week.
	span := to.Add(-step).Sub(option.Dtstart)
	if unit == 0 || option.Interval > longest || span < step {
		return option.Dtstart
	}
	return option.Dtstart.Add(span / step * step)
}

// dates reads the moments or days of a list. If the series has times, a day in its
// list means the occurrence at the series' own time of day. A period counts by its
// beginning.
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
		if named, ok := location(zone); ok { // otherwise it is the series' own
			own = named
		}
	}
	return instant(wall, own).In(s.zone), nil
}
