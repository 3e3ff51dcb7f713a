package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"headroom/jobs"
)

const (
	// raiseAfter is how long an account must go without a refusal for calls in
	// flight before one more is tried. It doubles each time that was one too many.
	raiseAfter    = 30 * time.Second
	maxRaiseAfter = 8 * time.Minute
	// maxPause is the longest pause in place after such a refusal; one is
	// between minPause and maxPause.
	minPause = time.Second
	maxPause = 4 * time.Second
)

// gate bounds the calls of one account that this process has in flight. Google
// does not say how many it allows, and another application may use some of
// them; so the bound is lowered by refusals and rises again with time. It is
// safe for concurrent use.
type gate struct {
	mu       sync.Mutex
	most     int // never more than this
	limit    int
	inFlight int
	round    int           // counts changes of limit
	raised   bool          // the last change was upwards
	calm     time.Duration // without a refusal, until the next rise
	since    time.Time     // of the last change, or refusal
	freed    chan struct{} // closed and replaced when a place may be free
}

func newGate(most int) *gate {
	return &gate{most: most, limit: most, calm: raiseAfter, freed: make(chan struct{})}
}

// enter waits for a place, and returns the round for [gate.leave]; it reports
// false when ctx ended or quit was closed before.
func (g *gate) enter(ctx context.Context, quit <-chan struct{}) (round int, ok bool) {
	for {
		g.mu.Lock()
		g.rise(time.Now())
		if g.inFlight < g.limit {
			g.inFlight++
			round = g.round
			g.mu.Unlock()
			return round, true
		}
		freed := g.freed
		g.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, false
		case <-quit:
			return 0, false
		}
	}
}

// rise allows one more call after a calm time. G.mu must be held.
func (g *gate) rise(now time.Time) {
	if g.limit < g.most && now.Sub(g.since) >= g.calm {
		g.change(g.limit+1, now)
		g.raised = true
	}
}

func (g *gate) change(limit int, now time.Time) {
	g.limit, g.since = limit, now
	g.round++
}

// leave gives a place back. When the call was refused for the number of calls in
// flight that number is lowered: by half, or by the one that was tried last.
// Calls of one round that are refused lower it once.
func (g *gate) leave(round int, refused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	now := time.Now()
	switch {
	case !refused:
	case round != g.round:
		g.since = now
	case g.raised:
		g.calm = min(2*g.calm, maxRaiseAfter)
		g.change(max(1, g.limit-1), now)
		g.raised = false
	default:
		g.change(max(1, g.limit/2), now)
	}
	close(g.freed)
	g.freed = make(chan struct{})
}

// tooMany reports whether Google refused a call for the number of calls in
// flight, for a short while.
func tooMany(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassConcurrency && call.Wait <= maxPause
}

// call makes a call to Google when its account has a place for it, and again
// after a pause when Google finds that there are too many in flight: that costs
// the item no attempt and the job no trip back to the queue. It returns the last
// answer when quit is closed or the slice should stop, and the cause of ctx's
// end when that was it.
func (s *slice) call(ctx context.Context, quit <-chan struct{}, do func(context.Context) error) error {
	for {
		round, ok := s.gate.enter(ctx, quit)
		if !ok {
			return errors.Join(errNoTurn, ctx.Err())
		}
		err := s.inGate(ctx, round, do)
		if !tooMany(err) || s.stopping() || !s.pause(ctx, quit) {
			return err
		}
	}
}

// inGate gives the place back whatever do does.
func (s *slice) inGate(ctx context.Context, round int, do func(context.Context) error) (err error) {
	defer func() { s.gate.leave(round, tooMany(err)) }()
	return do(ctx)
}

// errNoTurn says that a call was not made, because the slice ends.
var errNoTurn = errors.New("the slice ended before the call's turn came")

// pause waits a moment, at random so that calls refused together do not come
// back together. It reports false when it was cut short.
func (s *slice) pause(ctx context.Context, quit <-chan struct{}) bool {
	timer := time.NewTimer(minPause + jitter(maxPause-minPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-quit:
	case <-s.drain:
	}
	return false
}
