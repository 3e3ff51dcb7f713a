package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// A stopReason says why a slice is over. Several things can end a slice at about the
// same time (its time is up, one fetch is refused, another finds the account's grant
// revoked): the greatest wins.
type stopReason int

const (
	notStopped stopReason = iota
	suspected             // within a pass only: the circuit breaker must decide on many faults in a row
	timeUp                // the successor continues
	deferred              // only items are left whose retry is due later
	refused               // for quota
	broken                // something does not work: back off
	finished              // the job has reached a terminal state
	lost                  // the job has another owner, or the run's time is up: write nothing
)

// A result is why a slice, or a step of it, is over. The zero value says that it is
// not over.
type result struct {
	reason stopReason
	label  string        // refused: the limit, as a metric label
	why    string        // deferred, refused, broken: what the job waits for, for operators
	until  time.Time     // deferred, refused, broken: the moment that was named, if any
	wait   time.Duration // refused: from the refusal to that moment
	exact  bool          // refused: until is the end of a cooldown, not a guess at what others spend
	err    error         // broken, lost: the cause
	passes bool          // broken: waiting helps, so the job never ends for it
	finish jobs.Finish   // finished: how the job ends
	hint   string        // finished: what somebody has to do before the job can start again
}

func (r result) stops() bool { return r.reason != notStopped }

// outranks reports whether r is the better reason to stop than other. Of two refusals
// it is the one that lasts longer.
func (r result) outranks(other result) bool {
	if r.reason != other.reason {
		return r.reason > other.reason
	}
	return r.reason == refused && r.until.After(other.until)
}

// A stopper is how the goroutines of a run stop each other. It keeps the best reason.
type stopper struct {
	done chan struct{} // closed by the first stop

	mu   sync.Mutex
	best result
}

func newStopper() *stopper { return &stopper{done: make(chan struct{})} }

// stop closes done, unless it is closed already.
func (s *stopper) stop(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.best.stops():
		s.best = r
		close(s.done)
	case r.outranks(s.best):
		s.best = r
	}
}

func (s *stopper) stopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *stopper) result() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.best
}

// unknownWait is how long to leave Google alone after a quota answer that does
// not say: its one-minute window, and some.
const unknownWait = 65 * time.Second

// The limits, as metric labels, of refusals that no limit of the ledger made.
const (
	googleLabel = "google"             // Google itself refused
	ledgerLabel = "ledger-unavailable" // the ledger did not answer
	diskLabel   = "disk-full"          // the store's disk is full
)

// diskWait is how long a job waits at first before it looks whether there is room on
// the disk.
const diskWait = 2 * time.Second

// failed is the result of an error that ends the slice and not the job.
func failed(err error) result {
	if errors.Is(err, jobs.ErrStale) {
		return result{reason: lost, err: err}
	}
	if errors.Is(err, jobs.ErrNoRoom) {
		// Nothing is wrong with the job, however long it takes to make room.
		return result{reason: refused, label: diskLabel, why: clip(err.Error()), wait: diskWait}
	}
	return result{reason: broken, why: err.Error(), err: err, passes: jobs.Passes(err)}
}

// failedForGood is [failed] for an error that recurs however long the job waits.
func failedForGood(err error) result { return failed(persistentError{err}) }

type persistentError struct{ error }

func (p persistentError) Unwrap() []error { return []error{p.error, jobs.ErrPersists} }

// blocked is the result of an error after which somebody has to act for the account.
func blocked(err error) result {
	return result{reason: finished, finish: jobs.Finish{State: jobs.Blocked, Error: err.Error()}}
}

// endsAs is the result of a job that ends in a state.
func endsAs(state jobs.State, reason string) result {
	return result{reason: finished, finish: jobs.Finish{State: state, Error: reason}}
}

// resultOf classifies an error of a call to Google. It is zero for errors that may be
// the fault of the one item that the call was about.
func resultOf(err error, now time.Time) result {
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		wait := denied.RetryAfter + denied.Later
		return result{reason: refused, label: denied.Limit, why: denied.Why(),
			wait: wait, until: now.Add(wait), exact: denied.Bound == quota.BoundHold}
	}
	call, isCall := errors.AsType[*jobs.CallError](err)
	switch {
	case errors.Is(err, quota.ErrNeverFits):
		return failed(fmt.Errorf("%w; raise the lane's ceiling (headroom quota set, or lanes of google.projects in the settings) or the limit: then it goes on by itself", err))
	case errors.Is(err, quota.ErrUnknownProject):
		return failed(fmt.Errorf("%w; add it to google.projects in the settings: then it goes on by itself", err))
	case errors.Is(err, quota.ErrUnavailable):
		// Nothing is known about the quota, so none is spent: the job waits for as
		// long as the ledger does not answer, and that is no failure of the job.
		return result{reason: refused, label: ledgerLabel, why: err.Error(), wait: time.Second, until: now.Add(time.Second)}
	case tooMany(err):
		// Its pause in place was cut short, because the slice ends anyway.
		return result{reason: timeUp}
	case isCall && (call.Class == jobs.ClassQuota || call.Class == jobs.ClassConcurrency):
		wait := call.Wait
		if wait <= 0 {
			wait = unknownWait
		}
		return result{reason: refused, label: googleLabel, why: cmp.Or(call.Limit, "Google's quota ("+call.Reason+")"),
			wait: wait, until: now.Add(wait), exact: true}
	case isCall && call.Class == jobs.ClassAccount:
		return blocked(err)
	case isCall && call.Class == jobs.ClassProject: // of many jobs, one asks until it is over
		r := failed(err)
		r.until = now.Add(call.Wait)
		return r
	case errors.Is(err, quota.ErrNoCaller), errors.Is(err, quota.ErrCaller):
		return failedForGood(err)
	}
	return result{}
}

// resultOfCall is [resultOf] for a call that is about no item: after any other error
// the job backs off.
func (s *slice) resultOfCall(ctx context.Context, err error) result {
	switch {
	case ctx.Err() != nil:
		return lostFor(ctx)
	case s.calls.interrupted():
		return result{reason: timeUp}
	}
	if r := resultOf(err, s.now()); r.stops() {
		return r
	}
	return failed(err)
}

// lostFor is the result of a slice whose context has ended.
func lostFor(ctx context.Context) result { return result{reason: lost, err: context.Cause(ctx)} }
