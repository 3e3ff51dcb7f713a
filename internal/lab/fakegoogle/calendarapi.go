package fakegoogle

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
)

//go:embed calendarprices.txt
var calendarPricesText string

// CalendarPrices is the price list of Calendar; there is one.
const CalendarPrices = "calendar-2026-05"

// newCalendarMeter makes Calendar's own meter, which has nothing to do with
// Gmail's but the algorithm.
func newCalendarMeter(opts Options) (*meter, error) {
	lists, err := readPrices(calendarPricesText)
	if err != nil {
		return nil, err
	}
	prices := lists[CalendarPrices]
	return newMeter(meterSettings{
		prices:        prices,
		algorithm:     opts.Meter,
		userLimit:     cmp.Or(opts.CalendarUserLimit, prices.userMinute),
		projectLimit:  cmp.Or(opts.CalendarProjectLimit, prices.projectMinute),
		inFlightLimit: cmp.Or(opts.InFlightLimit, DefaultInFlightLimit),
		bytesPerDay:   DefaultBytesPerDay, // never reached: Calendar counts no bytes
		window:        time.Minute / time.Duration(opts.Scale),
		day:           24 * time.Hour / time.Duration(opts.Scale),
		chargeRefused: opts.ChargeRefused,
		pushBack:      opts.PushBack,
	})
}

// largestQuotaUser is how long a quotaUser may be, in characters.
const largestQuotaUser = 40

// largestEventBody bounds the body of a request of Calendar, in bytes.
const largestEventBody = 1 << 20

// admitCalendar is admit for the Calendar API.
func (s *Server) admitCalendar(r *http.Request) (visit, *reply) {
	refuse := func(e *apiError) (visit, *reply) {
		answer := renderError(r, e)
		return visit{}, &answer
	}
	op, ok := routeCalendar(r)
	if !ok {
		s.unrouted.Add(1)
		s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
		return refuse(newError(http.StatusNotFound, "global", "notFound", "Not Found"))
	}
	box := s.principal(r, op.calendar)
	if box == nil {
		s.unauthenticated.Add(1)
		return refuse(invalidCredentials())
	}
	quotaUser := cmp.Or(r.URL.Query().Get("quotaUser"), r.Header.Get("X-Goog-Quota-User"))
	if len([]rune(quotaUser)) > largestQuotaUser {
		return refuse(badRequest(fmt.Sprintf("Invalid quotaUser: it has more than %d characters", largestQuotaUser))) // unverified
	}
	account := mailboxKey(box.email)
	c := call{
		project: project(r), account: account, method: op.method, id: op.event, quotaUser: quotaUser != "",
		user: cmp.Or(quotaUser, s.tokens.serviceAccount(bearerOf(r)), account),
	}
	d := s.diary(box)
	c.calendar = d.calendarName(op.calendar)
	v := s.calendarMeter.arrive(c)
	s.calendarCalls.note(c, v.refused != "")
	s.log.Debug("call", zap.String("method", c.method), zap.String("account", account), zap.String("calendar", c.calendar),
		zap.String("user", c.user), zap.String("project", c.project), zap.String("refused", string(v.refused)))
	if v.refused != "" {
		e := calendarRefusal(v, s.oneInThree())
		s.calendarMeter.answered(v.number, e.Code)
		return refuse(e)
	}
	admitted := visit{
		call: c, meter: s.calendarMeter,
		answer: func(odd Oddity) reply { return s.answerCalendar(r, op, d, odd) },
		done: func(status int) {
			if status != 0 {
				s.calendarMeter.answered(v.number, status)
			}
			v.release()
		},
	}
	if fault, ok := s.faults.match(c); ok {
		admitted.fault = &fault
	}
	return admitted, nil
}

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

// answerCalendar serves an operation. What no code foresaw costs its own call an
// answer of 500 and nothing more.
func (s *Server) answerCalendar(r *http.Request, op calendarOperation, d *diary, odd Oddity) (a reply) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("serve a call", zap.String("method", op.method), zap.String("calendar", op.calendar), zap.Any("panic", p), zap.Stack("stack"))
			a = renderError(r, newError(http.StatusInternalServerError, "global", "backendError", "The fake broke on "+op.method))
		}
	}()
	answer, failure := s.serveCalendar(r, op, d, withFirstParams(ask{Values: r.URL.Query(), odd: odd}))
	if failure == nil && answer == nil {
		return reply{status: http.StatusNoContent}
	}
	return render(r, answer, failure, odd.Edit)
}

// serveCalendar answers an operation; nothing is answered 204.
func (s *Server) serveCalendar(r *http.Request, op calendarOperation, d *diary, q ask) (any, *apiError) {
	switch op.method {
	case methodCalendarListList:
		return d.listCalendars(q)
	case methodCalendarListWatch:
		return s.watch(r, d, nil)
	case methodChannelsStop:
		return s.stopChannel(r, d)
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
		return s.watch(r, d, c)
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
