package quota

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HoldUser closes a user's limits for an API to every lane, for so long: a
// cool-down that Google demanded. It never shortens one that is longer. It
// returns when it ends, on the clock of Redis.
func (l *Ledger) HoldUser(ctx context.Context, project, user, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, order{caller: Caller{Project: project, User: user, Lane: Interactive}, api: api, wait: wait, user: true})
}

// HoldProject closes a project's limits for an API to every user and lane; see
// [Ledger.HoldUser].
func (l *Ledger) HoldProject(ctx context.Context, project, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, order{caller: Caller{Project: project, Lane: Interactive}, api: api, wait: wait})
}

// An order says what is to be closed.
type order struct {
	caller Caller
	api    string
	wait   time.Duration
	user   bool // the caller's user; else the whole project
	learn  learning
	about  Cooldown
}

// learning is what a cool-down takes from what the scope may use afterwards.
type learning int

const (
	learnNothing learning = iota
	learnRefusal          // half of it
	// learnIsolated is for a refusal that names no moment, while next to nothing was
	// spent: nothing of it, and a wait of seconds, unless the next call is refused too.
	learnIsolated
)

// hold closes a scope. Everybody is to know of it, so it does not matter whether the
// caller goes away; a Redis that does not answer in time is told later.
func (l *Ledger) hold(ctx context.Context, o order) (time.Time, error) {
	b, err := l.book(o.caller.Project, o.api)
	if err != nil {
		return time.Time{}, err
	}
	if !o.user {
		o.caller.User = ""
	} else if err := checkUser(o.caller.User); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	known := localHold{until: time.Now().Add(o.wait), learn: o.learn, about: o.about}
	var until, before, now time.Time
	err = l.reach(ctx, b, o.caller, func(ctx context.Context) (err error) {
		until, before, now, err = l.writeHold(ctx, o)
		return err
	})
	switch {
	case errors.Is(err, ErrUnavailable) || err != nil && ctx.Err() != nil:
		known.untold = true
		until = known.until
		l.began(o, until, time.Time{}, time.Now())
	case err == nil:
		known.until = time.Now().Add(until.Sub(now))
		l.began(o, until, before, now)
	}
	known.about.Until = until
	b.breaker.noteHold(o.caller.User, known, err)
	return until, err
}

// writeHold tells Redis of a hold. It returns until when the scope is closed now,
// and was before; zero: it was open.
func (l *Ledger) writeHold(ctx context.Context, o order) (until, before, now time.Time, err error) {
	p, err := l.plan(o.caller, o.api)
	if err != nil {
		return until, before, now, err
	}
	keys := p.keys(o.caller.User)
	key, note, scope := keys[0], keys[4], p.project
	if o.user {
		key, note, scope = keys[1], keys[5], p.user
	}
	args := []any{max(o.wait.Milliseconds(), 0), p.width, scope.size(), scope.ttl, int(o.learn), o.about.encode()}
	if l.now != nil {
		args = append(args, l.now().UnixMicro())
	}
	reply, err := l.eval(ctx, cooldownScript, []string{key, note}, args...)
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("an answer of %d numbers", len(reply))
	}
	if err != nil {
		return until, before, now, fmt.Errorf("hold for %s: %w", o.wait, unavailable(err))
	}
	if reply[1] > 0 {
		before = time.UnixMilli(reply[1])
	}
	return time.UnixMilli(reply[0]), before, time.UnixMilli(reply[2]), nil
}
