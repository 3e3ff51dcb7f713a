package fakegoogle

import (
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// serveAPI takes one call of the API from the socket to its answer.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	op, ok := route(r)
	if !ok {
		s.unrouted.Add(1)
		s.log.Debug("call of an unknown method", zap.String("http_method", r.Method), zap.String("path", r.URL.Path))
		answer := renderError(r, newError(http.StatusNotFound, "global", "notFound", "Not Found"))
		_ = answer.send(w)
		return
	}
	// A call whose client has gone is still on its way to Google, so that alone
	// does not end the jitter.
	s.wait(s.jitter(), nil)

	box := s.principal(r, op.userID)
	if box == nil {
		s.unauthenticated.Add(1)
		answer := renderError(r, invalidCredentials())
		_ = answer.send(w)
		return
	}
	c := call{
		project: project(r), user: mailboxKey(box.email), method: op.method,
		quotaUser: r.URL.Query().Get("quotaUser") != "" || r.Header.Get("X-Goog-Quota-User") != "",
	}
	if op.method == methodMessagesGet {
		c.format, c.id = strings.ToLower(r.URL.Query().Get("format")), op.id
	}
	v := s.meter.arrive(c)
	s.log.Debug("call", zap.String("method", c.method), zap.String("user", c.user),
		zap.String("project", c.project), zap.String("refused", string(v.refused)))
	if v.refused != "" {
		answer := renderError(r, s.refusalError(v, s.oneInThree()))
		_ = answer.send(w)
		return
	}
	defer v.release()

	if fault, ok := s.faults.match(c); ok {
		if s.applyFault(w, r, fault, v.release, func() reply { return s.answer(r, op, box) }) {
			return
		}
	}
	s.wait(s.opts.Latency, r.Context().Done())
	answer := s.answer(r, op, box)
	undo := func() {}
	if answer.status == http.StatusOK && c.fetch() {
		undo = s.meter.delivered(c, box.size(op.id))
	}
	answer.compress(r)
	// In flight ends here: a client that has read its answer has made room.
	v.release()
	if answer.send(w) != nil {
		undo()
	}
}

// answer serves an operation. Mail that no code foresaw costs its own call an
// answer of 500 and nothing more.
func (s *Server) answer(r *http.Request, op operation, box *Mailbox) (a reply) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("serve a call", zap.String("method", op.method), zap.String("id", op.id), zap.Any("panic", p), zap.Stack("stack"))
			a = renderError(r, newError(http.StatusInternalServerError, "global", "backendError",
				fmt.Sprintf("The fake broke on %s %q", op.method, op.id)))
		}
	}()
	if op.userID != "me" && mailboxKey(op.userID) != mailboxKey(box.email) {
		return renderError(r, delegationDenied(box.email))
	}
	answer, failure := op.serve(box, r.URL.Query())
	return render(r, answer, failure)
}

// size returns the raw bytes of a message; 0 where it has gone.
func (m *Mailbox) size(id string) int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if msg, ok := m.byID[id]; ok {
		return len(msg.raw)
	}
	return 0
}
