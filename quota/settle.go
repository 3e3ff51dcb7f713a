package quota

import (
	"context"
	_ "embed"
	"fmt"
	"time"
)

//go:embed settle.lua
var settleSource string

var settleScript = newScript(settleSource)

// A Charge names units that were charged, so that they can be corrected. The
// zero Charge names none.
type Charge struct {
	Caller Caller
	API    string
	Units  int64
	At     time.Time // on the clock of Redis
}

// Settle corrects a charge to what the call really cost. Units are taken back
// from, or added to, the very bucket that was charged: a correction never makes
// a window look younger than it is, and what has left the window is let be. An
// addition is made even if it goes over a ceiling, since the units are spent.
func (l *Ledger) Settle(ctx context.Context, c Charge, units int64) error {
	if units < 0 || units > maxUnits {
		return fmt.Errorf("quota: settle on %d units: not from 0 to %d", units, maxUnits)
	}
	if c.Units == units || c.At.IsZero() {
		return nil
	}
	b, err := l.book(c.Caller.Project, c.API)
	if err != nil {
		return err
	}
	p, err := l.plan(c.Caller, c.API)
	if err != nil {
		return err
	}
	delta, back := units-c.Units, int64(0)
	if delta < 0 {
		delta, back = -delta, 1
	}
	args := []any{p.request(delta, back, c.At), c.At.UnixMicro()}
	err = l.reach(ctx, b, c.Caller, func(ctx context.Context) error {
		if _, err := l.eval(ctx, settleScript, p.keys(c.Caller.User), args...); err != nil {
			return unavailable(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("settle on %d units: %w", units, err)
	}
	l.denials.forget(c.Caller, c.API)
	l.journal.settled(c, units-c.Units)
	return nil
}

// Refund takes a charge back, for a call that was not made.
func (l *Ledger) Refund(ctx context.Context, c Charge) error { return l.Settle(ctx, c, 0) }
