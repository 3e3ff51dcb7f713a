package calendar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// largestEventBody bounds the body of a request of Calendar, in bytes.
const largestEventBody = 1 << 20

// CalendarName is how a calendar is called in reports: by its own id, also where
// it was asked for as "primary".
func (d *Account) CalendarName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.find(id); c != nil {
		return c.id
	}
	return id
}

// Refuse is the answer to a call that Calendar's meter refused. Details
// are unverified: they are those of other Google services.
func Refuse(v meter.Verdict, sayWindow bool) *wire.Error {
	switch v.Refused {
	case meter.RefusedConcurrency:
		return wire.TooManyConcurrent()
	case meter.RefusedBytes, meter.RefusedEarly:
		return wire.RetryAfterError(v.RetryAt)
	}
	name, quotaLimit, unit := "Queries per minute per user", "defaultPerMinutePerUser", "1/min/{project}/{user}"
	if v.Refused == meter.RefusedProjectUnits {
		name, quotaLimit, unit = "Queries per minute", "defaultPerMinutePerProject", "1/min/{project}"
	}
	e := wire.QuotaError("metric 'Queries'", name, wire.CalendarService)
	metadata := map[string]string{
		"quota_limit_value": fmt.Sprint(v.Limit), "quota_limit": quotaLimit, "quota_unit": unit,
		"quota_metric": wire.CalendarService + "/default", "quota_location": "global",
		"consumer": "projects/" + wire.ProjectNumber, "service": wire.CalendarService,
	}
	if sayWindow && !v.WindowStart.IsZero() {
		metadata["window_start_time"] = fmt.Sprint(v.WindowStart.Unix())
	}
	e.Details = []any{wire.ErrorInfo{Type: wire.ErrorInfoType, Reason: "RATE_LIMIT_EXCEEDED", Domain: "googleapis.com", Metadata: metadata}}
	return e
}

// Answer serves an operation.
func (op Operation) Answer(r *http.Request, d *Account, quirk fault.Quirk) wire.Reply {
	answer, failure := op.serve(r, d, page.Request{Values: r.URL.Query(), Quirk: quirk}.WithFirst(tokenEncoding))
	if failure == nil && answer == nil {
		return wire.Reply{Status: http.StatusNoContent}
	}
	return wire.Render(r, answer, failure, quirk.Edit)
}

// serve answers an operation; nothing is answered 204.
func (op Operation) serve(r *http.Request, d *Account, q page.Request) (any, *wire.Error) {
	switch op.Method {
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
		return d.getSetting(op.Event)
	case methodFreeBusyQuery:
		return d.queryFreeBusy(r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, bad := d.reach(op)
	if bad != nil {
		return nil, bad
	}
	switch op.Method {
	case methodCalendarListGet:
		return c.entry(), nil
	case methodCalendarsGet:
		return c.resource(), nil
	case methodEventsList:
		return c.listEvents(q)
	case methodEventsGet:
		return c.getEvent(op.Event, q)
	case methodEventsInstances:
		return c.listInstances(op.Event, q)
	case methodACLList:
		return c.listACL(q)
	case methodACLGet:
		return c.getACL(op.Event)
	case methodEventsInsert:
		return c.insertEvent(r)
	case methodEventsQuickAdd:
		return c.quickAdd(q)
	case methodEventsPatch:
		return c.changeEvent(r, op.Event, true)
	case methodEventsUpdate:
		return c.changeEvent(r, op.Event, false)
	case methodEventsDelete:
		return nil, c.deleteEvent(r, op.Event)
	case methodEventsWatch:
		return d.watch(r, c)
	}
	return nil, notFound() // routeCalendar knows no other method
}

// writersMethods are those that readers of a calendar may not call.
var writersMethods = []string{
	methodEventsInsert, methodEventsQuickAdd, methodEventsPatch, methodEventsUpdate, methodEventsDelete, methodACLList, methodACLGet,
}

// reach finds the calendar of an operation, if the account may have it. The
// caller holds the lock.
func (d *Account) reach(op Operation) (*Calendar, *wire.Error) {
	c := d.find(op.Calendar)
	switch {
	case c == nil || c.access == AccessNone || c.access == AccessMissing:
		return nil, notFound()
	case c.access == AccessDenied:
		return nil, wire.NewError(http.StatusForbidden, "global", "forbidden", "Forbidden")
	}
	if slices.Contains(writersMethods, op.Method) && c.access != AccessOwner && c.access != AccessWriter {
		return nil, wire.NewError(http.StatusForbidden, "calendar", "requiredAccessLevel", "You need to have writer access to this calendar.")
	}
	return c, nil
}

// notFound is Calendar's wording, which is not Gmail's.
func notFound() *wire.Error {
	return wire.NewError(http.StatusNotFound, "global", "notFound", "Not Found")
}

// badRequest is a request of Calendar that cannot be served as it is.
func badRequest(reason, message, parameter string) *wire.Error {
	e := wire.NewError(http.StatusBadRequest, "global", reason, message)
	if parameter != "" {
		e.Errors[0].Location, e.Errors[0].LocationType = parameter, "parameter"
	}
	return e
}

// readBody decodes the JSON of a request. Fields that the fake has not are passed
// over, as a stranger's would be.
func readBody(r *http.Request, v any) *wire.Error {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestEventBody+1))
	if err == nil && len(body) > largestEventBody {
		err = errors.New("the body is too large")
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return wire.NewError(http.StatusBadRequest, "global", "parseError", "Parse Error: "+err.Error())
	}
	return nil
}
