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
	// interactivePatience is how long interactive calls wait for a slot although they
	// may not wait for units: one is free as soon as another call of the user ends.
	interactivePatience = 2 * time.Second
	// releaseTimeout bounds how long a report to the ledger holds up its caller.
	releaseTimeout = time.Second
)

// A permit is what a call got from the ledger.
type permit struct {
	ledger   *Ledger
	call     Call
	slot     *slot // nil: none
	decision Decision
	released sync.Once
}

var _ Limiter = (*Ledger)(nil)

// Acquire implements [Limiter]. Slot and units are taken in one round trip, both or
// neither. Interactive calls need no slot while Redis does not answer.
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
	start := time.Now()
	var p *permit
	if err = l.open(ctx, c.Caller, c.API, c.Cost, c.Features); err == nil {
		p, err = l.wait(ctx, b, c)
	}
	l.metrics.waits.WithLabelValues(string(c.Caller.Lane)).Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, err
	}
	return p, nil
}

// wait asks for a permit until it gets one or may wait no longer.
func (l *Ledger) wait(ctx context.Context, b *book, c Call) (*permit, error) {
	entered, line := time.Now(), new(line)
	if c.Caller.MaxWait > 0 {
		first, err := l.queue.enter(ctx, lineKey{c.Caller.Project, c.Caller.User, c.API, c.Caller.Lane})
		if err != nil {
			return nil, err
		}
		defer l.queue.leave(first)
		line = first
	}
	forUnits := time.Now().Add(c.Caller.MaxWait)
	forSlot := forUnits
	switch {
	case entered.Before(line.stuck): // it has waited as long as the call before it, in vain
		forSlot = time.Time{}
	case c.Caller.MaxWait <= 0 && c.Caller.Lane == Interactive:
		forSlot = entered.Add(interactivePatience)
	}
	freed, done := l.slots.wait(slotUser{b, c.Caller.User})
	defer done()
	for {
		wake := freed() // before asking: a slot that is released from here on is noticed
		p, err := l.try(ctx, b, c)
		denied, ok := errors.AsType[*DeniedError](err)
		if !ok {
			return p, err
		}
		pause := denied.RetryAfter
		switch left := time.Until(forSlot); {
		case denied.Limit == LimitInFlight && left <= 0:
			line.stuck = time.Now()
			l.noSlot(c, denied)
			return nil, denied
		case denied.Limit == LimitInFlight:
			pause = min(left, minPoll+rand.N(maxPoll-minPoll))
		case time.Now().Add(pause).After(forUnits):
			return nil, denied
		default:
			wake = nil
		}
		if err := sleep(ctx, pause, wake); err != nil {
			return nil, err
		}
	}
}

// try asks for a permit once.
func (l *Ledger) try(ctx context.Context, b *book, c Call) (*permit, error) {
	p := &permit{ledger: l, call: c, slot: l.slots.newSlot(slotUser{b, c.Caller.User})}
	d, err := l.take(ctx, c.Caller, c.API, c.Cost, p.slot)
	if denied, ok := errors.AsType[*DeniedError](err); !ok || denied.Limit != LimitInFlight {
		l.journal.decided(c.Caller, c.API, c.Cost, d, err)
	}
	if err != nil {
		return nil, err
	}
	if p.decision = d; d.Local {
		p.slot = nil
	}
	return p, nil
}

// noSlot takes note of a call that got no slot. Those that ask again do so often.
func (l *Ledger) noSlot(c Call, denied *DeniedError) {
	l.metrics.denied(c.Caller, denied.Limit, denied.Bound)
	l.journal.decided(c.Caller, c.API, 0, Decision{}, denied)
}

// Decision implements [Permit].
func (p *permit) Decision() Decision { return p.decision }

// Touch implements [Permit].
func (p *permit) Touch() {
	if p.slot != nil {
		p.slot.progress.Store(time.Now().UnixNano())
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
	var crowded int64 // calls that Google refused because too many were in flight
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
			crowded = max(1, p.call.Weight)
		}
	}
	if p.slot != nil {
		problems = append(problems, p.ledger.release(ctx, p.slot, p.call.Caller.Lane, a.Bytes, crowded))
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

// queue keeps one line of waiting calls per account, API and lane. The zero
// value is ready for use. A line exists as long as somebody stands in it.
type queue struct {
	mu    sync.Mutex
	lines map[lineKey]*line
}

type lineKey struct {
	project, user, api string
	lane               Lane
}

type line struct {
	key   lineKey
	turn  chan struct{} // holds one token: whoever has it is first in line
	users int           // guarded by queue.mu
	// When somebody last waited in vain for an in-flight slot. It belongs to whoever
	// has the token.
	stuck time.Time
}

// enter waits until the caller is first in line, or ctx ends. The caller must
// leave the line that it got.
func (q *queue) enter(ctx context.Context, key lineKey) (*line, error) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil {
		l = &line{key: key, turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		if q.lines == nil {
			q.lines = map[lineKey]*line{}
		}
		q.lines[key] = l
	}
	l.users++
	q.mu.Unlock()
	select {
	case <-l.turn:
		return l, nil
	case <-ctx.Done():
		q.forget(l)
		return nil, context.Cause(ctx)
	}
}

// leave lets the next in line have its turn.
func (q *queue) leave(l *line) {
	l.turn <- struct{}{}
	q.forget(l)
}

func (q *queue) forget(l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	delete(q.lines, l.key)
}
