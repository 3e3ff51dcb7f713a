package google

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
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
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errSlow) {
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

// DefaultBudget is the default bound on message bodies in memory, in bytes.
const DefaultBudget = 256 << 20

// A budget bounds the bytes of message bodies that the process holds. Each
// fetch has a ticket, which takes bytes as its body comes in and gives all of
// them back at the end.
//
// A ticket waits if the budget has no room, except for the oldest active ticket: it
// may exceed the budget, so fetches cannot deadlock on it. At most the limit plus one
// message is held, because all tickets but the oldest were given room within the limit,
// and the oldest ticket stays the oldest until its end.
type budget struct {
	limit   int64
	metrics *metrics

	mu      sync.Mutex
	used    int64
	peak    int64
	waiting int
	active  list.List // of *ticket that have taken or want bytes, oldest first
}

func newBudget(limit int64, m *metrics) *budget { return &budget{limit: limit, metrics: m} }

// A ticket is one fetch's share of the budget. It is used by one goroutine at a
// time. The zero value of all but budget is a ticket that has taken nothing.
type ticket struct {
	budget *budget
	raw    io.Writer // receives the message as it arrives; nil: discarded
	whole  bool      // the whole body is held, not only its first heldMost bytes
	field  string    // of the answer that holds it
	most   int64     // bytes of a body; a longer one is an error

	// Guarded by budget.mu.
	turn  *list.Element // in active; nil before the first take
	held  int64
	want  int64         // > 0 while waiting
	ready chan struct{} // closed when want was granted
}

type ticketKey struct{}

// withTicket returns a context whose response bodies are taken from b, and whose
// message goes to raw unless that is nil. The caller must release the ticket once it no
// longer holds the body's bytes.
func (b *budget) withTicket(ctx context.Context, raw io.Writer) (context.Context, *ticket) {
	t := &ticket{budget: b, raw: raw, field: "raw", most: maxMessageBody}
	return context.WithValue(ctx, ticketKey{}, t), t
}

func ticketFrom(ctx context.Context) *ticket {
	t, _ := ctx.Value(ticketKey{}).(*ticket)
	return t
}

// take waits for n more bytes, or until ctx ends.
func (t *ticket) take(ctx context.Context, n int64) error {
	b := t.budget
	b.mu.Lock()
	if t.turn == nil {
		t.turn = b.active.PushBack(t)
	}
	if b.admits(t, n) {
		b.grant(t, n)
		b.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	t.want, t.ready = n, ready
	b.waiting++
	b.mu.Unlock()
	b.metrics.bodyWaits.Inc()

	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.want > 0 { // not granted in the same instant
		t.want = 0
		b.waiting--
	}
	return context.Cause(ctx)
}

// release gives all bytes back and grants them to others. The ticket may be used
// again.
func (t *ticket) release() {
	b := t.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.turn == nil {
		return
	}
	b.active.Remove(t.turn)
	b.used -= t.held
	t.turn, t.held = nil, 0
	b.metrics.bodyBytes.Set(float64(b.used))
	for e := b.active.Front(); e != nil && b.waiting > 0; e = e.Next() {
		next := e.Value.(*ticket)
		if next.want > 0 && b.admits(next, next.want) {
			b.grant(next, next.want)
			next.want = 0
			b.waiting--
			close(next.ready)
		}
	}
}

// admits reports whether t may take n bytes now. The caller holds mu.
func (b *budget) admits(t *ticket, n int64) bool {
	return b.used+n <= b.limit || t.turn == b.active.Front()
}

// grant gives n bytes to t. The caller holds mu.
func (b *budget) grant(t *ticket, n int64) {
	t.held += n
	b.used += n
	b.peak = max(b.peak, b.used)
	b.metrics.bodyBytes.Set(float64(b.used))
}
