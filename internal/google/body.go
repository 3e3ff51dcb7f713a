package google

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"headroom/jobs"
)

// Bounds on what is read from Google, in bytes on the wire after decompression.
const (
	maxMessageBody = 256 << 20 // a message in base64; Gmail's largest take about a quarter
	maxWholeBody   = 64 << 20  // a message or a thread in format full, without attachments
	maxOtherBody   = 16 << 20  // a page of 500 ids takes 50 KiB
	maxErrorBody   = 1 << 20   // what goes beyond is cut off, not an error

	firstStep = 64 << 10 // most messages end within it
	nextStep  = 1 << 20

	// heldPerByte is the most memory, in bytes, that a byte of a fetch's body takes:
	// in buffers on its way to the disk, and in what the parser sees of the message.
	// Bytes of the body beyond heldMost pass through and take none.
	heldPerByte = 3
	heldMost    = 3 << 19
)

const (
	// patience is how long a body may make no progress.
	patience = 20 * time.Second
	// anySpeed is how long a body may arrive at any speed; after that its mean speed
	// must be at least [jobs.LeastSpeed].
	anySpeed = 2 * time.Minute
)

var (
	errTooLarge = errors.New("the answer is larger than any message of Gmail's")
	errSlow     = errors.New("the answer stands still, or comes too slowly")
)

// bodyMeter is the innermost transport. It bounds the size of answers' bodies and how
// slowly they may arrive, takes the bytes of fetches from the budget before it reads
// them, and extracts the messages in them.
type bodyMeter struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (m bodyMeter) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := m.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = newPacedBody(ctx, cancel, resp.Body)
	t := ticketFrom(r.Context())
	switch {
	case resp.StatusCode >= 300:
		resp.Body = &cutBody{Reader: io.LimitReader(resp.Body, maxErrorBody), Closer: resp.Body}
	case t != nil:
		resp.Body = &meteredBody{ReadCloser: resp.Body, ctx: r.Context(), ticket: t,
			length: resp.ContentLength, limit: t.most}
		if t.raw != nil && resp.StatusCode == http.StatusOK {
			resp.Body = &tappedBody{rawTap: newTap(t.field, resp.Body, t.raw), Closer: resp.Body}
			resp.ContentLength = -1
		}
	default:
		resp.Body = &meteredBody{ReadCloser: resp.Body, length: resp.ContentLength, limit: maxOtherBody}
	}
	return resp, nil
}

type cutBody struct {
	io.Reader
	io.Closer
}

type tappedBody struct {
	*rawTap
	io.Closer
}

// pacedBody ends a body that arrives too slowly. Only the time spent in Read counts.
type pacedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	still  *time.Timer
	spent  time.Duration
	read   int64
}

func newPacedBody(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) *pacedBody {
	still := time.AfterFunc(patience, func() { cancel(errSlow) })
	still.Stop()
	return &pacedBody{ReadCloser: body, ctx: ctx, cancel: cancel, still: still}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.still.Reset(patience)
	start := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.still.Stop()
	b.spent += time.Since(start)
	b.read += int64(n)
	if err == nil && b.spent > anySpeed && float64(b.read) < jobs.LeastSpeed*b.spent.Seconds() {
		b.cancel(errSlow)
		err = errSlow
	}
	if err != nil && err != io.EOF && context.Cause(b.ctx) == errSlow {
		err = errSlow
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.still.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// meteredBody reads a body no further than its ticket has taken bytes for: all of it
// at once if the length is known, otherwise step by step. Without a ticket it only
// bounds the body.
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

// ensure takes more bytes when all that were taken have been read, until the rest of
// the body takes no more memory.
func (b *meteredBody) ensure() error {
	if b.read < b.taken {
		return nil
	}
	if b.taken >= heldMost && !b.ticket.whole {
		b.taken = b.limit
		return nil
	}
	step := int64(nextStep)
	switch {
	case b.length > 0:
		step = b.length
	case b.taken == 0:
		step = firstStep
	}
	if !b.ticket.whole {
		step = min(step, heldMost-b.taken)
	}
	if err := b.ticket.take(b.ctx, heldPerByte*step); err != nil {
		return err
	}
	b.taken += step
	return nil
}
