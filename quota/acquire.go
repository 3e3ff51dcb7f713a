package quota

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// A call that waits for an in-flight slot asks again after minPoll to maxPoll, and
	// at once when its own process released one.
	minPoll = 50 * time.Millisecond
	maxPoll = 100 * time.Millisecond
	// keepSlot is how long a call keeps its slot while it waits for units.
	keepSlot = time.Second
	// interactivePatience is how long interactive calls wait for a slot although they
	// may not wait for units: one is free as soon as another call of the user ends.
	interactivePatience = 2 * time.Second
	// releaseTimeout bounds how long a report to the ledger holds up its caller.
	releaseTimeout = time.Second
)

// A permit is what a call got from the ledger. While Acquire waits, it may have no
// slot yet.
type permit struct {
	ledger   *Ledger
	call     Call
	slot     *Departure // nil: none
	decision Decision
	released sync.Once
}

var _ Limiter = (*Ledger)(nil)

// Acquire implements [Limiter]. Interactive calls need no slot while Redis does not
// answer, if their units are granted.
//
// All calls of one account and lane that may wait stand in one line, so that a
// hundred waiting calls ask the ledger no more often than one. When the first in
// line must wait longer than it may, those behind it that ask for as much get the
// same answer.
func (l *Ledger) Acquire(ctx context.Context, c Call) (Permit, error) {
	b, err := l.book(c.Caller.Project, c.API)
	if err != nil {
		return nil, err
	}
	if err := c.Caller.Validate(); err != nil {
		return nil, err
	}
	c.Caller.User = lower(c.Caller.User)
	p := &permit{ledger: l, call: c}
	start := time.Now()
	switch err = l.open(ctx, c.Caller, c.API, c.Cost, c.Features); {
	case err != nil:
	case c.Caller.MaxWait > 0:
		err = p.inLine(ctx, b)
	default:
		err = p.atOnce(ctx, b)
	}
	l.metrics.waits.WithLabelValues(string(c.Caller.Lane)).Observe(time.Since(start).Seconds())
	if err != nil {
		p.releaseSlot(ctx)
		return nil, err
	}
	return p, nil
}

// atOnce asks for a slot, and once for units.
func (p *permit) atOnce(ctx context.Context, b *book) error {
	now := time.Now()
	deadline := now
	if p.call.Caller.Lane == Interactive {
		deadline = now.Add(interactivePatience)
	}
	if err := p.waitForSlot(ctx, b, new(line), now, deadline); err != nil {
		return err
	}
	return p.take(ctx)
}

// inLine waits in line for up to the caller's MaxWait, first for a slot and then for
// units.
func (p *permit) inLine(ctx context.Context, b *book) error {
	c, entered := p.call.Caller, time.Now()
	line, err := p.ledger.queue.enter(ctx, lineKey{c.Project, c.User, p.call.API, c.Lane})
	if err != nil {
		return err
	}
	defer p.ledger.queue.leave(line)
	deadline := time.Now().Add(c.MaxWait)
	for {
		if err := p.waitForSlot(ctx, b, line, entered, deadline); err != nil {
			return err
		}
		err := p.take(ctx)
		denied, ok := errors.AsType[*DeniedError](err)
		if !ok {
			return err
		}
		if time.Now().Add(denied.RetryAfter).After(deadline) {
			return denied
		}
		if denied.RetryAfter > keepSlot {
			p.releaseSlot(ctx) // to somebody who can use it meanwhile
		}
		if err := sleep(ctx, denied.RetryAfter, nil); err != nil {
			return err
		}
	}
}

// waitForSlot waits for a slot until the deadline, if there is none yet. A call that
// stood behind one that waited in vain has waited as long, and asks once.
func (p *permit) waitForSlot(ctx context.Context, b *book, line *line, entered, deadline time.Time) (err error) {
	if p.slot != nil {
		return nil
	}
	l, c := p.ledger, p.call.Caller
	defer func() { l.noPlace(c, p.call.API, err) }()
	if entered.Before(line.stuck) {
		deadline = time.Time{}
	}
	freed, done := l.flights.wait(flightUser{b, c.User})
	defer done()
	for {
		wake := freed() // before asking: a slot that is released from here on is noticed
		slot, err := l.depart(ctx, c, p.call.API)
		if errors.Is(err, ErrUnavailable) && c.Lane == Interactive {
			return nil
		}
		denied, ok := errors.AsType[*DeniedError](err)
		if !ok {
			p.slot = slot
			return err
		}
		left := time.Until(deadline)
		if denied.Limit != LimitInFlight && denied.RetryAfter > left || left <= 0 {
			line.stuck = time.Now()
			return denied
		}
		if err := sleep(ctx, min(left, minPoll+rand.N(maxPoll-minPoll)), wake); err != nil {
			return err
		}
	}
}

// take charges the call's units.
func (p *permit) take(ctx context.Context) (err error) {
	p.decision, err = p.ledger.Take(ctx, p.call.Caller, p.call.API, p.call.Cost)
	return err
}

// releaseSlot gives the slot back before the call was made.
func (p *permit) releaseSlot(ctx context.Context) {
	if p.slot == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_ = p.slot.Land(ctx, 0, Refusal{}) // at worst it is free some seconds later
	p.slot = nil
}

// Decision implements [Permit].
func (p *permit) Decision() Decision { return p.decision }

// Touch implements [Permit].
func (p *permit) Touch() {
	if p.slot != nil {
		p.slot.active.Store(time.Now().UnixNano())
	}
}

// Release implements [Permit]. Of several refusals of one kind, as the parts of a
// batch get them, the one that asks for the longest wait counts.
func (p *permit) Release(ctx context.Context, a Answer) (err error) {
	p.released.Do(func() { err = p.release(ctx, a) })
	return err
}

func (p *permit) release(ctx context.Context, a Answer) error {
	var problems []error
	var crowded Refusal
	charge := p.decision.Charge
	charge.Caller, charge.API = p.call.Caller, p.call.API
	for _, r := range p.ledger.longest(p.call.API, a.Refusals) {
		if r.Feature != "" && !slices.Contains(p.call.Features, r.Feature) {
			// It was about another feature, and refused this call all the same: that is
			// like any refusal that names no moment of its own.
			problems = append(problems, p.ledger.Answered(ctx, charge, Refusal{Scope: ScopeUser, Reason: r.Reason, Words: r.Words,
				Wait: defaultWaits[ScopeUser] / time.Duration(p.ledger.scale), Guess: true}))
		}
		problems = append(problems, p.ledger.Answered(ctx, charge, r))
		if r.Scope == ScopeConcurrency {
			crowded = r
		}
	}
	if p.slot != nil {
		problems = append(problems, p.slot.land(ctx, a.Bytes, crowded, max(1, p.call.Weight)))
	}
	return errors.Join(problems...)
}

// longest counts refusals, and returns the longest of each scope and feature.
func (l *Ledger) longest(api string, all []Refusal) []Refusal {
	var longest []Refusal
	for _, r := range all {
		l.metrics.refusals.WithLabelValues(api, string(r.Scope)).Inc()
		if r.Absurd {
			l.metrics.absurdDeadlines.WithLabelValues(string(r.Scope)).Inc()
		}
		i := slices.IndexFunc(longest, func(old Refusal) bool { return old.Scope == r.Scope && old.Feature == r.Feature })
		switch {
		case i < 0:
			longest = append(longest, r)
		case r.Wait > longest[i].Wait:
			longest[i] = r
		}
	}
	return longest
}

// sleep waits, but no longer than until wake is closed.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
