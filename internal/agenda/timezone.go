package agenda

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/emersion/go-ical"
)

// A transition is a change of the clocks of a zone.
type transition struct {
	onset    time.Time // by the clocks just before the change
	from, to int       // offsets, in seconds
	name     string
	daylight bool
}

// A kind is a group of transitions that share one observance.
type kind struct {
	from, to int
	name     string
	daylight bool
}

func (t transition) kind() kind { return kind{t.from, t.to, t.name, t.daylight} }

// The yearly rule of a zone is taken from this many years after the events. After 28
// years weekdays fall on the same days again.
const ruleYears = 28

// From farYear on no change is listed one by one, however far away an event is: the
// clocks then do the same every year.
const farYear = 2100

// timezone describes a zone from the year of first on. Changes that recur every year
// from some year on become a rule; it lists every change before that, or every known
// change of a zone without a rule.
func timezone(zone *time.Location, first, last time.Time) *ical.Component {
	from := min(max(first.Year()-1, worldBegin.Year()), farYear)
	begin := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	settled := time.Date(max(from, min(last.Year(), farYear))+1, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := transitions(zone, begin, settled.AddDate(ruleYears, 0, 0))
	listed, rules := split(changes, settled)

	c := ical.NewComponent(ical.CompTimezone)
	c.Props.SetText(ical.PropTimezoneID, zone.String())
	c.Children = append(c.Children, observance(initial(zone, begin), nil, ""))
	for _, k := range kinds(listed) {
		of := slices.DeleteFunc(slices.Clone(listed), func(t transition) bool { return t.kind() != k })
		c.Children = append(c.Children, observance(of[0], of[1:], ""))
	}
	for _, r := range rules {
		c.Children = append(c.Children, observance(r.first, nil, r.text))
	}
	return c
}

// transitions lists the changes of a zone's clocks between two moments. It tests every
// day, because [time.Time.ZoneBounds] ends periods of future years too early.
func transitions(zone *time.Location, begin, end time.Time) (all []transition) {
	const day = 24 * time.Hour
	for from := begin; from.Before(end); from = from.Add(day) {
		prior, old := from.In(zone).Zone()
		if name, offset := from.Add(day).In(zone).Zone(); name == prior && offset == old {
			continue
		}
		seconds := sort.Search(int(day/time.Second), func(s int) bool {
			name, offset := from.Add(time.Duration(s) * time.Second).In(zone).Zone()
			return name != prior || offset != old
		})
		at := from.Add(time.Duration(seconds) * time.Second).In(zone)
		name, offset := at.Zone()
		all = append(all, transition{
			onset: at.UTC().Add(time.Duration(old) * time.Second), from: old, to: offset, name: name, daylight: at.IsDST(),
		})
	}
	return all
}

// initial returns the offset at a moment, as a transition that changes nothing.
func initial(zone *time.Location, at time.Time) transition {
	name, offset := at.In(zone).Zone()
	return transition{onset: onWall(at.In(zone)), from: offset, to: offset, name: name, daylight: at.In(zone).IsDST()}
}

func kinds(all []transition) (found []kind) {
	for _, t := range all {
		if !slices.Contains(found, t.kind()) {
			found = append(found, t.kind())
		}
	}
	return found
}

// A yearly rule applies from its first transition on.
type yearly struct {
	first transition
	text  string
}

// split divides a zone's transitions into those that are listed one by one and those
// that rules express: everything from settled on, if there are rules.
func split(changes []transition, settled time.Time) (listed []transition, rules []yearly) {
	i := slices.IndexFunc(changes, func(t transition) bool { return !t.onset.Before(settled) })
	if i < 0 {
		return changes, nil
	}
	settledOnes := changes[i:]
	for _, k := range kinds(settledOnes) {
		of := slices.DeleteFunc(slices.Clone(settledOnes), func(t transition) bool { return t.kind() != k })
		text, ok := yearlyRule(of)
		if !ok || len(of) != ruleYears {
			return changes, nil
		}
		rules = append(rules, yearly{of[0], text})
	}
	return changes[:i], rules
}

// yearlyRule returns the rule of transitions in consecutive years, if they have one.
func yearlyRule(of []transition) (string, bool) {
	first := of[0].onset
	low, high, fromEnd := 31, 1, true
	for i, t := range of {
		at := t.onset
		if at.Year() != first.Year()+i || at.Month() != first.Month() || at.Weekday() != first.Weekday() ||
			at.Sub(at.Truncate(24*time.Hour)) != first.Sub(first.Truncate(24*time.Hour)) {
			return "", false
		}
		low, high = min(low, at.Day()), max(high, at.Day())
		fromEnd = fromEnd && at.AddDate(0, 0, 7).Month() != at.Month()
	}
	day := strings.ToUpper(first.Weekday().String()[:2])
	rule := fmt.Sprintf("FREQ=YEARLY;BYMONTH=%d;", first.Month())
	switch {
	case high-low != 6: // in 28 years every date of a week occurs
		return "", false
	case fromEnd:
		return rule + "BYDAY=-1" + day, true
	case low%7 == 1:
		return fmt.Sprintf("%sBYDAY=%d%s", rule, low/7+1, day), true
	}
	days := make([]string, 0, 7)
	for d := low; d <= high; d++ {
		days = append(days, fmt.Sprint(d))
	}
	return rule + "BYMONTHDAY=" + strings.Join(days, ",") + ";BYDAY=" + day, true
}

// observance writes transitions of one kind.
func observance(t transition, others []transition, rule string) *ical.Component {
	name := ical.CompTimezoneStandard
	if t.daylight {
		name = ical.CompTimezoneDaylight
	}
	c := ical.NewComponent(name)
	c.Props.Set(&ical.Prop{Name: ical.PropDateTimeStart, Value: t.onset.Format(localLayout)})
	c.Props.Set(&ical.Prop{Name: ical.PropTimezoneOffsetFrom, Value: offset(t.from)})
	c.Props.Set(&ical.Prop{Name: ical.PropTimezoneOffsetTo, Value: offset(t.to)})
	c.Props.SetText(ical.PropTimezoneName, t.name)
	if rule != "" {
		c.Props.Set(&ical.Prop{Name: ical.PropRecurrenceRule, Value: rule})
	}
	for _, o := range others {
		c.Props.Add(&ical.Prop{Name: ical.PropRecurrenceDates, Value: o.onset.Format(localLayout)})
	}
	return c
}

const localLayout = "20060102T150405"

// offset formats an offset from UTC as ±hhmm, with seconds if it has any.
func offset(seconds int) string {
	sign := cmp.Or(map[bool]string{true: "-"}[seconds < 0], "+")
	seconds = max(seconds, -seconds)
	text := fmt.Sprintf("%s%02d%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		text += fmt.Sprintf("%02d", seconds%60)
	}
	return text
}
