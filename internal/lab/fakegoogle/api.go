package fakegoogle

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// serveAPI takes one call of the API from the socket to its answer.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	// A call whose client has gone is still on its way to Google, so that alone
	// does not end the jitter.
	s.wait(s.jitter(), nil)
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
	op    operation // of Gmail, as box is
	box   *Mailbox
	call  call
	meter *meter
	// answer makes the true answer.
	answer func(odd Oddity) reply
	fault  *Fault // that strikes it; nil if none does
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
		project: project(r), user: mailboxKey(box.email), method: op.method,
		quotaUser: r.URL.Query().Get("quotaUser") != "" || r.Header.Get("X-Goog-Quota-User") != "",
	}
	switch op.method {
	case methodMessagesGet, methodThreadsGet:
		c.format, c.id = strings.ToLower(r.URL.Query().Get("format")), op.id()
	case methodAttachmentsGet:
		c.id = op.id()
	}
	v := s.meter.arrive(c)
	s.log.Debug("call", zap.String("method", c.method), zap.String("user", c.user),
		zap.String("project", c.project), zap.String("refused", string(v.refused)))
	if v.refused != "" {
		e := s.refusalError(v, s.oneInThree())
		s.meter.answered(v.number, e.Code)
		return refuse(e)
	}
	answer := func(odd Oddity) reply { return s.answer(r, op, box, odd) }
	admitted := visit{op: op, box: box, call: c, meter: s.meter, answer: answer, done: func(status int) {
		if status != 0 {
			s.meter.answered(v.number, status)
		}
		v.release()
	}}
	if fault, ok := s.faults.match(c); ok {
		admitted.fault = &fault
	}
	return admitted, nil
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
		if s.applyFault(w, r, *v.fault, v.done, func() reply { return v.answer(odd) }) {
			return undo, nil
		}
	}
	s.wait(s.opts.Latency, r.Context().Done())
	answer := v.answer(odd)
	if answer.status == http.StatusOK && v.call.fetch() {
		undo = s.meter.delivered(v.call, v.box.delivery(v.call))
	}
	if odd.LengthOff == 0 || answer.stream == nil { // a length can be wrong only where it is known
		answer.compress(r)
	}
	v.done(answer.status)
	return undo, s.sendOddly(w, r, answer, odd)
}

// largestRequest bounds the body of a call that brings no message, in bytes.
const largestRequest = 1 << 20

// readAtMost reads a body that is no larger than that.
func readAtMost(r io.Reader, largest int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err == nil && int64(len(body)) > largest {
		err = fmt.Errorf("the body is larger than %d bytes", largest)
	}
	return body, err
}

// answer serves an operation. Mail that no code foresaw costs its own call an
// answer of 500 and nothing more.
func (s *Server) answer(r *http.Request, op operation, box *Mailbox, odd Oddity) (a reply) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("serve a call", zap.String("method", op.method), zap.Strings("ids", op.ids), zap.Any("panic", p), zap.Stack("stack"))
			a = renderError(r, newError(http.StatusInternalServerError, "global", "backendError",
				fmt.Sprintf("The fake broke on %s %q", op.method, op.ids)))
		}
	}()
	if op.userID != "me" && mailboxKey(op.userID) != mailboxKey(box.email) {
		return renderError(r, delegationDenied(box.email))
	}
	body, err := readAtMost(r.Body, op.largestBody())
	if err != nil {
		return renderError(r, badRequest(err.Error()))
	}
	answer, failure := op.serve(box, withFirstMailParams(ask{Values: r.URL.Query(), odd: odd, body: body, kind: r.Header.Get("Content-Type")}))
	return render(r, answer, failure, odd.Edit)
}

// delivery returns the messages, with their raw sizes, that go out as the answer
// to a call of messages.get or threads.get.
func (m *Mailbox) delivery(c call) map[string]int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c.method == methodThreadsGet {
		sizes := map[string]int{}
		for _, msg := range m.byThread[c.id] {
			sizes[msg.id] = msg.content.size()
		}
		return sizes
	}
	size := 0 // it may have gone since
	if msg, ok := m.byID[c.id]; ok {
		size = msg.content.size()
	}
	return map[string]int{c.id: size}
}
