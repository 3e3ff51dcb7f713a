package quota

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// maxAnswer is how much of an answer is read to find out what it refuses.
const maxAnswer = 64 << 10

// answerBody is the body of an answer as it came. The exchange ends when it was read
// to its end, failed, or was closed.
type answerBody struct {
	io.Reader
	io.Closer
	exchange *exchange
	stop     func() bool // the exchange no longer ends with its context
}

// receive looks at an answer, and lets its body end the exchange.
func (x *exchange) receive(resp *http.Response) {
	x.answer.At = x.transport.now()
	if resp.Body == nil || resp.Body == http.NoBody {
		x.judge(resp.StatusCode, resp.Header, nil)
		x.end()
		return
	}
	body := &answerBody{Reader: resp.Body, Closer: resp.Body, exchange: x}
	switch {
	case refuses(resp.StatusCode):
		body.readRefusal(resp)
	case x.call.Weight > 0 && resp.Header.Get("Content-Encoding") == "":
		date := resp.Header.Get("Date") // the parts' clock; they seldom say it themselves
		x.reader = newPartReader(resp.Header.Get("Content-Type"), func(status int, header http.Header, body []byte) {
			if header.Get("Date") == "" {
				header.Set("Date", date)
			}
			x.judge(status, header, body)
		})
	}
	body.stop = context.AfterFunc(x.ctx, x.end)
	resp.Body = body
}

// refuses reports whether an answer with the status may be about quota.
func refuses(status int) bool {
	return status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// readRefusal reads what a refusal says and puts it back. When that was all of it,
// the call is over.
func (b *answerBody) readRefusal(resp *http.Response) {
	start, err := io.ReadAll(io.LimitReader(b.Reader, maxAnswer))
	b.exchange.judge(resp.StatusCode, resp.Header, start)
	switch {
	case err != nil:
		b.Reader = io.MultiReader(bytes.NewReader(start), failing{err})
	case len(start) == maxAnswer:
		b.Reader = io.MultiReader(bytes.NewReader(start), b.Reader)
	default:
		b.Reader = bytes.NewReader(start)
		b.exchange.received(start)
		b.exchange.end()
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.exchange.received(p[:n])
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements [io.Closer].
func (b *answerBody) Close() error {
	defer b.end()
	return b.Closer.Close()
}

func (b *answerBody) end() {
	b.stop()
	b.exchange.end()
}
