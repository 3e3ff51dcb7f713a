package google

import (
	"container/list"
	"context"
	"io"
	"sync"
)

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
	place *list.Element // in active; nil before the first take
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
	if t.place == nil {
		t.place = b.active.PushBack(t)
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
	if t.place == nil {
		return
	}
	b.active.Remove(t.place)
	b.used -= t.held
	t.place, t.held = nil, 0
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
	return b.used+n <= b.limit || t.place == b.active.Front()
}

// grant gives n bytes to t. The caller holds mu.
func (b *budget) grant(t *ticket, n int64) {
	t.held += n
	b.used += n
	b.peak = max(b.peak, b.used)
	b.metrics.bodyBytes.Set(float64(b.used))
}
