package workers

import (
	"context"
	"errors"
	"time"

	"headroom/jobs"
)

const (
	// margin is what a slice keeps of its task's timeout for its last writes.
	margin = 5 * time.Second
	// drainGrace is how long what is in flight may take after the slice was asked
	// to stop.
	drainGrace = 750 * time.Millisecond

	// A call that Google refuses because too many of its user's calls are in flight
	// is made again after a pause from minPause to maxPause. How many may be in flight
	// is up to the ledger, which learns from the same refusals.
	minPause = time.Second
	maxPause = 4 * time.Second
)

var (
	// errDraining is the cause with which the calls of a slice are ended when it
	// should stop.
	errDraining = errors.New("the worker is shutting down, or the job is to rest")
	// errNoTurn says that a call was not made, because the slice ends.
	errNoTurn = errors.New("the slice ended before the call's turn came")
)

// call makes a call to Google, and repeats it after a pause when Google finds too many
// calls in flight: that costs the item no attempt, and the job is not requeued. It
// returns the last answer when quit is closed or the slice should stop. A call whose
// turn comes after quit was closed is not made: the error is [errNoTurn].
//
// The context that do gets is the only one for calls, see [callWindow].
func (s *slice) call(quit <-chan struct{}, do func(context.Context) error) error {
	for {
		select {
		case <-quit:
			return errNoTurn
		default:
		}
		err := do(s.calls.ctx)
		if !tooMany(err) || s.stopping() || !s.pause(quit) {
			return err
		}
	}
}

// get is [slice.call] for a call that returns a value.
func get[T any](s *slice, quit <-chan struct{}, do func(context.Context) (T, error)) (T, error) {
	var got T
	err := s.call(quit, func(ctx context.Context) (err error) {
		got, err = do(ctx)
		return err
	})
	return got, err
}

// tooMany reports whether Google refused a call for the number of calls in
// flight, for a short while.
func tooMany(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassConcurrency && call.Wait <= maxPause
}

// pause waits a moment, at random so that calls refused together do not come
// back together. It reports false when it was cut short.
func (s *slice) pause(quit <-chan struct{}) bool {
	timer := time.NewTimer(minPause + jitter(maxPause-minPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.calls.ctx.Done():
	case <-quit:
	case <-s.draining.Done():
	}
	return false
}

// A callWindow is the time in which a slice may call Google. It ends before the slice
// does: so long before the task's own deadline that what was fetched can still be
// committed, and a grace after the slice was asked to stop. Only [slice.call] uses its
// context, so that nobody takes it for the one that the lease ends.
type callWindow struct {
	ctx   context.Context // a child of the slice's
	close func()
}

// openCalls opens the slice's window for calls. Close must be called.
func (s *slice) openCalls(ctx context.Context) {
	calls, cancel := context.WithCancelCause(ctx)
	stop := context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		calls, stop = context.WithDeadline(calls, deadline.Add(-margin))
	}
	unwatch := context.AfterFunc(s.draining, func() {
		time.AfterFunc(drainGrace, func() { cancel(errDraining) })
	})
	s.calls = callWindow{ctx: calls, close: func() {
		unwatch()
		stop()
		cancel(nil)
	}}
}

// interrupted reports whether calls were cut off because the slice should stop.
func (w callWindow) interrupted() bool { return errors.Is(context.Cause(w.ctx), errDraining) }

// extend gives a window that the task's deadline has closed some more time for a few
// last calls. Done must be called.
func (w *callWindow) extend() (done func()) {
	if !errors.Is(w.ctx.Err(), context.DeadlineExceeded) {
		return func() {}
	}
	before := w.ctx
	extended, cancel := context.WithTimeout(context.WithoutCancel(before), margin/2)
	w.ctx = extended
	return func() {
		cancel()
		w.ctx = before
	}
}

// workEnd is when a slice that began at start takes on no more work: after its time,
// and after half the time that its task has, if whoever enqueued that gave less.
func (h *handler) workEnd(ctx context.Context, start time.Time) time.Time {
	end := start.Add(h.opts.SliceTime)
	if deadline, ok := ctx.Deadline(); ok {
		if half := start.Add(deadline.Sub(start) / 2); half.Before(end) {
			return half
		}
	}
	return end
}

// stopping reports whether no more work should be started.
func (s *slice) stopping() bool {
	return s.draining.Err() != nil || !s.now().Before(s.workUntil)
}
