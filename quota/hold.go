package quota

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"
)

//go:embed hold.lua
var holdSource string

var holdScript = newScript(holdSource)

// HoldUser closes a user's limits for an API to every lane, for so long: a
// cool-down that Google demanded. It never shortens one that is longer. It
// returns when it ends, on the clock of Redis.
func (l *Ledger) HoldUser(ctx context.Context, project, user, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, Caller{Project: project, User: user, Lane: Interactive}, api, wait, true, false)
}

// HoldProject closes a project's limits for an API to every user and lane; see
// [Ledger.HoldUser].
func (l *Ledger) HoldProject(ctx context.Context, project, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, Caller{Project: project, Lane: Interactive}, api, wait, false, false)
}

// hold closes a scope. When it learns, what the scope may use afterwards is lowered.
// Everybody is to know of it, so it does not matter whether the caller goes away; a
// Redis that does not answer in time is told later.
func (l *Ledger) hold(ctx context.Context, c Caller, api string, wait time.Duration, user, learn bool) (time.Time, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return time.Time{}, err
	}
	if !user {
		c.User = ""
	} else if err := checkUser(c.User); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), landTimeout)
	defer cancel()
	known := localHold{until: time.Now().Add(wait), learn: learn}
	var until time.Time
	err = l.reach(ctx, b, c, func(ctx context.Context) (err error) {
		until, err = l.writeHold(ctx, c, api, wait, user, learn)
		return err
	})
	if errors.Is(err, ErrUnavailable) || err != nil && ctx.Err() != nil {
		known.untold = true
		until = known.until
	}
	b.breaker.noteHold(c.User, known, err)
	return until, err
}

// writeHold tells Redis of a hold.
func (l *Ledger) writeHold(ctx context.Context, c Caller, api string, wait time.Duration, user, learn bool) (time.Time, error) {
	p, err := l.plan(c, api)
	if err != nil {
		return time.Time{}, err
	}
	keys := p.keys(c.User)
	key, note, scope := keys[0], keys[4], p.project
	if user {
		key, note, scope = keys[1], keys[5], p.user
	}
	args := []any{max(wait.Milliseconds(), 0), p.width, scope.size(), scope.ttl, 0}
	if learn {
		args[4] = 1
	}
	if l.now != nil {
		args = append(args, l.now().UnixMicro())
	}
	reply, err := l.eval(ctx, holdScript, []string{key, note}, args...)
	if err == nil && len(reply) != 1 {
		err = fmt.Errorf("an answer of %d numbers", len(reply))
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("hold for %s: %w", wait, unavailable(err))
	}
	return time.UnixMilli(reply[0]), nil
}

// knowsClosed reports whether this process has told of a cool-down that holds for
// a charge's user or project.
func (l *Ledger) knowsClosed(c Charge, now time.Time) bool {
	b, err := l.book(c.Caller.Project, c.API)
	if err != nil {
		return false
	}
	b.breaker.mu.Lock()
	defer b.breaker.mu.Unlock()
	local := &b.breaker.local
	u := local.users[lower(c.Caller.User)]
	return local.project.hold.until.After(now) || u != nil && u.hold.until.After(now)
}
