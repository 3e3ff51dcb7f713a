package workers

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// margin is what a slice keeps of its task's timeout for its last writes.
	margin = 5 * time.Second
	// drainGrace is how long what is in flight may take after the slice was asked
	// to stop.
	drainGrace = 750 * time.Millisecond
)

// end is when a slice that began at start takes on no more work: after its time,
// and after half the time that its task has, if whoever enqueued that gave less.
func (h *handler) end(ctx context.Context, start time.Time) time.Time {
	end := start.Add(h.opts.SliceTime)
	if deadline, ok := ctx.Deadline(); ok {
		if half := start.Add(deadline.Sub(start) / 2); half.Before(end) {
			return half
		}
	}
	return end
}

// errDraining is the cause with which the calls of a slice are ended when it should
// stop.
var errDraining = errors.New("the worker is shutting down, or the job is to rest")

// listen makes the slice stop with the process, and when stop is called: because
// the job is to be paused or cancelled. Done must be called, and waits for the
// goroutine that listens.
func (s *slice) listen() (done func()) {
	drain, asked, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.drain, s.stop = drain, sync.OnceFunc(func() { close(asked) })
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-s.handler.drain:
		case <-asked:
		case <-ended:
			return
		}
		close(drain)
	})
	return func() {
		close(ended)
		listening.Wait()
	}
}

// callContext returns the context for the slice's calls to Google, a child of
// ctx that ends earlier: so long before the task's own deadline that what has
// been fetched can still be committed, and a grace after the slice was asked to
// stop. Done must be called, and waits for the goroutine that watches.
func (s *slice) callContext(ctx context.Context) (calls context.Context, done func()) {
	calls, cancel := context.WithCancelCause(ctx)
	stop := context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		calls, stop = context.WithDeadline(calls, deadline.Add(-margin))
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-calls.Done():
			return
		case <-s.drain:
		}
		grace := time.NewTimer(drainGrace)
		defer grace.Stop()
		select {
		case <-calls.Done():
		case <-grace.C:
			cancel(errDraining)
		}
	}()
	return calls, func() {
		cancel(nil)
		stop()
		<-watched
	}
}

// interrupted reports whether calls, from [slice.callContext], were cut off
// because the slice should stop.
func interrupted(calls context.Context) bool {
	return errors.Is(context.Cause(calls), errDraining)
}

// stopping reports whether no more work should be started.
func (s *slice) stopping() bool {
	select {
	case <-s.drain:
		return true
	default:
		return !time.Now().Before(s.over)
	}
}
