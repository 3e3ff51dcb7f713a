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
	// firstProbe and longestProbe bound how long a gate is shut before somebody may
	// try again.
	firstProbe   = 2 * time.Second
	longestProbe = 2 * time.Minute
	// gateTrust is how long after a call that worked any number may be made side by
	// side; after that, one goes first.
	gateTrust = 10 * time.Second
)

// probeWait is how long a gate stays shut after its nth failure in a row, from 0.
func probeWait(n int) time.Duration {
	wait := firstProbe
	for ; n > 0 && wait < longestProbe; n-- {
		wait *= 2
	}
	return min(wait, longestProbe)
}

// A gate stands before calls that all fail for one cause when they fail for a
// project's: its key, its clock, its delegation, an API that is not enabled. Then
// one call in a while finds out whether that is over, for all accounts, and the
// others are told what it was told without being made. It is safe for concurrent
// use.
type gate struct {
	name  string // for the log
	first bool   // one call goes first where none has worked of late
	log   *zap.Logger
	shut  func(bool) // tells the metrics

	mu       sync.Mutex
	failure  *jobs.CallError // what the last call was told; nil: the gate is open
	since    time.Time
	failures int       // in a row
	next     time.Time // when the next call may be made
	worked   time.Time
	probe    chan struct{} // closed at the end of the call that goes first; nil: there is none
}

// enter returns nil when a call may be made, whose end must be told to leave, and
// else what the last one was told, with the time until the next may be made.
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

// leave notes how a call ended. An error that is not the project's says that the
// project is in order.
func (g *gate) leave(err error, probe chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	call, _ := errors.AsType[*jobs.CallError](err)
	switch project := call != nil && call.Class == jobs.ClassProject; {
	case err != nil && call == nil: // cut off; it says nothing
	case !project && g.failure != nil && (probe == nil || call != nil && jobs.Passes(call)):
		// An older call, or one that was not told; the next one may be.
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
	case probe != nil: // others were under way when the gate was shut
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

// gateKey names a gate: of a project, before its token endpoint or an API; for
// tokens also of the domain that must have granted a scope.
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

// errUntold ends a call that says nothing about what a gate stands before.
var errUntold = errors.New("not told")

// guard puts the gates of an account's project and domain before its token fetches.
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

// asTokenError is what a gate says as the error of a token fetch.
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

// speaksForAll reports whether an answer to a call is about more than one item or
// one purpose.
func speaksForAll(c call) bool {
	switch c {
	case callProfile, callList, callNextPage, callHistory, callHistoryPage, callLabels, callCalendars, callCalendarsPage:
		return true
	}
	return false
}

// through makes a call of an API behind the gate of its project. Not all calls can
// shut it: an answer about one item may be its own.
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
