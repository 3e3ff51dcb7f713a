package quota

import (
	"cmp"
	"errors"
	"net/http"
	"time"
)

// Transport asks a [Limiter] for leave before it sends a request: for each page,
// each retry, each attempt, and for what net/http repeats by itself because a
// connection broke. It recognises the API method by the request's path, and charges a
// batch what its parts cost together. Whom it charges, and in which lane, comes from
// the request's context; see [WithCaller]. A request that does not fit is not sent,
// and the error is the limiter's (see [Limiter]); nor is a batch that cannot be priced
// ([ErrBatch]). Through Google's client such errors are found with [errors.As] and
// [errors.Is].
//
// A request keeps its permit until its answer's body was read to the end or closed,
// or its context has ended. A batch has one permit, however many parts it has.
//
// Transport reads Google's quota refusals, those of a batch's parts too, and reports
// them to the limiter. The caller gets the answer as it came. An answer that is still
// compressed, because the caller asked for that, is judged by its status.
//
// Transport is safe for concurrent use. Limiter is required.
type Transport struct {
	Base    http.RoundTripper // http.DefaultTransport if nil
	Limiter Limiter
	Prices  Prices // the Limiter if nil, which must then be one, as a [*Ledger] is

	// Scale makes quota time run so many times faster, as it does for the limiter;
	// 1 if zero.
	Scale int
	// Now is the local clock; [time.Now] if nil.
	Now func() time.Time

	// Observe, if set, is called with every request that was charged or refused. It
	// must be quick and safe for concurrent use.
	Observe func(Observation)
}

var (
	errNoLimiter = errors.New("quota: a Transport without a Limiter; nothing was sent")
	errNoPrices  = errors.New("quota: a Transport without Prices; nothing was sent")
)

// Observation is what a limiter answered to one request.
type Observation struct {
	Caller Caller
	Method Method // its ID is [MethodBatch] for a batch
	Cost   int64
	Waited time.Duration // for the limiter
	Err    error         // nil: charged and sent
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{transport: t, ctx: r.Context()}
	answered := false // then the end of the answer's body ends the exchange
	defer func() {
		if !answered {
			x.end()
		}
	}()
	p, err := t.price(r)
	if err == nil {
		x.call, x.method = p.call, p.method
		err = x.acquire()
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
	again := &repeats{charge: x.again}
	send, done := again.watch(p.send)
	x.done = done
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
	x.receive(resp)
	answered = true
	return resp, nil
}

// price finds whom a request is charged to, and what it costs.
func (t *Transport) price(r *http.Request) (priced, error) {
	none := priced{send: r}
	if t.Limiter == nil {
		return none, errNoLimiter
	}
	prices := t.Prices
	if prices == nil {
		if own, ok := t.Limiter.(Prices); ok {
			prices = own
		} else {
			return none, errNoPrices
		}
	}
	c, ok := CallerFrom(r.Context())
	if !ok {
		return none, ErrNoCaller
	}
	if err := c.Validate(); err != nil {
		return none, err
	}
	c.User = lower(c.User)
	return priceOf(prices, c, r)
}

func (t *Transport) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

func (t *Transport) scale() int { return cmp.Or(t.Scale, 1) }
