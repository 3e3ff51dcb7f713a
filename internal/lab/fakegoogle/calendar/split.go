package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Split changes an occurrence of a series and all that follow, as people do: the
// series ends before it, and another one begins, with the exceptions that lie
// there. from is the occurrence's original start; change gets the new series.
func (c *Calendar) Split(id string, from EventTime, change func(*Event)) (Event, error) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	series, ok := c.events[id]
	if !ok || series.cancelled() || !series.master() {
		return Event{}, fmt.Errorf("split series %s of %s: %w", id, c.id, ErrNoEvent)
	}
	old := series.Event
	at, before, err := c.splitPoint(&old, from)
	if err != nil {
		return Event{}, fmt.Errorf("split series %s of %s: %w", id, c.id, err)
	}
	length, err := c.length(old)
	if err != nil {
		return Event{}, fmt.Errorf("split series %s of %s: %w", id, c.id, err)
	}
	first := c.instance(&old, at, length)
	suffix := "_R" + strings.TrimSuffix(occurrenceSuffix(first.Start, c.zone), "Z")
	created := old
	created.ID, created.ICalUID = id+suffix, strings.TrimSuffix(old.ICalUID, "@google.com")+suffix+"@google.com"
	created.Start, created.End, created.Sequence = first.Start, first.End, 0
	exceptions := c.exceptions(id)
	old.Recurrence, created.Recurrence = c.splitLines(&old, at, before)
	old.Sequence++
	c.put(old)
	if change != nil {
		change(&created)
	}
	stored, err := c.add(created)
	if err != nil {
		return Event{}, err
	}
	c.moveExceptions(exceptions, at, stored.ID)
	return stored, nil
}

// splitPoint finds the occurrence that a series is split at, and counts those of
// its rule before it.
func (c *Calendar) splitPoint(series *Event, from EventTime) (at time.Time, before int, err error) {
	wanted := occurrenceSuffix(&from, c.zone)
	for at := range c.starts(series) {
		if occurrenceSuffix(c.timeOf(series, at), c.zone) == wanted {
			if before == 0 {
				return at, 0, fmt.Errorf("%s is its first occurrence", wanted)
			}
			return at, c.ruleCount(series, at), nil
		}
		before++
	}
	return at, 0, fmt.Errorf("%s is none of its occurrences", wanted)
}

// ruleCount counts what a series' rule alone names before a moment, as COUNT does.
func (c *Calendar) ruleCount(series *Event, at time.Time) int {
	_, set, err := c.ruleSet(series)
	if err != nil || set.GetRRule() == nil {
		return 0
	}
	n := 0
	next := set.GetRRule().Iterator()
	for t, ok := next(); ok && t.Before(at); t, ok = next() {
		n++
	}
	return n
}

// splitLines divides the lines of a recurrence at an occurrence. Exceptions by
// date are kept on both sides, where they mean nothing on one.
func (c *Calendar) splitLines(series *Event, at time.Time, before int) (old, created []string) {
	until := at.Add(-time.Second).UTC().Format("20060102T150405Z")
	if series.Start.Date != "" {
		until = at.AddDate(0, 0, -1).Format("20060102")
	}
	for _, line := range series.Recurrence {
		name, value, _ := strings.Cut(line, ":")
		kind, params, _ := strings.Cut(strings.ToUpper(name), ";")
		switch kind {
		case "RRULE":
			var kept, rest []string
			for part := range strings.SplitSeq(value, ";") {
				key, number, _ := strings.Cut(part, "=")
				switch strings.ToUpper(key) {
				case "COUNT":
					n, _ := strconv.Atoi(number)
					rest = append(rest, "COUNT="+strconv.Itoa(max(1, n-before)))
				case "UNTIL":
					rest = append(rest, part)
				default:
					kept = append(kept, part)
				}
			}
			rule := name + ":" + strings.Join(kept, ";")
			old = append(old, rule+";UNTIL="+until)
			created = append(created, strings.Join(append([]string{rule}, rest...), ";"))
		case "RDATE":
			early, late := splitDates(params, value, at)
			old, created = appendDates(old, name, early), appendDates(created, name, late)
		default:
			old, created = append(old, line), append(created, line)
		}
	}
	return old, created
}

func splitDates(params, value string, at time.Time) (early, late []string) {
	for one := range strings.SplitSeq(value, ",") {
		isEarly := false
		_ = eachDate(params, one, at.Location(), func(t time.Time) { isEarly = t.Before(at) })
		if isEarly {
			early = append(early, one)
		} else {
			late = append(late, one)
		}
	}
	return early, late
}

func appendDates(lines []string, name string, dates []string) []string {
	if len(dates) == 0 {
		return lines
	}
	return append(lines, name+":"+strings.Join(dates, ","))
}

// moveExceptions lets the exceptions that follow a moment be of another series:
// the old ones are cancelled, and new ones made.
func (c *Calendar) moveExceptions(exceptions []*storedEvent, at time.Time, series string) {
	for _, e := range exceptions {
		original, err := e.OriginalStartTime.moment(at.Location())
		if err != nil || original.Before(at) {
			continue
		}
		moved := e.Event
		moved.RecurringEventID = series
		moved.ID = series + "_" + occurrenceSuffix(e.OriginalStartTime, c.zone)
		if !e.cancelled() {
			e.Status = EventCancelled
			c.put(e.Event)
		}
		c.put(moved)
	}
}
