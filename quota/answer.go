package quota

import (
	"context"
	"errors"
)

// Answered tells the ledger what Google answered to a call that was charged. A
// refusal closes the user's or the project's limits to everybody until the moment
// that it names, and lowers what they may use afterwards; everything else changes
// nothing and costs no round trip. A refusal for calls in flight is not for here,
// see [Departure.Land].
func (l *Ledger) Answered(ctx context.Context, charge Charge, r Refusal) error {
	var err error
	switch r.Scope {
	case ScopeUser, ScopeBandwidth, ScopeAbuse:
		_, err = l.HoldUser(ctx, charge.Caller.Project, charge.Caller.User, charge.API, r.Wait)
	case ScopeProject, ScopeDay:
		_, err = l.HoldProject(ctx, charge.Caller.Project, charge.API, r.Wait)
	}
	if errors.Is(err, ErrUnknownProject) {
		return nil
	}
	return err
}
