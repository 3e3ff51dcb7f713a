package quota

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// maxAnswer is how much of an answer is read to find out what it refuses.
const maxAnswer = 64 << 10

// answerBody is the body of an answer as it came. The trip ends when it was read
// to its end, failed, or was closed.
type answerBody struct {
	io.Reader
	io.Closer
	trip *trip
	stop func() bool // the trip does not end with its context any more
}

// receive looks at an answer, and lets its body end the trip.
func (f *trip) receive(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		f.judge(resp.StatusCode, resp.Header, nil)
		f.end()
		return
	}
	body := &answerBody{Reader: resp.Body, Closer: resp.Body, trip: f}
	switch {
	case refuses(resp.StatusCode):
		body.readRefusal(resp)
	case f.parts > 0 && resp.Header.Get("Content-Encoding") == "":
		date := resp.Header.Get("Date") // the parts' clock; they seldom say it themselves
		f.reader = newPartReader(resp.Header.Get("Content-Type"), func(status int, header http.Header, body []byte) {
			if header.Get("Date") == "" {
				header.Set("Date", date)
			}
			f.judge(status, header, body)
		})
	}
	body.stop = context.AfterFunc(f.ctx, f.end)
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
	b.trip.judge(resp.StatusCode, resp.Header, start)
	switch {
	case err != nil:
		b.Reader = io.MultiReader(bytes.NewReader(start), failing{err})
	case len(start) == maxAnswer:
		b.Reader = io.MultiReader(bytes.NewReader(start), b.Reader)
	default:
		b.Reader = bytes.NewReader(start)
		b.trip.got(start)
		b.trip.end()
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.trip.got(p[:n])
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
	b.trip.end()
}
