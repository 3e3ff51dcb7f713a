package quota

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Transport charges every request to the ledger before it sends it: each page,
// each retry, each attempt. It recognises the API method by the request's path,
// and charges a batch what its parts cost together; for whom and in which lane
// comes from the request's context, see [WithCaller]. A request that does not fit
// is not sent, and the error is the ledger's (see [Ledger.Take]); nor is a batch
// that cannot be priced ([ErrBatch]). Through Google's client such errors are
// found with [errors.As] and [errors.Is].
//
// Transport is safe for concurrent use. Ledger is required.
type Transport struct {
	Base   http.RoundTripper // http.DefaultTransport if nil
	Ledger *Ledger

	// Observe, if set, is told of every request that was charged or refused. It
	// must be quick and safe for concurrent use.
	Observe func(Observation)

	// LeaseUnits, if set, lets calls that may wait ([Caller.MaxWait]) share leases
	// of up to so many units: the first in line asks for more than it needs, and
	// those behind it spend from that for a second. What is left goes back.
	LeaseUnits int64

	queue queue
}

// Observation is what became of one request at the ledger.
type Observation struct {
	Caller Caller
	Call   Call
	Cost   int64
	Waited time.Duration // in place, including the ledger's own answers
	Err    error         // nil: charged and sent
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	send, err := t.charge(r)
	if (err != nil || send != r) && r.Body != nil {
		r.Body.Close() // a RoundTripper closes the body, also on errors
	}
	if err != nil {
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(send)
}

// charge charges a request and returns the one to send in its place.
func (t *Transport) charge(r *http.Request) (*http.Request, error) {
	ctx := r.Context()
	c, ok := CallerFrom(ctx)
	if !ok {
		return r, ErrNoCaller
	}
	send, call, cost, err := t.Ledger.price(c.Project, r)
	if err != nil {
		return r, err
	}
	start := time.Now()
	if c.MaxWait > 0 {
		err = t.takeInLine(ctx, c, call.API, cost)
	} else {
		_, err = t.Ledger.Take(ctx, c, call.API, cost)
	}
	waited := time.Since(start)
	t.Ledger.metrics.waits.WithLabelValues(string(c.Lane)).Observe(waited.Seconds())
	if t.Observe != nil {
		t.Observe(Observation{Caller: c, Call: call, Cost: cost, Waited: waited, Err: err})
	}
	return send, err
}

// takeInLine waits in place for up to c.MaxWait. All calls of one account and
// lane stand in one line, so that a hundred waiting calls ask the ledger no more
// often than one. When the first in line must wait longer than it may, those
// behind it that ask for as much are told the same from the ledger's memory.
func (t *Transport) takeInLine(ctx context.Context, c Caller, api string, cost int64) error {
	line, err := t.queue.enter(ctx, lineKey{c.Project, c.User, api, c.Lane})
	if err != nil {
		return err
	}
	defer t.queue.leave(line)
	deadline := time.Now().Add(c.MaxWait)
	for {
		err := t.takeFirst(ctx, line, c, api, cost)
		var denied *DeniedError
		if !errors.As(err, &denied) {
			return err
		}
		if time.Now().Add(denied.RetryAfter).After(deadline) {
			return denied
		}
		if err := sleep(ctx, denied.RetryAfter); err != nil {
			return err
		}
	}
}

// takeFirst takes units for the first in line, from the line's lease if there is
// one that has enough.
func (t *Transport) takeFirst(ctx context.Context, line *line, c Caller, api string, cost int64) error {
	if t.LeaseUnits <= cost {
		_, err := t.Ledger.Take(ctx, c, api, cost)
		return err
	}
	if line.lease != nil {
		if line.lease.Spend(cost) {
			return nil
		}
		old := line.lease
		line.lease = nil
		if err := old.Return(ctx); err != nil {
			return err
		}
	}
	var err error
	line.lease, err = t.Ledger.Lease(ctx, c, api, cost, t.LeaseUnits)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
