package quota

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// A repeats charges what net/http sends again by itself. It repeats requests whose
// connection broke before an answer came: over HTTP/1.1 those without a body, or
// with one that can be read again, on a connection that was used before; over
// HTTP/2 those of streams that the server refused or left behind. Google may have
// counted each of them. So a request that was written once goes through the ledger
// again before it is written once more; what does not fit then is not written.
type repeats struct {
	charge  func() error // for one more
	safe    bool         // HTTP/1.1 repeats it even after some of it was written
	shared  bool         // the connection was one of HTTP/2
	written atomic.Bool  // since the last charge; the connection's own goroutine sets it
	cancel  context.CancelCauseFunc
	refused error // why a repeat was not written; only the goroutine of RoundTrip uses it
}

// watch returns the request with which r's repeats are seen. What is spent on it
// ends with end.
func (p *repeats) watch(r *http.Request) (watched *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	p.cancel, p.safe = cancel, repeatable(r)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      p.gotConn,
		WroteHeaders: func() { p.written.Store(true) },
	})
	return r.WithContext(ctx), func() { cancel(nil) }
}

// gotConn is called by the goroutine of RoundTrip, before each time that the request
// is written.
func (p *repeats) gotConn(info httptrace.GotConnInfo) {
	// Headers count as written when they are in the buffer. Of a request that is not
	// safe to repeat, nothing has left it when HTTP/1.1 goes on to another connection.
	again := p.written.Swap(false) && (p.safe || p.shared)
	p.shared = isHTTP2(info)
	if !again || p.refused != nil {
		return
	}
	err := p.charge()
	if err == nil {
		return
	}
	p.refused = fmt.Errorf("the connection broke before the answer came, and the repeat was not sent: %w", err)
	p.cancel(p.refused)
	if !p.shared {
		// HTTP/2 looks at the context before it writes. HTTP/1.1 does not, but it cannot
		// write on a connection that is closed, and nobody else has this one.
		info.Conn.Close()
	}
}

// isHTTP2 reports whether other requests may share the connection. HTTP/2 without
// TLS, which Google does not speak, is taken for HTTP/1.1.
func isHTTP2(info httptrace.GotConnInfo) bool {
	secure, ok := info.Conn.(interface{ ConnectionState() tls.ConnectionState })
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}

// repeatable reports whether net/http takes a request for one that may be sent twice.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
