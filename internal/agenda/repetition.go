package agenda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// maxDates bounds how many dates of a rule a file lists one by one.
const maxDates = 3000

// A repetition is the recurrence of a series in a form that readers of iCalendar
// accept: at most one rule, extra dates, and dates that are left out, each once and in
// the form of the series' start.
type repetition struct {
	empty         bool // the series has no occurrence
	rule          string
	with, without []When
	err           error // what this form cannot express
}

// repetition converts a series' recurrence. Readers know one rule and no rule that
// excludes, so one of several rules stays a rule, and the others become dates. What
// cannot be read is left out, because readers refuse a file with a line that they cannot
// read; the problems of the series include it.
func (s *series) repetition() (r repetition) {
	w := newWalk(context.Background())
	begin := s.start.in(s.zone).In(s.zone)
	first := onWall(begin)
	dates := []times{listed(first, begin)} // the other dates need not include it
	var rules, without []times
	var options []*rrule.ROption
	for _, text := range s.Recurrence {
		l, err := readLine(text)
		if err != nil {
			continue
		}
		found, err := s.read(w, l, first, first, endOfTime)
		switch {
		case l.name == "EXDATE":
			without = append(without, found)
		case l.name == "RDATE":
			dates = append(dates, found)
		case err != nil || found == nil:
		case l.name == "EXRULE":
			without = append(without, r.bounded(found, l.value))
		default:
			option, _ := s.option(l.value)
			if s.allDay() {
				option = byDays(option)
			}
			rules, options = append(rules, found), append(options, option)
		}
	}
	ruled := listed(first)
	if i := mainRule(options, s.allDay()); i >= 0 {
		head := &peeked{next: rules[i]}
		if head.advance(); head.ok {
			r.rule = s.ruleText(options[i])
			ruled = merged(listed(first, head.at), head.next)
		}
		rules = slices.Delete(rules, i, i+1)
	}
	for _, rule := range rules {
		dates = append(dates, r.bounded(rule, "another"))
	}
	living, gone := map[string]bool{}, []time.Time{}
	for _, e := range s.exceptions {
		switch original := s.like(e.original); {
		case e.original.IsZero():
		case e.stored.Cancelled():
			gone = append(gone, original.in(s.zone).In(s.zone))
		default:
			living[s.key(original)] = true
		}
	}
	taken := less(s.starts(w, first, endOfTime), listed(time.Time{}, gone...))
	_, any := taken()
	r.empty = !any
	if s.allDay() {
		for i := range dates {
			dates[i] = eachOnce(mapped(dates[i], wholeDay))
		}
	}
	without = append(without, listed(time.Time{}, gone...))
	if r.with = s.all(less(merged(dates...), ruled), nil); r.rule == "" && len(r.with) == 1 {
		r.with = nil // its start alone
	}
	r.without = s.all(merged(without...), living)
	if err := w.err(); err != nil {
		r.err = errors.Join(r.err, err)
	}
	return r
}

// all lists moments in the form of the series' start, except for some.
func (s *series) all(next times, but map[string]bool) (all []When) {
	for at, ok := next(); ok; at, ok = next() {
		if start := s.at(at); !but[s.key(start)] {
			all = append(all, start)
		}
	}
	return all
}

// bounded ends a rule that is written as dates.
func (r *repetition) bounded(next times, rule string) times {
	n := 0
	return func() (time.Time, bool) {
		at, ok := next()
		if n++; ok && n > maxDates {
			r.err = errors.Join(r.err, fmt.Errorf("its file has the first %d dates of rule %q, as readers know one rule only", maxDates, rule))
			return at, false
		}
		return at, ok
	}
}

// byDays returns a rule of days for a series of days that has an occurrence on every
// day, or on every day that it is limited to.
func byDays(o *rrule.ROption) *rrule.ROption {
	perDay := map[rrule.Frequency]int{rrule.HOURLY: 24, rrule.MINUTELY: 24 * 60, rrule.SECONDLY: 24 * 3600}[o.Freq]
	if perDay < max(1, o.Interval) || o.Count > 0 || len(o.Byhour)+len(o.Byminute)+len(o.Bysecond)+len(o.Bysetpos) > 0 {
		return o
	}
	daily := daysOnly(o, rrule.DAILY)
	daily.Dtstart = time.Time{}
	return daily
}

// mainRule returns the rule that stays a rule: the first that never ends, otherwise the first.
func mainRule(options []*rrule.ROption, days bool) int {
	main := -1
	for i, o := range options {
		if days && (o.Freq > rrule.DAILY || len(o.Byhour)+len(o.Byminute)+len(o.Bysecond) > 0) || len(o.Byeaster) > 0 {
			continue // no reader accepts it
		}
		if o.Count == 0 && o.Until.IsZero() {
			return i
		}
		if main < 0 {
			main = i
		}
	}
	return main
}

// ruleText writes a rule, with an end of the kind of the series' start: a day, or a
// moment in UTC.
func (s *series) ruleText(option *rrule.ROption) string {
	rule := *option
	rule.Until = time.Time{}
	text := rule.RRuleString()
	switch {
	case option.Until.IsZero():
		return text
	case s.allDay():
		return text + ";UNTIL=" + option.Until.Format("20060102")
	}
	return strings.Join([]string{text, "UNTIL=" + instant(option.Until, s.zone).UTC().Format(utcLayout)}, ";")
}
