package quota

import (
	"context"
	"time"
)

// Answered tells the ledger what Google answered to a call that was charged. A
// refusal closes the user's or the project's limits to everybody until the moment
// that it names, and halves what they may use afterwards: then one call goes
// ahead, and if Google does not refuse that, the share grows again, by half of the
// limits a minute. Where little is left of a share, they are closed for up to half
// a minute whatever moment is named. Everything else changes nothing and costs no
// round trip. A refusal for calls in flight is not for here, see [Departure.Land].
func (l *Ledger) Answered(ctx context.Context, charge Charge, r Refusal) error {
	user := true
	switch r.Scope {
	case ScopeUser, ScopeBandwidth, ScopeAbuse:
	case ScopeProject, ScopeDay:
		user = false
	default:
		l.journal.answered(charge, r, time.Time{})
		return nil
	}
	until, err := l.hold(ctx, charge.Caller, charge.API, r.Wait, user, true)
	l.journal.answered(charge, r, until)
	if err == nil {
		l.metrics.cooldowns.WithLabelValues(charge.API, string(r.Scope)).Observe(r.Wait.Seconds())
	}
	return err
}
