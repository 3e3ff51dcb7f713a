package google

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"headroom/jobs"
)

const (
	// firstProbe and longestProbe bound how long a gate stays shut before a probe.
	firstProbe   = 2 * time.Second
	longestProbe = 2 * time.Minute
	// gateTrust is how long after a successful call any number of calls may be made at
	// once; after that, one call goes first.
	gateTrust = 10 * time.Second
)

// probeWait returns how long a gate stays shut after its nth failure in a row, from 0.
func probeWait(n int) time.Duration {
	wait := firstProbe
	for ; n > 0 && wait < longestProbe; n-- {
		wait *= 2
	}
	return min(wait, longestProbe)
}

// A gate is a circuit breaker for the calls of many accounts that share a cause of
// failure: the project's key, clock or delegation, or an API that is not enabled. While
// it is shut, one call at a time probes whether the cause is over, for all accounts, and
// the other calls return the probe's error without being made. It is safe for
// concurrent use.
type gate struct {
	name  string // for the log
	first bool   // one call goes first if none has succeeded recently
	log   *zap.Logger
	shut  func(bool) // sets the metric

	mu       sync.Mutex
	failure  *jobs.CallError // of the last call; nil: calls may be made
	since    time.Time
	failures int       // in a row
	next     time.Time // when the next call may be made
	worked   time.Time
	probe    chan struct{} // closed at the end of the probe; nil: there is none
}

// enter returns nil if a call may be made; its result must then be passed to leave.
// Otherwise it returns the error of the last call, with the time until the next probe.
func (g *gate) enter(ctx context.Context) (leave func(error), err error) {
	for {
		g.mu.Lock()
		now := time.Now()
		switch {
		case g.failure != nil && now.Before(g.next):
			told := *g.failure
			told.Wait = g.next.Sub(now)
			g.mu.Unlock()
			return nil, &told
		case g.failure == nil && (!g.first || now.Sub(g.worked) < gateTrust):
			g.mu.Unlock()
			return func(err error) { g.leave(err, nil) }, nil
		case g.probe == nil:
			probe := make(chan struct{})
			g.probe = probe
			g.mu.Unlock()
			return func(err error) { g.leave(err, probe) }, nil
		}
		probe := g.probe
		g.mu.Unlock()
		select {
		case <-probe:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leave records the result of a call. An error that is not the project's shows that
// the project is in order.
func (g *gate) leave(err error, probe chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	call, _ := errors.AsType[*jobs.CallError](err)
	switch project := call != nil && call.Class == jobs.ClassProject; {
	case err != nil && call == nil: // cancelled: nothing is known
	case !project && g.failure != nil && (probe == nil || call != nil && jobs.Passes(call)):
		// An older call, or one without a result; the next one may have one.
	case !project:
		if g.failure != nil {
			g.log.Info("calls work again", zap.String("what", g.name), zap.Duration("after", now.Sub(g.since).Round(time.Second)))
			g.shut(false)
		}
		g.failure, g.failures, g.worked = nil, 0, now
	case g.failure == nil:
		g.since = now
		g.log.Error("calls are stopped until one that is made now and then works", zap.String("what", g.name), zap.String("cause", call.Err.Error()))
		g.shut(true)
		g.fail(call, now)
	case probe != nil: // other calls were in flight when the gate was shut
		g.fail(call, now)
	}
	if probe != nil {
		close(probe)
		g.probe = nil
	}
}

func (g *gate) fail(call *jobs.CallError, now time.Time) {
	g.failure, g.next = call, now.Add(probeWait(g.failures))
	g.failures++
	call.Wait = g.next.Sub(now)
}

// gates holds the gates of all projects.
type gates struct {
	log     *zap.Logger
	metrics *metrics

	mu  sync.Mutex
	all map[gateKey]*gate
}

// gateKey identifies a gate: a project and its token endpoint or an API; for tokens
// also the domain that must have granted a scope.
type gateKey struct{ project, before, domain, scope string }

// The gates of a project.
const (
	beforeTokens   = "tokens"
	beforeDomain   = "delegation"
	beforeGmail    = "gmail"
	beforeCalendar = "calendar"
)

func (g *gates) of(key gateKey) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := g.all[key]
	if !ok {
		name := key.before + " of project " + key.project
		if key.domain != "" {
			name += " for " + key.domain
		}
		count := g.metrics.gates.WithLabelValues(key.project, key.before)
		one = &gate{name: name, first: key.before == beforeTokens, log: g.log, shut: func(shut bool) {
			if shut {
				count.Inc()
			} else {
				count.Dec()
			}
		}}
		g.all[key] = one
	}
	return one
}

// errUntold is the result of a call that shows nothing about a gate's cause.
var errUntold = errors.New("not told")

// guard puts the gates of an account's project and domain in front of its token
// fetches.
func (g *gates) guard(key accountKey, scope string, fetch func(context.Context) (*oauth2.Token, error)) func(context.Context) (*oauth2.Token, error) {
	_, domain, _ := strings.Cut(key.email, "@")
	project := g.of(gateKey{project: key.project, before: beforeTokens})
	granted := g.of(gateKey{project: key.project, before: beforeDomain, domain: domain, scope: scope})
	return func(ctx context.Context) (*oauth2.Token, error) {
		leaveProject, err := project.enter(ctx)
		if err != nil {
			return nil, asTokenError(err)
		}
		leaveDomain, err := granted.enter(ctx)
		if err != nil {
			leaveProject(errUntold)
			return nil, asTokenError(err)
		}
		token, err := fetch(ctx)
		if err == nil || ctx.Err() != nil {
			if err != nil {
				err = errUntold
			}
			leaveProject(err)
			leaveDomain(err)
			if err != nil {
				return nil, context.Cause(ctx)
			}
			return token, nil
		}
		failed := sortTokenError(err)
		call := &jobs.CallError{Class: failed.class, Reason: failed.reason, Wait: failed.wait, Err: failed}
		switch {
		case failed.class != jobs.ClassProject:
			leaveProject(call)
			leaveDomain(call)
		case failed.domain:
			leaveProject(nil)
			leaveDomain(call)
		default:
			leaveProject(call)
			leaveDomain(errUntold)
		}
		return nil, asTokenError(call)
	}
}

// asTokenError returns a gate's error as the error of a token fetch.
func asTokenError(err error) error {
	call, ok := errors.AsType[*jobs.CallError](err)
	if !ok {
		return err
	}
	failed, ok := errors.AsType[*tokenError](call.Err)
	if !ok {
		return err
	}
	told := *failed
	told.wait = call.Wait
	return &told
}

// speaksForAll reports whether an answer to a call concerns more than one item or
// purpose.
func speaksForAll(c call) bool {
	switch c {
	case callProfile, callList, callNextPage, callHistory, callHistoryPage, callLabels, callCalendars, callCalendarsPage:
		return true
	}
	return false
}

// through makes a call of an API behind the gate of its project. Calls about one item
// cannot shut the gate, because the answer may concern that item only.
func (g *Google) through(ctx context.Context, key gateKey, c call, do func() error) error {
	leave, err := g.gates.of(key).enter(ctx)
	if err != nil {
		return err
	}
	told := errUntold // unless do returns
	defer func() { leave(told) }()
	err = do()
	told = err
	if failed, ok := errors.AsType[*jobs.CallError](err); ok && failed.Class == jobs.ClassProject {
		if _, answered := errors.AsType[*googleapi.Error](err); !answered || !speaksForAll(c) {
			told = errUntold
		}
	}
	return err
}
