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
// round trip. A refusal for calls in flight is not for here, see [Permit.Release].
//
// A refusal that names no moment, while the ledger knows that next to nothing of the
// limits is used, is isolated: it closes them for seconds and takes nothing away. If
// the call that goes ahead then is refused too, it counts like any other.
func (l *Ledger) Answered(ctx context.Context, charge Charge, r Refusal) error {
	if r.Feature != "" {
		return l.closeFeature(ctx, charge, r)
	}
	user := true
	switch r.Scope {
	case ScopeUser, ScopeBandwidth, ScopeAbuse:
	case ScopeProject, ScopeDay:
		user = false
	default:
		l.journal.answered(charge, r, time.Time{})
		return nil
	}
	o := order{caller: charge.Caller, api: charge.API, wait: r.Wait, user: user, learn: learnRefusal,
		about: Cooldown{Scope: r.Scope, Reason: r.Reason, Words: r.Words}}
	if r.Guess && l.nearlyEmpty(ctx, charge.Caller, charge.API, user) {
		o.learn = learnIsolated
	}
	until, err := l.hold(ctx, o)
	l.journal.answered(charge, r, until)
	if err == nil {
		l.metrics.cooldowns.WithLabelValues(charge.API, string(r.Scope)).Observe(r.Wait.Seconds())
	}
	return err
}

// emptyShare is the part of a limit up to which a window is nearly empty.
const emptyShare = 3

// nearlyEmpty reports whether the ledger knows that at most a third of each limit of
// a caller's user, or project, is used.
func (l *Ledger) nearlyEmpty(ctx context.Context, c Caller, api string, user bool) bool {
	b, err := l.book(c.Project, api)
	if err != nil {
		return false
	}
	c.Lane = Interactive
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	d, err := l.take(ctx, c, api, 0, nil)
	if err != nil || d.Project.UnknownUntil.After(d.Charge.At) {
		return false
	}
	for _, u := range d.Usage {
		if limit, ok := b.list.Limits[u.Limit]; ok && (limit.Per == "user") == user && emptyShare*u.Used > u.Units {
			return false
		}
	}
	return true
}
