package calendar

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// What quickAdd understands of a text: one day and one time, or a span of times,
// in English. The rest is the summary. Google understands much more; what it makes
// of a text without day or time is unverified.
var (
	quickDay = regexp.MustCompile(`(?i)(?:\b(?:on|next)\s+)?\b(?:(today|tomorrow)|(\d{4}-\d{2}-\d{2})|(sunday|monday|tuesday|wednesday|thursday|friday|saturday)|` +
		`(january|february|march|april|may|june|july|august|september|october|november|december)\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?)\b`)
	quickTimes = regexp.MustCompile(`(?i)(?:\b(?:at|from)\s+)?\b(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\s*(?:-|–|\bto\b|\buntil\b)\s*(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\b`)
	quickTime  = regexp.MustCompile(`(?i)(?:\bat\s+)?\b(\d{1,2})(?:(?::(\d{2}))\s*(am|pm)?|\s*(am|pm))\b`)
)

// quickAdd serves calendar.events.quickAdd. The caller holds the lock.
func (c *Calendar) quickAdd(q page.Request) (any, *wire.Error) {
	text := strings.TrimSpace(q.Get("text"))
	if text == "" {
		return nil, badRequest("required", "Required parameter: text", "text")
	}
	e := quickEvent(text, time.Now().In(c.zone))
	if bad := c.validate(&e); bad != nil {
		return nil, bad
	}
	stored, err := c.add(e)
	if err != nil {
		return nil, badRequest("invalid", err.Error(), "text")
	}
	return c.rendered(stored, c.zone), nil
}

// quickEvent is what a text means at a moment, in the zone of that.
func quickEvent(text string, now time.Time) Event {
	rest, day, hasDay := cutDay(text, now)
	rest, from, to, hasTime := cutTimes(rest)
	e := Event{Summary: strings.Join(strings.Fields(rest), " ")}
	if e.Summary == "" {
		e.Summary = text
	}
	year, month, date := now.Date()
	if hasDay {
		year, month, date = day.Date()
	}
	at := func(minutes int) time.Time { return time.Date(year, month, date, 0, minutes, 0, 0, now.Location()) }
	start, end := now.Truncate(time.Minute), now.Truncate(time.Minute).Add(time.Hour)
	switch {
	case hasTime:
		if start = at(from); !hasDay && start.Before(now) {
			date++
			start = at(from)
		}
		end = at(to)
	case hasDay:
		e.Start, e.End = &EventTime{Date: at(0).Format(dayLayout)}, &EventTime{Date: at(0).AddDate(0, 0, 1).Format(dayLayout)}
		return e
	}
	e.Start = &EventTime{DateTime: rfc3339(start), TimeZone: now.Location().String()}
	e.End = &EventTime{DateTime: rfc3339(end), TimeZone: now.Location().String()}
	return e
}

// cutDay takes the day out of a text. A day without a year is the next one.
func cutDay(text string, now time.Time) (rest string, day time.Time, ok bool) {
	m := quickDay.FindStringSubmatchIndex(text)
	if m == nil {
		return text, time.Time{}, false
	}
	part := func(n int) string { return lowerPart(text, m, n) }
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	rest = text[:m[0]] + " " + text[m[1]:]
	switch {
	case part(1) == "today":
		return rest, today, true
	case part(1) == "tomorrow":
		return rest, today.AddDate(0, 0, 1), true
	case part(2) != "":
		day, err := time.ParseInLocation(dayLayout, part(2), now.Location())
		return rest, day, err == nil
	case part(3) != "":
		for day = today.AddDate(0, 0, 1); strings.ToLower(day.Weekday().String()) != part(3); {
			day = day.AddDate(0, 0, 1)
		}
		return rest, day, true
	}
	month := time.Month(1 + slices.IndexFunc(monthNames, func(name string) bool { return name == part(4) }))
	date, _ := strconv.Atoi(part(5))
	if year, err := strconv.Atoi(part(6)); err == nil {
		return rest, time.Date(year, month, date, 0, 0, 0, 0, now.Location()), true
	}
	if day = time.Date(now.Year(), month, date, 0, 0, 0, 0, now.Location()); day.Before(today) {
		day = day.AddDate(1, 0, 0)
	}
	return rest, day, true
}

var monthNames = []string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

// cutTimes takes a time, or a span of times, out of a text, in minutes of the day.
// One time alone is the beginning of an hour.
func cutTimes(text string) (rest string, from, to int, ok bool) {
	if m := quickTimes.FindStringSubmatchIndex(text); m != nil {
		part := func(n int) string { return lowerPart(text, m, n) }
		if part(2)+part(3)+part(5)+part(6) != "" { // "3-4" alone may be anything
			half := part(6)
			if part(3) != "" {
				half = part(3)
			}
			from, ok1 := minutes(part(1), part(2), half)
			to, ok2 := minutes(part(4), part(5), part(6))
			switch {
			case from >= to && part(3) == "" && from >= 12*60: // 11-1pm begins before noon
				from -= 12 * 60
			case from >= to:
				to += 24 * 60
			}
			if ok1 && ok2 {
				return text[:m[0]] + " " + text[m[1]:], from, to, true
			}
		}
	}
	if m := quickTime.FindStringSubmatchIndex(text); m != nil {
		part := func(n int) string { return lowerPart(text, m, n) }
		if from, ok := minutes(part(1), part(2), part(3)+part(4)); ok {
			return text[:m[0]] + " " + text[m[1]:], from, from + 60, true
		}
	}
	return text, 0, 0, false
}

// lowerPart is what a group of a match found, in small letters; "" for nothing.
func lowerPart(text string, match []int, n int) string {
	if match[2*n] < 0 {
		return ""
	}
	return strings.ToLower(text[match[2*n]:match[2*n+1]])
}

// minutes reads a time of the day.
func minutes(hour, minute, half string) (int, bool) {
	h, err := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	switch {
	case err != nil || m > 59 || h > 24 || half != "" && (h < 1 || h > 12):
		return 0, false
	case half == "am" && h == 12:
		h = 0
	case half == "pm" && h < 12:
		h += 12
	}
	return h*60 + m, true
}
