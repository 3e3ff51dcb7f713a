package calendar

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// mostFreeBusy is how many calendars one query may be about.
const mostFreeBusy = 50

type freeBusyRequest struct {
	TimeMin              string `json:"timeMin"`
	TimeMax              string `json:"timeMax"`
	TimeZone             string `json:"timeZone"`
	CalendarExpansionMax int    `json:"calendarExpansionMax"`
	Items                []struct {
		ID string `json:"id"`
	} `json:"items"`
}

type freeBusyAnswer struct {
	Kind      string                      `json:"kind"`
	TimeMin   string                      `json:"timeMin"`
	TimeMax   string                      `json:"timeMax"`
	Calendars map[string]freeBusyCalendar `json:"calendars"`
}

type freeBusyCalendar struct {
	Errors []freeBusyError `json:"errors,omitempty"`
	Busy   []timePeriod    `json:"busy"`
}

type freeBusyError struct {
	Domain string `json:"domain"`
	Reason string `json:"reason"`
}

type timePeriod struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// queryFreeBusy serves calendar.freebusy.query. A calendar that the account cannot
// see, and one too many, is an error of its own in an answer of 200.
func (d *Account) queryFreeBusy(r *http.Request) (any, *wire.Error) {
	var request freeBusyRequest
	if bad := readBody(r, &request); bad != nil {
		return nil, bad
	}
	from, bad := boundOf(request.TimeMin, "timeMin")
	to, bad2 := boundOf(request.TimeMax, "timeMax")
	if bad = cmp.Or(bad, bad2); bad != nil {
		return nil, bad
	}
	if !from.Before(to) {
		e := badRequest("timeRangeEmpty", "The specified time range is empty.", "timeMax")
		e.Errors[0].Domain = "calendar"
		return nil, e
	}
	zone, err := time.LoadLocation(cmp.Or(request.TimeZone, "UTC"))
	if err != nil {
		return nil, badRequest("invalid", "Invalid time zone: "+request.TimeZone, "timeZone")
	}
	most := mostFreeBusy
	if request.CalendarExpansionMax > 0 {
		most = min(most, request.CalendarExpansionMax)
	}
	answer := freeBusyAnswer{
		Kind: "calendar#freeBusy", TimeMin: from.UTC().Format(stampLayout), TimeMax: to.UTC().Format(stampLayout),
		Calendars: map[string]freeBusyCalendar{},
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range request.Items {
		if _, done := answer.Calendars[item.ID]; done {
			continue
		}
		c := d.find(item.ID)
		switch {
		case len(answer.Calendars) >= most:
			answer.Calendars[item.ID] = freeBusyFailure("tooManyCalendarsRequested")
		case c == nil || slices.Contains([]string{AccessNone, AccessMissing, AccessDenied}, c.access):
			answer.Calendars[item.ID] = freeBusyFailure("notFound")
		default:
			answer.Calendars[item.ID] = freeBusyCalendar{Busy: c.busy(from, to, zone)}
		}
	}
	return answer, nil
}

func freeBusyFailure(reason string) freeBusyCalendar {
	return freeBusyCalendar{Errors: []freeBusyError{{Domain: "global", Reason: reason}}, Busy: []timePeriod{}}
}

// boundOf reads a bound that must be there.
func boundOf(text, name string) (time.Time, *wire.Error) {
	if text == "" {
		return time.Time{}, badRequest("required", "Missing "+name+" parameter.", name)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, badRequest("badRequest", "Bad Request", name)
	}
	return at, nil
}

// busy returns when the calendar is busy between two moments: events that overlap
// or follow each other at once are one period, and none reaches beyond the bounds
// (unverified). The caller holds the lock.
func (c *Calendar) busy(from, to time.Time, zone *time.Location) []timePeriod {
	type period struct{ start, end time.Time }
	var all []period
	for _, e := range c.choose(eventQuery{since: -1, single: true, timeMin: from, timeMax: to}) {
		start, err := e.item.Start.moment(c.zone)
		end, err2 := e.item.End.moment(c.zone)
		if err == nil && err2 == nil && e.item.busy() && start.Before(end) {
			all = append(all, period{later(start, from), earlier(end, to)})
		}
	}
	slices.SortFunc(all, func(a, b period) int { return a.start.Compare(b.start) })
	merged := all[:0]
	for _, p := range all {
		if n := len(merged); n > 0 && !p.start.After(merged[n-1].end) {
			merged[n-1].end = later(merged[n-1].end, p.end)
			continue
		}
		merged = append(merged, p)
	}
	periods := make([]timePeriod, len(merged))
	for i, p := range merged {
		periods[i] = timePeriod{Start: rfc3339(p.start.In(zone)), End: rfc3339(p.end.In(zone))}
	}
	return periods
}

// busy reports whether the event takes up the time of the calendar's owner.
func (e *Event) busy() bool {
	declined := slices.ContainsFunc(e.Attendees, func(a EventAttendee) bool { return a.Self && a.ResponseStatus == "declined" })
	return !declined && e.Transparency != "transparent" && e.EventType != "workingLocation"
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
