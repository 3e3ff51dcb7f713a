package fakegoogle

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/wire"
)

// serveAPI takes one call of the API from the socket to its answer.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	// A call whose client has gone is still on its way to Google, so that alone
	// does not end the jitter.
	wire.Pause(s.life, s.jitter(), nil)
	v, refusal := s.admit(r)
	if refusal != nil {
		_ = refusal.Send(w)
		return
	}
	if undo, err := s.finish(w, r, v); err != nil {
		undo()
	}
}

// A visit is a call that was admitted; it is in flight until release.
type visit struct {
	call  meter.Call
	meter *meter.Meter
	// answer makes the true answer.
	answer func(quirk fault.Quirk) wire.Reply
	// delivery returns the whole messages, with their raw sizes, that go out with the
	// true answer.
	delivery func() map[string]int
	fault    *fault.Fault // that applies to it; nil if none does
	// done ends the call's time in flight, once, and notes the status of its answer,
	// unless that is 0. It comes before the answer: a client that has read it has
	// made room.
	done func(status int)
}

// admit finds out what a request asks for and lets the meter decide. The reply
// is what to answer at once where nobody serves it; otherwise whoever got the
// visit must finish it.
func (s *Server) admit(r *http.Request) (visit, *wire.Reply) {
	refuse := func(e *wire.Error) (visit, *wire.Reply) {
		answer := wire.RenderError(r, e)
		return visit{}, &answer
	}
	if calendar.Serves(r) {
		return s.admitCalendar(r)
	}
	op, ok := gmail.Route(r)
	if !ok {
		s.unrouted.Add(1)
		s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
		return refuse(wire.NewError(http.StatusNotFound, "global", "notFound", "Not Found"))
	}
	box := s.principal(r, op.UserID)
	if box == nil {
		s.unauthenticated.Add(1)
		return refuse(wire.InvalidCredentials())
	}
	c := meter.Call{
		Project: project(r), User: wire.AddressKey(box.Email()), Method: op.Method, Format: op.Format, Id: op.Item(),
		QuotaUser: r.URL.Query().Get("quotaUser") != "" || r.Header.Get("X-Goog-Quota-User") != "",
	}
	v := s.arrive(s.meter, c)
	if v.Refused != "" {
		e := gmail.Refuse(v, s.opts.Prices, s.oneInThree())
		s.meter.Answered(v.Number, e.Code)
		return refuse(e)
	}
	admitted := s.admitted(r, s.meter, c, v, func(quirk fault.Quirk) wire.Reply { return op.Answer(r, box, quirk) })
	admitted.delivery = func() map[string]int { return op.Delivery(box) }
	return admitted, nil
}

// arrive lets a meter decide about a call.
func (s *Server) arrive(m *meter.Meter, c meter.Call) meter.Verdict {
	v := m.Arrive(c)
	s.log.Debug("call", zap.String("method", c.Method), zap.String("user", c.User), zap.String("project", c.Project),
		zap.String("account", c.Account), zap.String("calendar", c.Calendar), zap.String("refused", string(v.Refused)))
	return v
}

// admitted is a call that a meter let through. What no code foresaw costs the call
// an answer of 500 and nothing more.
func (s *Server) admitted(r *http.Request, m *meter.Meter, c meter.Call, v meter.Verdict, answer func(fault.Quirk) wire.Reply) visit {
	admitted := visit{
		call: c, meter: m, delivery: func() map[string]int { return nil },
		answer: func(quirk fault.Quirk) (a wire.Reply) {
			defer func() {
				if p := recover(); p != nil {
					s.log.Error("serve a call", zap.String("method", c.Method), zap.String("id", c.Id), zap.String("calendar", c.Calendar), zap.Any("panic", p), zap.Stack("stack"))
					a = wire.RenderError(r, wire.NewError(http.StatusInternalServerError, "global", "backendError", fmt.Sprintf("The fake broke on %s %q", c.Method, c.Id)))
				}
			}()
			return answer(quirk)
		},
		done: func(status int) {
			if status != 0 {
				m.Answered(v.Number, status)
			}
			v.Release()
		},
	}
	if fault, ok := s.faults.Match(c); ok {
		admitted.fault = &fault
	}
	return admitted
}

// largestQuotaUser is how long a quotaUser may be, in characters.
const largestQuotaUser = 40

// admitCalendar is admit for the Calendar API.
func (s *Server) admitCalendar(r *http.Request) (visit, *wire.Reply) {
	refuse := func(e *wire.Error) (visit, *wire.Reply) {
		answer := wire.RenderError(r, e)
		return visit{}, &answer
	}
	op, ok := calendar.Route(r)
	if !ok {
		s.unrouted.Add(1)
		s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
		return refuse(wire.NewError(http.StatusNotFound, "global", "notFound", "Not Found"))
	}
	box := s.principal(r, op.Calendar)
	if box == nil {
		s.unauthenticated.Add(1)
		return refuse(wire.InvalidCredentials())
	}
	quotaUser := cmp.Or(r.URL.Query().Get("quotaUser"), r.Header.Get("X-Goog-Quota-User"))
	if len([]rune(quotaUser)) > largestQuotaUser {
		return refuse(wire.BadRequest(fmt.Sprintf("Invalid quotaUser: it has more than %d characters", largestQuotaUser))) // unverified
	}
	account := wire.AddressKey(box.Email())
	c := meter.Call{
		Project: project(r), Account: account, Method: op.Method, Id: op.Event, QuotaUser: quotaUser != "",
		User: cmp.Or(quotaUser, s.tokens.serviceAccount(bearerOf(r)), account),
	}
	d := s.account(box)
	c.Calendar = d.CalendarName(op.Calendar)
	v := s.arrive(s.calendarMeter, c)
	s.calendarCalls.Note(c, v.Refused != "")
	if v.Refused != "" {
		e := calendar.Refuse(v, s.oneInThree())
		s.calendarMeter.Answered(v.Number, e.Code)
		return refuse(e)
	}
	return s.admitted(r, s.calendarMeter, c, v, func(quirk fault.Quirk) wire.Reply { return op.Answer(r, d, quirk) }), nil
}

// finish answers a call that was admitted, or does what its fault says. The error
// says that the client did not get all of the answer; undo then takes back that
// it was counted as delivered.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, v visit) (undo func(), err error) {
	defer v.done(0)
	undo = func() {}
	var quirk fault.Quirk
	if v.fault != nil {
		quirk = v.fault.Quirk
		if wait := v.fault.Wait(); wait > 0 {
			v.meter.AskToWait(v.call.User, wait)
		}
		if v.fault.Apply(s.life, w, r, v.done, func() wire.Reply { return v.answer(quirk) }) {
			return undo, nil
		}
	}
	wire.Pause(s.life, s.opts.Latency, r.Context().Done())
	answer := v.answer(quirk)
	if answer.Status == http.StatusOK {
		if sizes := v.delivery(); sizes != nil {
			undo = v.meter.Delivered(v.call, sizes)
		}
	}
	if quirk.LengthOff == 0 || answer.Stream == nil { // a length can be wrong only where it is known
		answer.Compress(r)
	}
	v.done(answer.Status)
	return undo, quirk.Send(s.life, w, r, answer)
}

// principal returns the mailbox of whoever is calling: the token's, or without
// one that of the address in the path, or the first. It returns nil for a token
// that means nobody.
func (s *Server) principal(r *http.Request, userID string) *gmail.Mailbox {
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
