package quota

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// A call that waits for a place asks again after minPoll to maxPoll, and at once
	// when one was given back by its own process.
	minPoll = 50 * time.Millisecond
	maxPoll = 100 * time.Millisecond
	// keepPlace is how long a call keeps its place while it waits for units.
	keepPlace = time.Second
	// peoplesPatience is how long people's calls wait for a place although they may
	// not wait for units: one is free as soon as another call of the user has ended.
	peoplesPatience = 2 * time.Second
)

// admitNow asks for a place, and once for units.
func (t *Transport) admitNow(f *trip) (err error) {
	now := time.Now()
	deadline := now
	if f.charge.Caller.Lane == Interactive {
		deadline = now.Add(peoplesPatience)
	}
	if f.place == nil {
		if err = t.waitForPlace(f, new(line), now, deadline); err != nil {
			t.Ledger.noPlace(f.charge.Caller, f.charge.API, err)
			return err
		}
	}
	return t.take(f)
}

// take asks for the units once.
func (t *Transport) take(f *trip) error {
	d, err := t.Ledger.Take(f.ctx, f.charge.Caller, f.charge.API, f.charge.Units)
	if err == nil {
		f.charge = d.Charge
	}
	return err
}

// placeFor asks for a place. It returns none where none is needed: people's calls
// go on while Redis does not answer, if their units are granted.
func (l *Ledger) placeFor(f *trip) (*Departure, error) {
	d, err := l.depart(f.ctx, f.charge.Caller, f.charge.API)
	if errors.Is(err, ErrUnavailable) && f.charge.Caller.Lane == Interactive {
		return nil, nil
	}
	return d, err
}

// admitInLine waits in place for up to the caller's MaxWait, first for a place and
// then for units. All calls of one account and lane stand in one line, so that a
// hundred waiting calls ask the ledger no more often than one. When the first in
// line must wait longer than it may, those behind it that ask for as much are told
// the same.
func (t *Transport) admitInLine(f *trip) error {
	c, entered := f.charge.Caller, time.Now()
	line, err := t.queue.enter(f.ctx, lineKey{c.Project, c.User, f.charge.API, c.Lane})
	if err != nil {
		return err
	}
	defer t.queue.leave(line)
	deadline := time.Now().Add(c.MaxWait)
	for {
		if f.place == nil {
			if err := t.waitForPlace(f, line, entered, deadline); err != nil {
				t.Ledger.noPlace(f.charge.Caller, f.charge.API, err)
				return err
			}
		}
		err := t.take(f)
		denied, ok := errors.AsType[*DeniedError](err)
		if !ok {
			return err
		}
		if time.Now().Add(denied.RetryAfter).After(deadline) {
			return denied
		}
		if denied.RetryAfter > keepPlace {
			f.leavePlace() // to somebody who can use it meanwhile
		}
		if err := sleep(f.ctx, denied.RetryAfter, nil); err != nil {
			return err
		}
	}
}

// waitForPlace waits for a place until the deadline. Who stood behind a call that
// waited in vain has waited as long, and asks once.
func (t *Transport) waitForPlace(f *trip, line *line, entered, deadline time.Time) error {
	if entered.Before(line.stuck) {
		deadline = time.Time{}
	}
	freed, done := t.Ledger.flights.wait(f.user())
	defer done()
	for {
		wake := freed() // before asking: a place that is free from here on is heard of
		place, err := t.Ledger.placeFor(f)
		denied, ok := errors.AsType[*DeniedError](err)
		if !ok {
			f.place = place
			return err
		}
		left := time.Until(deadline)
		if denied.Limit != LimitInFlight && denied.RetryAfter > left || left <= 0 {
			line.stuck = time.Now()
			return denied
		}
		if err := sleep(f.ctx, min(left, minPoll+rand.N(maxPoll-minPoll)), wake); err != nil {
			return err
		}
	}
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
