package google

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// Bounds on what is read from Google, in bytes on the wire after decompression.
const (
	maxMessageBody = 256 << 20 // a message in base64; Gmail's largest take about a quarter
	maxOtherBody   = 16 << 20  // a page of 500 ids takes 50 KiB
	maxErrorBody   = 1 << 20   // what goes beyond is cut off, not an error

	firstStep = 64 << 10 // most messages end within it
	nextStep  = 1 << 20

	// heldPerByte is how many bytes of memory a byte of a body takes at worst:
	// the decoder's buffer with its slack, the field's string, the raw message.
	heldPerByte = 3
)

var errTooLarge = errors.New("the answer is larger than any message of Gmail's")

// bodyMeter is the transport under all others: it bounds the bodies of answers,
// and takes those of fetches out of the budget before they are read.
type bodyMeter struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (m bodyMeter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	t := ticketFrom(r.Context())
	switch {
	case resp.StatusCode >= 300:
		resp.Body = &cutBody{Reader: io.LimitReader(resp.Body, maxErrorBody), Closer: resp.Body}
	case t != nil:
		resp.Body = &meteredBody{ReadCloser: resp.Body, ctx: r.Context(), ticket: t,
			length: resp.ContentLength, limit: maxMessageBody}
	default:
		resp.Body = &meteredBody{ReadCloser: resp.Body, length: resp.ContentLength, limit: maxOtherBody}
	}
	return resp, nil
}

type cutBody struct {
	io.Reader
	io.Closer
}

// meteredBody reads a body no further than its ticket has taken bytes for: all
// of it at once when the length is known, else step by step. Without a ticket
// it only bounds the body.
type meteredBody struct {
	io.ReadCloser
	ctx    context.Context // of the request, whose end also ends the body
	ticket *ticket
	length int64 // -1: unknown, as with every compressed answer
	limit  int64
	read   int64
	taken  int64 // bytes of the body that were taken from the budget
}

func (b *meteredBody) Read(p []byte) (int, error) {
	if b.read >= b.limit || b.length > b.limit {
		return 0, errTooLarge
	}
	most := b.limit - b.read
	if b.ticket != nil && (b.length < 0 || b.read < b.length) {
		if err := b.ensure(); err != nil {
			return 0, err
		}
		most = b.taken - b.read
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), most)])
	b.read += int64(n)
	return n, err
}

// ensure takes more bytes when all that were taken have been read.
func (b *meteredBody) ensure() error {
	if b.read < b.taken {
		return nil
	}
	step := int64(nextStep)
	switch {
	case b.length > 0:
		step = b.length
	case b.taken == 0:
		step = firstStep
	}
	if err := b.ticket.take(b.ctx, heldPerByte*step); err != nil {
		return err
	}
	b.taken += step
	return nil
}
