package quota

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed flight.lua
var flightSource string

var flightScript = newScript(flightSource)

// LimitInFlight is the limit of the calls that a Google user has in flight.
const LimitInFlight = "user-in-flight"

const (
	// placeLife is how long a place counts that nobody renews: a process that dies
	// frees its places within that time.
	placeLife = 10 * time.Second
	// minRetry and maxRetry bound when a call that found no place should ask again:
	// nobody knows when one is free.
	minRetry = 100 * time.Millisecond
	maxRetry = 250 * time.Millisecond
)

// A Departure is a place among the calls that a Google user has in flight. It is
// safe for concurrent use.
type Departure struct {
	ledger *Ledger
	book   *book
	caller Caller
	name   string       // of the place
	at     time.Time    // on the clock of Redis
	count  int64        // calls in flight, this one included
	active atomic.Int64 // when the call last showed life, by the local clock, in ns
	landed sync.Once

	renewed time.Time // on the local clock; guarded by flights.mu
}

// Depart takes a place among the calls that the caller's user has in flight, over
// all processes and lanes. It asks once and does not wait. Whoever gets a place
// must [Departure.Land]; a place that was forgotten is free after five minutes,
// and ten seconds after its process died.
//
// When as many are in flight as the lane may add to, or as Google allows as far as
// that was learned, the error is a [*DeniedError] about [LimitInFlight]; when the
// user has used its bytes of the day, one about [LimitUserBytes]; when Redis did
// not answer, [ErrUnavailable].
func (l *Ledger) Depart(ctx context.Context, c Caller, api string) (*Departure, error) {
	d, err := l.depart(ctx, c, api)
	l.noPlace(c, api, err)
	return d, err
}

// noPlace takes note of a call that got no place.
func (l *Ledger) noPlace(c Caller, api string, err error) {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		l.metrics.denied(c, denied.Limit, denied.Bound)
		l.journal.decided(c, api, 0, Decision{}, err)
	}
}

// depart is Depart for calls that ask again: a refusal is not the last word.
func (l *Ledger) depart(ctx context.Context, c Caller, api string) (*Departure, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		d := &Departure{ledger: l, book: b, caller: c, name: l.flights.newName()}
		p := b.rules.Load().plan(c.User, c.Lane)
		reply, err := d.ask(ctx, p)
		if err != nil {
			return nil, err
		}
		if reply[0] == 1 {
			return d, nil
		}
		// Without a place nobody asks for units, so this is where a process that is
		// refused learns of other settings.
		if revision := uint32(reply[5]); revision == p.revision || try == maxRevisions {
			return nil, deniedPlace(c, reply)
		} else if err := l.catchUp(ctx, b, revision); err != nil {
			return nil, err
		}
	}
}

// ask asks for a place once, and returns flight.lua's reply.
func (d *Departure) ask(ctx context.Context, p *plan) ([]int64, error) {
	l, rules, user := d.ledger, d.book.rules.Load(), d.caller.User
	// As many learned would bind no lane: the background leaves one of them.
	free := max(rules.plan(user, Interactive).flight, rules.plan(user, Sync).flight+1, rules.plan(user, Backfill).flight+1)
	background := 1
	if d.caller.Lane == Interactive {
		background = 0
	}
	asked := time.Now()
	var reply []int64
	err := l.reach(ctx, d.book, d.caller, func(ctx context.Context) (err error) {
		reply, err = l.flight(ctx, p, user, "depart", d.name, p.flight, free, background, p.bytes)
		return err
	})
	switch n := len(reply); {
	case err != nil:
		return nil, err
	case n == 4 && reply[0] == 1:
		d.at, d.count, d.renewed = time.UnixMicro(reply[1]), reply[2], asked
		d.active.Store(asked.UnixNano())
		l.flights.add(l, d)
	case n != 6 || reply[0] > 0:
		return nil, fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, n)
	}
	return reply, nil
}

// flight runs flight.lua.
func (l *Ledger) flight(ctx context.Context, p *plan, user, op string, args ...any) ([]int64, error) {
	var now int64
	if l.now != nil {
		now = l.now().UnixMicro()
	}
	all := append([]any{op, now, time.Hour.Microseconds() / int64(l.scale), placeLife.Microseconds()}, args...)
	reply, err := l.eval(ctx, flightScript, p.flightKeys(user), all...)
	if err != nil {
		return nil, unavailable(err)
	}
	return reply, nil
}

// flightKeys names what flight.lua touches. They are no part of the windows' shape:
// processes that count in other windows share the places.
func (p *plan) flightKeys(user string) []string {
	user = lower(user)
	return []string{p.base + "places:" + user, p.base + "flight:" + user, p.base + "settings"}
}

// deniedPlace makes an error of a refusal of flight.lua's.
func deniedPlace(c Caller, reply []int64) *DeniedError {
	e := &DeniedError{Caller: c, Limit: LimitInFlight, Bound: BoundInFlight, Used: reply[2], Ceiling: reply[3]}
	if reply[0] < 0 {
		e.Limit, e.Bound = LimitUserBytes, BoundCeiling
		e.RetryAfter = time.Duration(reply[4]) * time.Microsecond
	} else {
		e.RetryAfter = minRetry + rand.N(maxRetry-minRetry)
	}
	e.At = time.UnixMicro(reply[1]).Add(e.RetryAfter)
	return e
}

// Land gives the place back, and says how many bytes the call brought and what
// Google answered. Bytes count for the user's day; a refusal with
// [ScopeConcurrency] lowers how many calls of the user may be in flight, once for
// all calls that were on their way together. Only the first call of Land counts.
// When Redis does not answer, the place is free after ten seconds all the same.
func (d *Departure) Land(ctx context.Context, bytes int64, r Refusal) error {
	return d.land(ctx, bytes, r, 1)
}

// land is Land for a departure that was a number of calls to Google.
func (d *Departure) land(ctx context.Context, bytes int64, r Refusal, calls int64) (err error) {
	d.landed.Do(func() {
		l := d.ledger
		l.flights.remove(d)
		defer l.flights.wake(d)
		if err = d.book.breaker.broken(); err != nil {
			return // while Redis does not answer, nobody is held up here
		}
		if r.Scope != ScopeConcurrency {
			calls = 0
		}
		p := d.book.rules.Load().plan(d.caller.User, d.caller.Lane)
		var reply []int64
		reply, err = l.flight(ctx, p, d.caller.User, "land", d.name, bytes, calls, d.at.UnixMicro(), d.count)
		if err != nil {
			err = fmt.Errorf("give back a place in flight: %w", err)
			return
		}
		l.metrics.bytes.WithLabelValues(string(d.caller.Lane)).Add(float64(bytes))
		if len(reply) == 1 && reply[0] == 1 {
			l.metrics.lowered.WithLabelValues(d.book.list.API).Inc()
		}
	})
	return err
}

// FlightState is what is known of the calls that a Google user has in flight, and
// of its bytes.
type FlightState struct {
	InFlight int64 `json:"in_flight"` // now, over all processes
	// Learned is how many Google allows as far as refusals tell; 0: none was refused
	// lately. The background may use one less.
	Learned int64 `json:"learned,omitempty"`
	// CalmUntil is when a call may try one more than Learned; zero if nothing was
	// learned.
	CalmUntil time.Time `json:"calm_until,omitzero"`
	// Bytes of answers in the last day, as the calls' bodies delivered them: after
	// decompression, so Google may count fewer.
	Bytes int64 `json:"bytes"`
}

// InFlight reports what is known of a user's calls in flight, and changes nothing.
func (l *Ledger) InFlight(ctx context.Context, project, user, api string) (FlightState, error) {
	p, err := l.plan(Caller{Project: project, User: user, Lane: Interactive}, api)
	if err == nil {
		err = checkUser(user)
	}
	if err != nil {
		return FlightState{}, err
	}
	reply, err := l.flight(ctx, p, user, "look")
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, len(reply))
	}
	if err != nil {
		return FlightState{}, fmt.Errorf("look at calls in flight: %w", err)
	}
	s := FlightState{InFlight: reply[0], Learned: reply[1], Bytes: reply[3]}
	if reply[2] > 0 {
		s.CalmUntil = time.UnixMicro(reply[2])
	}
	return s, nil
}
