package workers

import (
	"context"
	"errors"
	"time"

	"headroom/jobs"
)

// A call that Google refuses because too many of its user's calls are in flight
// is made again after a pause from minPause to maxPause. How many may be in flight
// is the ledger's business, which learns from the same refusals.
const (
	minPause = time.Second
	maxPause = 4 * time.Second
)

// tooMany reports whether Google refused a call for the number of calls in
// flight, for a short while.
func tooMany(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassConcurrency && call.Wait <= maxPause
}

// call makes a call to Google, and again after a pause when Google finds that there
// are too many in flight: that costs the item no attempt and the job no trip back
// to the queue. It returns the last answer when quit is closed or the slice should
// stop. A call whose turn comes when quit is closed already is not made.
func (s *slice) call(ctx context.Context, quit <-chan struct{}, do func(context.Context) error) error {
	for {
		select {
		case <-quit:
			return errNoTurn
		default:
		}
		err := do(ctx)
		if !tooMany(err) || s.stopping() || !s.pause(ctx, quit) {
			return err
		}
	}
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
