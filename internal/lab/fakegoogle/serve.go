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

// An asked is a request understood: what the meter needs to know of it, and what
// its API makes of the verdict.
type asked struct {
	call   meter.Call
	meter  *meter.Meter
	refuse func(v meter.Verdict, sayWindow bool) *wire.Error
	// answer makes the true answer.
	answer func(fault.Quirk) wire.Reply
	// delivery returns the whole messages, with their raw sizes, that go out with the
	// true answer; nil where none do.
	delivery func() map[string]int
}

// A visit is a call that was admitted; it is in flight until done.
type visit struct {
	asked
	fault *fault.Fault // that applies to it; nil if none does
	// done ends the call's time in flight, once, and notes the status of its answer,
	// unless that is 0. It comes before the answer: a client that has read it has
	// made room.
	done func(status int)
}

// admit finds out what a request asks for and lets the meter decide. The reply
// answers a call that is not served; otherwise the caller must finish the visit.
func (s *Server) admit(r *http.Request) (visit, *wire.Reply) {
	refuse := func(e *wire.Error) (visit, *wire.Reply) {
		answer := wire.RenderError(r, e)
		return visit{}, &answer
	}
	understand := s.askGmail
	if calendar.Serves(r) {
		understand = s.askCalendar
	}
	a, bad := understand(r)
	if bad != nil {
		return refuse(bad)
	}
	c := a.call
	v := a.meter.Arrive(c)
	s.log.Debug("call", zap.String("method", c.Method), zap.String("user", c.User), zap.String("project", c.Project),
		zap.String("account", c.Account), zap.String("calendar", c.Calendar), zap.String("refused", string(v.Refused)))
	if v.Refused != "" {
		e := a.refuse(v, s.oneInThree())
		a.meter.Answered(v.Number, e.Code)
		return refuse(e)
	}
	admitted := visit{asked: a, done: func(status int) {
		if status != 0 {
			a.meter.Answered(v.Number, status)
		}
		v.Release()
	}}
	if fault, ok := s.faults.Match(c); ok {
		admitted.fault = &fault
	}
	return admitted, nil
}

// askGmail understands a request of Gmail.
func (s *Server) askGmail(r *http.Request) (asked, *wire.Error) {
	op, ok := gmail.Route(r)
	if !ok {
		return asked{}, s.unknownMethod(r)
	}
	box := s.principal(r, op.UserID)
	if box == nil {
		return asked{}, s.unknownCaller()
	}
	return asked{
		call: meter.Call{
			Project: project(r), User: wire.AddressKey(box.Email()), Method: op.Method, Format: op.Format, ID: op.Item(),
			QuotaUser: quotaUser(r) != "",
		},
		meter: s.meter,
		refuse: func(v meter.Verdict, sayWindow bool) *wire.Error {
			return gmail.Refuse(v, s.opts.Prices, sayWindow)
		},
		answer:   func(quirk fault.Quirk) wire.Reply { return op.Answer(r, box, quirk) },
		delivery: func() map[string]int { return op.Delivery(box) },
	}, nil
}

// largestQuotaUser is how long a quotaUser may be, in characters.
const largestQuotaUser = 40

// askCalendar understands a request of Calendar, which charges the quotaUser, or the
// service account of the token, or the account.
func (s *Server) askCalendar(r *http.Request) (asked, *wire.Error) {
	op, ok := calendar.Route(r)
	if !ok {
		return asked{}, s.unknownMethod(r)
	}
	box := s.principal(r, op.Calendar)
	if box == nil {
		return asked{}, s.unknownCaller()
	}
	charged := quotaUser(r)
	if len([]rune(charged)) > largestQuotaUser {
		return asked{}, wire.BadRequest(fmt.Sprintf("Invalid quotaUser: it has more than %d characters", largestQuotaUser)) // unverified
	}
	email, account := wire.AddressKey(box.Email()), s.account(box)
	return asked{
		call: meter.Call{
			Project: project(r), Account: email, Calendar: account.CalendarName(op.Calendar), Method: op.Method, ID: op.Event,
			QuotaUser: charged != "", User: cmp.Or(charged, s.tokens.serviceAccount(bearerOf(r)), email),
		},
		meter: s.calendarMeter, refuse: calendar.Refuse,
		answer:   func(quirk fault.Quirk) wire.Reply { return op.Answer(r, account, quirk) },
		delivery: func() map[string]int { return nil },
	}, nil
}

func (s *Server) unknownMethod(r *http.Request) *wire.Error {
	s.unrouted.Add(1)
	s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
	return wire.NewError(http.StatusNotFound, "global", "notFound", "Not Found")
}

func (s *Server) unknownCaller() *wire.Error {
	s.unauthenticated.Add(1)
	return wire.InvalidCredentials()
}

// quotaUser is the user that a request wants to be charged; "" where it names none.
func quotaUser(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("quotaUser"), r.Header.Get("X-Goog-Quota-User"))
}

// answer makes the true answer to a visit. What no code foresaw costs the call an
// answer of 500 and nothing more.
func (s *Server) answer(r *http.Request, v visit, quirk fault.Quirk) (a wire.Reply) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("serve a call", zap.String("method", v.call.Method), zap.String("id", v.call.ID), zap.String("calendar", v.call.Calendar), zap.Any("panic", p), zap.Stack("stack"))
			a = wire.RenderError(r, wire.NewError(http.StatusInternalServerError, "global", "backendError", fmt.Sprintf("The fake broke on %s %q", v.call.Method, v.call.ID)))
		}
	}()
	return v.answer(quirk)
}

// finish answers a call that was admitted, or applies its fault. An error means that
// the client did not get all of the answer; undo then takes back that
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
		if v.fault.Apply(s.life, w, r, v.done, func() wire.Reply { return s.answer(r, v, quirk) }) {
			return undo, nil
		}
	}
	wire.Pause(s.life, s.opts.Latency, r.Context().Done())
	answer := s.answer(r, v, quirk)
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

// principal returns the mailbox of the caller: that of the token; without a token,
// that of the address in the path, or the first. It returns nil for an unknown token.
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
