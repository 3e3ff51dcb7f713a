package fakegoogle

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// serveAPI takes one call of the API from the socket to its answer.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	// A call whose client has gone is still on its way to Google, so that alone
	// does not end the jitter.
	pause(s.life, s.jitter(), nil)
	v, refusal := s.admit(r)
	if refusal != nil {
		_ = refusal.send(w)
		return
	}
	if undo, err := s.finish(w, r, v); err != nil {
		undo()
	}
}

// A visit is a call that was admitted; it is in flight until release.
type visit struct {
	call  call
	meter *meter
	// answer makes the true answer.
	answer func(odd Oddity) reply
	// delivery returns the whole messages, with their raw sizes, that go out with the
	// true answer.
	delivery func() map[string]int
	fault    *Fault // that applies to it; nil if none does
	// done ends the call's time in flight, once, and notes the status of its answer,
	// unless that is 0. It comes before the answer: a client that has read it has
	// made room.
	done func(status int)
}

// admit finds out what a request asks for and lets the meter decide. The reply
// is what to answer at once where nobody serves it; otherwise whoever got the
// visit must finish it.
func (s *Server) admit(r *http.Request) (visit, *reply) {
	refuse := func(e *apiError) (visit, *reply) {
		answer := renderError(r, e)
		return visit{}, &answer
	}
	if isCalendar(r) {
		return s.admitCalendar(r)
	}
	op, ok := route(r)
	if !ok {
		s.unrouted.Add(1)
		s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
		return refuse(newError(http.StatusNotFound, "global", "notFound", "Not Found"))
	}
	box := s.principal(r, op.userID)
	if box == nil {
		s.unauthenticated.Add(1)
		return refuse(invalidCredentials())
	}
	c := call{
		project: project(r), user: mailboxKey(box.email), method: op.method, format: op.format, id: op.item(),
		quotaUser: r.URL.Query().Get("quotaUser") != "" || r.Header.Get("X-Goog-Quota-User") != "",
	}
	v := s.arrive(s.meter, c)
	if v.refused != "" {
		e := refusalError(v, s.opts.Prices, s.oneInThree())
		s.meter.answered(v.number, e.Code)
		return refuse(e)
	}
	admitted := s.admitted(r, s.meter, c, v, func(odd Oddity) reply { return op.answer(r, box, odd) })
	admitted.delivery = func() map[string]int { return op.delivery(box) }
	return admitted, nil
}

// arrive lets a meter decide about a call.
func (s *Server) arrive(m *meter, c call) verdict {
	v := m.arrive(c)
	s.log.Debug("call", zap.String("method", c.method), zap.String("user", c.user), zap.String("project", c.project),
		zap.String("account", c.account), zap.String("calendar", c.calendar), zap.String("refused", string(v.refused)))
	return v
}

// admitted is a call that a meter let through. What no code foresaw costs the call
// an answer of 500 and nothing more.
func (s *Server) admitted(r *http.Request, m *meter, c call, v verdict, answer func(Oddity) reply) visit {
	admitted := visit{
		call: c, meter: m, delivery: func() map[string]int { return nil },
		answer: func(odd Oddity) (a reply) {
			defer func() {
				if p := recover(); p != nil {
					s.log.Error("serve a call", zap.String("method", c.method), zap.String("id", c.id), zap.String("calendar", c.calendar), zap.Any("panic", p), zap.Stack("stack"))
					a = renderError(r, newError(http.StatusInternalServerError, "global", "backendError", fmt.Sprintf("The fake broke on %s %q", c.method, c.id)))
				}
			}()
			return answer(odd)
		},
		done: func(status int) {
			if status != 0 {
				m.answered(v.number, status)
			}
			v.release()
		},
	}
	if fault, ok := s.faults.match(c); ok {
		admitted.fault = &fault
	}
	return admitted
}

// largestQuotaUser is how long a quotaUser may be, in characters.
const largestQuotaUser = 40

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
	v := s.arrive(s.calendarMeter, c)
	s.calendarCalls.note(c, v.refused != "")
	if v.refused != "" {
		e := calendarRefusal(v, s.oneInThree())
		s.calendarMeter.answered(v.number, e.Code)
		return refuse(e)
	}
	return s.admitted(r, s.calendarMeter, c, v, func(odd Oddity) reply { return op.answer(r, d, odd) }), nil
}

// finish answers a call that was admitted, or does what its fault says. The error
// says that the client did not get all of the answer; undo then takes back that
// it was counted as delivered.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, v visit) (undo func(), err error) {
	defer v.done(0)
	undo = func() {}
	var odd Oddity
	if v.fault != nil {
		odd = v.fault.Oddity
		if wait := v.fault.wait(); wait > 0 {
			v.meter.told(v.call.user, wait)
		}
		if v.fault.apply(s.life, w, r, v.done, func() reply { return v.answer(odd) }) {
			return undo, nil
		}
	}
	pause(s.life, s.opts.Latency, r.Context().Done())
	answer := v.answer(odd)
	if answer.status == http.StatusOK {
		if sizes := v.delivery(); sizes != nil {
			undo = v.meter.delivered(v.call, sizes)
		}
	}
	if odd.LengthOff == 0 || answer.stream == nil { // a length can be wrong only where it is known
		answer.compress(r)
	}
	v.done(answer.status)
	return undo, odd.send(s.life, w, r, answer)
}

// principal returns the mailbox of whoever is calling: the token's, or without
// one that of the address in the path, or the first. It returns nil for a token
// that means nobody.
func (s *Server) principal(r *http.Request, userID string) *Mailbox {
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		if box := s.Mailbox(userID); box != nil {
			return box
		}
		return s.firstMailbox()
	}
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return nil
	}
	if user, ok := s.tokens.user(token); ok {
		return s.Mailbox(user)
	}
	return s.Mailbox(token)
}

// bearerOf is the access token of a request; "" where it has none.
func bearerOf(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// defaultProject is who is metered when no header names a project.
const defaultProject = "fake-project"

func project(r *http.Request) string {
	if p := r.Header.Get("X-Goog-User-Project"); p != "" {
		return p
	}
	return defaultProject
}
