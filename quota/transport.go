package quota

import (
	"errors"
	"net/http"
	"time"
)

// Transport charges every request to the ledger before it sends it: each page,
// each retry, each attempt, and what net/http repeats by itself because a connection
// broke. It recognises the API method by the request's path,
// and charges a batch what its parts cost together; for whom and in which lane
// comes from the request's context, see [WithCaller]. A request that does not fit
// is not sent, and the error is the ledger's (see [Ledger.Take]); nor is a batch
// that cannot be priced ([ErrBatch]). Through Google's client such errors are
// found with [errors.As] and [errors.Is].
//
// A request has a place among those that its user has in flight ([Ledger.Depart])
// until its answer's body was read to the end or closed, or its context has ended.
// A batch has one, however many parts it has. An interactive request needs none
// while Redis does not answer.
//
// Transport reads Google's quota refusals, those of a batch's parts too, and tells
// the ledger of them. The answer reaches the caller as it came. An answer that is
// still compressed, because the caller asked for it so, is judged by its status.
//
// Transport is safe for concurrent use. Ledger is required.
type Transport struct {
	Base   http.RoundTripper // http.DefaultTransport if nil
	Ledger *Ledger

	// Observe, if set, is told of every request that was charged or refused. It
	// must be quick and safe for concurrent use.
	Observe func(Observation)

	queue queue
}

var errNoLedger = errors.New("quota: a Transport without a Ledger; nothing was sent")

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
	f := &trip{ledger: t.Ledger, ctx: r.Context()}
	answered := false // then the answer's body gives the place back
	defer func() {
		if !answered {
			f.end()
		}
	}()
	p, err := t.price(r, f)
	if err == nil {
		err = t.charge(f, p)
	}
	if (err != nil || p.send != r) && r.Body != nil {
		r.Body.Close() // a RoundTripper closes the body, also on errors
	}
	if err != nil {
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	again := &repeats{charge: func() error { return t.charge(f, p) }}
	send, end := again.watch(p.send)
	f.done = end
	resp, err := base.RoundTrip(send)
	if again.refused != nil {
		err = again.refused
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	f.receive(resp)
	answered = true
	return resp, nil
}

// price finds what a request costs its caller.
func (t *Transport) price(r *http.Request, f *trip) (priced, error) {
	if t.Ledger == nil {
		return priced{send: r}, errNoLedger
	}
	c, ok := CallerFrom(f.ctx)
	if !ok {
		return priced{send: r}, ErrNoCaller
	}
	if err := c.Validate(); err != nil {
		return priced{send: r}, err
	}
	c.User = lower(c.User)
	p, err := t.Ledger.price(c.Project, r)
	if err == nil {
		f.features = p.features
		f.charge, f.parts = Charge{Caller: c, API: p.call.API, Units: p.cost}, p.parts
	}
	return p, err
}

// charge gets a request its place, if it has none, and its units: once for each time
// that it is written. What it got is in f, also when it then fails.
func (t *Transport) charge(f *trip, p priced) (err error) {
	c := f.charge.Caller
	f.charge.Units = p.cost
	start := time.Now()
	switch err = t.Ledger.open(f.ctx, c, p.call.API, p.cost, p.features); {
	case err != nil:
	case c.MaxWait > 0:
		err = t.admitInLine(f)
	default:
		err = t.admitNow(f)
	}
	waited := time.Since(start)
	if err == nil {
		tally(f.ctx, p.cost)
	}
	t.Ledger.metrics.waits.WithLabelValues(string(c.Lane)).Observe(waited.Seconds())
	if t.Observe != nil {
		t.Observe(Observation{Caller: c, Call: p.call, Cost: p.cost, Waited: waited, Err: err})
	}
	return err
}
