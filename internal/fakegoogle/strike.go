package fakegoogle

import (
	"net"
	"net/http"
	"time"
)

// longestHang bounds a fault's Hang.
const longestHang = time.Minute

// errorPage is what stands in front of Google answers when Google is away.
const errorPage = `<!DOCTYPE html>
<html lang=en>
  <meta charset=utf-8>
  <title>Error 502 (Server Error)!!1</title>
  <p><b>502.</b> <ins>That’s an error.</ins>
  <p>The server encountered a temporary error and could not complete your request.<p>Please try again in 30 seconds.
</html>
`

// applyFault does what a fault says, and reports whether the call is thereby
// over. release ends the call's time in flight; truth makes the true answer.
func (s *Server) applyFault(w http.ResponseWriter, r *http.Request, f Fault, release func(), truth func() reply) bool {
	s.wait(time.Duration(f.DelayMS)*time.Millisecond, r.Context().Done())
	switch {
	case f.Hang:
		s.wait(longestHang, r.Context().Done())
		release()
		reset(w)
	case f.Close:
		release()
		reset(w)
	case f.Truncate:
		a := truth()
		a.compress(r)
		release()
		a.writeHead(w)
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to cut an answer short
	case f.answers():
		a := faultReply(r, f)
		release()
		_ = a.send(w)
	default:
		return false
	}
	return true
}

// reset drops the connection so that the client sees a reset rather than an end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2, or no socket at all
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func faultReply(r *http.Request, f Fault) reply {
	var a reply
	switch {
	case f.HTML:
		a = reply{status: f.Status, contentType: "text/html; charset=UTF-8", body: []byte(errorPage)}
		if f.Body != "" {
			a.body = []byte(f.Body)
		}
		if a.status == 0 {
			a.status = http.StatusBadGateway
		}
	case f.Body != "":
		a = reply{status: f.Status, contentType: jsonType, body: []byte(f.Body)}
		if a.status == 0 {
			a.status = http.StatusOK
		}
	default:
		e, _ := faultError(f)
		a = renderError(r, e)
	}
	a.header = f.Headers
	return a
}

// faultError makes the envelope of a fault, and reports whether its reason is
// one the fake knows.
func faultError(f Fault) (*apiError, bool) {
	reason := f.Reason
	if reason == "" {
		reason = defaultReason(f.Status)
	}
	e, known := namedError(reason)
	if !known {
		e, known = refusalNamed(Refusal(reason), time.Duration(f.RetryAfterMS)*time.Millisecond)
	}
	if !known {
		e = newError(http.StatusInternalServerError, "global", reason, reason)
	}
	if f.Status != 0 && f.Status != e.Code {
		e.Code, e.Status = f.Status, statusName(f.Status)
	}
	if f.Message != "" {
		e.Message = f.Message
		e.Errors[0].Message = f.Message
	}
	return e, known
}

// refusalNamed makes a refusal of the meter without its being one.
func refusalNamed(name Refusal, ahead time.Duration) (*apiError, bool) {
	switch name {
	case RefusedUserUnits:
		return unitsError(true, 6_000, time.Time{}), true
	case RefusedProjectUnits:
		return unitsError(false, 1_200_000, time.Time{}), true
	case RefusedConcurrency:
		return tooManyConcurrent(), true
	case RefusedBytes:
		return retryAfterError(time.Now().Add(ahead)), true
	}
	return nil, false
}
