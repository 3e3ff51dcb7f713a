package fakegoogle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// largestEventBody bounds the body of a request of Calendar, in bytes.
const largestEventBody = 1 << 20

// calendarName is how a calendar is called in reports: by its own id, also where
// it was asked for as "primary".
func (d *diary) calendarName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.find(id); c != nil {
		return c.id
	}
	return id
}

// calendarRefusal is the answer to a call that Calendar's meter refused. Details
// are unverified: they are those of other Google services.
func calendarRefusal(v verdict, sayWindow bool) *apiError {
	switch v.refused {
	case RefusedConcurrency:
		return tooManyConcurrent()
	case RefusedBytes, RefusedEarly:
		return retryAfterError(v.retryAt)
	}
	name, quotaLimit, unit := "Queries per minute per user", "defaultPerMinutePerUser", "1/min/{project}/{user}"
	if v.refused == RefusedProjectUnits {
		name, quotaLimit, unit = "Queries per minute", "defaultPerMinutePerProject", "1/min/{project}"
	}
	e := quotaError("metric 'Queries'", name, calendarService)
	metadata := map[string]string{
		"quota_limit_value": fmt.Sprint(v.limit), "quota_limit": quotaLimit, "quota_unit": unit,
		"quota_metric": calendarService + "/default", "quota_location": "global",
		"consumer": "projects/" + projectNumber, "service": calendarService,
	}
	if sayWindow && !v.windowStart.IsZero() {
		metadata["window_start_time"] = fmt.Sprint(v.windowStart.Unix())
	}
	e.Details = []any{errorInfo{Type: errorInfoType, Reason: "RATE_LIMIT_EXCEEDED", Domain: "googleapis.com", Metadata: metadata}}
	return e
}

// answer serves an operation.
func (op calendarOperation) answer(r *http.Request, d *diary, odd Oddity) reply {
	answer, failure := op.serve(r, d, withFirstParams(ask{Values: r.URL.Query(), odd: odd}))
	if failure == nil && answer == nil {
		return reply{status: http.StatusNoContent}
	}
	return render(r, answer, failure, odd.Edit)
}

// serve answers an operation; nothing is answered 204.
func (op calendarOperation) serve(r *http.Request, d *diary, q ask) (any, *apiError) {
	switch op.method {
	case methodCalendarListList:
		return d.listCalendars(q)
	case methodCalendarListWatch:
		return d.watch(r, nil)
	case methodChannelsStop:
		return d.stopChannel(r)
	case methodColorsGet:
		return palette, nil
	case methodSettingsList:
		return d.listSettings(q)
	case methodSettingsGet:
		return d.getSetting(op.event)
	case methodFreeBusyQuery:
		return d.queryFreeBusy(r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, bad := d.reach(op)
	if bad != nil {
		return nil, bad
	}
	switch op.method {
	case methodCalendarListGet:
		return c.entry(), nil
	case methodCalendarsGet:
		return c.resource(), nil
	case methodEventsList:
		return c.listEvents(q)
	case methodEventsGet:
		return c.getEvent(op.event, q)
	case methodEventsInstances:
		return c.listInstances(op.event, q)
	case methodACLList:
		return c.listACL(q)
	case methodACLGet:
		return c.getACL(op.event)
	case methodEventsInsert:
		return c.insertEvent(r)
	case methodEventsQuickAdd:
		return c.quickAdd(q)
	case methodEventsPatch:
		return c.changeEvent(r, op.event, true)
	case methodEventsUpdate:
		return c.changeEvent(r, op.event, false)
	case methodEventsDelete:
		return nil, c.deleteEvent(r, op.event)
	case methodEventsWatch:
		return d.watch(r, c)
	}
	return nil, calendarNotFound() // routeCalendar knows no other method
}

// writersMethods are those that readers of a calendar may not call.
var writersMethods = []string{
	methodEventsInsert, methodEventsQuickAdd, methodEventsPatch, methodEventsUpdate, methodEventsDelete, methodACLList, methodACLGet,
}

// reach finds the calendar of an operation, if the account may have it. The
// caller holds the lock.
func (d *diary) reach(op calendarOperation) (*Calendar, *apiError) {
	c := d.find(op.calendar)
	switch {
	case c == nil || c.access == AccessNone || c.access == AccessMissing:
		return nil, calendarNotFound()
	case c.access == AccessDenied:
		return nil, newError(http.StatusForbidden, "global", "forbidden", "Forbidden")
	}
	if slices.Contains(writersMethods, op.method) && c.access != AccessOwner && c.access != AccessWriter {
		return nil, newError(http.StatusForbidden, "calendar", "requiredAccessLevel", "You need to have writer access to this calendar.")
	}
	return c, nil
}

// calendarNotFound is Calendar's wording, which is not Gmail's.
func calendarNotFound() *apiError {
	return newError(http.StatusNotFound, "global", "notFound", "Not Found")
}

// calendarBad is a request of Calendar that cannot be served as it is.
func calendarBad(reason, message, parameter string) *apiError {
	e := newError(http.StatusBadRequest, "global", reason, message)
	if parameter != "" {
		e.Errors[0].Location, e.Errors[0].LocationType = parameter, "parameter"
	}
	return e
}

// readBody decodes the JSON of a request. Fields that the fake has not are passed
// over, as a stranger's would be.
func readBody(r *http.Request, v any) *apiError {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestEventBody+1))
	if err == nil && len(body) > largestEventBody {
		err = errors.New("the body is too large")
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return newError(http.StatusBadRequest, "global", "parseError", "Parse Error: "+err.Error())
	}
	return nil
}
