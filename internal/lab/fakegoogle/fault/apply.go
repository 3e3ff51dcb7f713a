package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// longestHang bounds a fault's Hang.
const longestHang = time.Minute

// errorPage is what something in front of Google answers in its place.
func errorPage(status int) []byte {
	return fmt.Appendf(nil, `<!DOCTYPE html>
<html lang=en>
  <meta charset=utf-8>
  <title>Error %[1]d (%[2]s)!!1</title>
  <p><b>%[1]d.</b> <ins>That’s an error.</ins>
  <p>The server encountered a temporary error and could not complete your request.<p>Please try again in 30 seconds.
</html>
`, status, cmp.Or(errorTitles[status], http.StatusText(status)))
}

// errorTitles are Google's where they differ from those of the protocol.
var errorTitles = map[int]string{http.StatusBadGateway: "Server Error", http.StatusInternalServerError: "Server Error"}

// Apply applies the fault to a call, and reports whether the call is then over. done ends the call's time in flight and notes the status of its answer,
// unless that is 0; truth makes the true answer.
func (f Fault) Apply(life context.Context, w http.ResponseWriter, r *http.Request, done func(status int), truth func() wire.Reply) bool {
	wire.Pause(life, time.Duration(f.DelayMS)*time.Millisecond, r.Context().Done())
	switch {
	case f.Hang:
		wire.Pause(life, longestHang, r.Context().Done())
		done(0)
		Reset(w)
	case f.Close:
		done(0)
		Reset(w)
	case f.Truncate:
		a := truth()
		if a.Stream == nil { // only what has a length has a half
			a.Compress(r)
		}
		done(a.Status)
		a.WriteHead(w)
		_ = a.WriteBody(&cutWriter{w: w, left: a.Length() / 2})
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to cut an answer short
	case f.answers():
		a := faultReply(r, f)
		done(a.Status)
		_ = a.Send(w)
	default:
		return false
	}
	return true
}

// errCut is what a [cutWriter] answers once it is full.
var errCut = errors.New("cut as the fault asks")

// A cutWriter passes on the first bytes only.
type cutWriter struct {
	w    io.Writer
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p[:min(len(p), c.left)])
	c.left -= n
	if err == nil && n < len(p) {
		err = errCut
	}
	return n, err
}

// Reset drops the connection so that the client sees a reset rather than an end.
func Reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2, or no socket at all
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
