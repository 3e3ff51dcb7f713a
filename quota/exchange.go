package quota

import (
	"context"
	"net/http"
	"sync"
)

// An exchange is one request and its answer: the permit that it got, and what the
// limiter is to be told at its end.
type exchange struct {
	transport *Transport
	ctx       context.Context // of the request
	call      Call
	method    Method
	permit    Permit // nil: none
	done      func() // releases what watches the request; nil: nothing does yet

	ended  sync.Once
	mu     sync.Mutex
	answer Answer
	reader *partReader // of the answers of a batch's parts; nil: there are none to read
}

// acquire gets the request its permit.
func (x *exchange) acquire() error {
	t := x.transport
	start := t.now()
	permit, err := t.Limiter.Acquire(x.ctx, x.call)
	if err == nil {
		x.permit = permit
		tally(x.ctx, x.call.Cost)
	}
	if t.Observe != nil {
		t.Observe(Observation{Caller: x.call.Caller, Method: x.method, Cost: x.call.Cost, Waited: t.now().Sub(start), Err: err})
	}
	return err
}

// again gets the request another permit, in place of its own, because it is about to
// be sent once more.
func (x *exchange) again() error {
	x.release(Answer{})
	return x.acquire()
}

// release gives the permit back. Its error is nobody's to handle: the slot is free
// after some seconds all the same, and Google repeats what it refuses. The request's
// own context may have ended.
func (x *exchange) release(a Answer) {
	if x.permit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), releaseTimeout)
	defer cancel()
	_ = x.permit.Release(ctx, a)
}

// end reports to the limiter how the exchange went, once.
func (x *exchange) end() {
	x.ended.Do(func() {
		if x.done != nil {
			defer x.done()
		}
		x.mu.Lock()
		if x.reader != nil {
			x.reader.end()
		}
		a := x.answer
		x.mu.Unlock()
		x.release(a)
	})
}

// received counts a piece of the answer's body.
func (x *exchange) received(piece []byte) {
	x.permit.Touch()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer.Bytes += int64(len(piece))
	if x.reader != nil {
		x.reader.write(piece)
	}
}

// judge sorts an answer of Google's, or that of a part of a batch. x.mu must be held,
// unless nobody else has the answer's body yet.
func (x *exchange) judge(status int, header http.Header, body []byte) {
	r := Classify(status, header, body, x.transport.now(), x.transport.scale())
	if r.Scope != ScopeNone {
		x.answer.Refusals = append(x.answer.Refusals, r)
	}
}
