package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// granted is when the lease that a job was claimed with began, on our clock:
// what its row says, which is on the store's, but not before it was asked for
// nor after the answer. A claim that had to wait for its turn in the store
// leaves the slice its whole lease all the same.
func granted(job jobs.Job, lease time.Duration, asked, answered time.Time) time.Time {
	began := job.LeaseUntil.Add(-lease)
	switch {
	case began.Before(asked):
		return asked
	case began.After(answered):
		return answered
	}
	return asked.Add(began.Sub(asked)) // keeps the monotonic clock
}

// askEvery is how long a slice may go without asking the store whether its job is
// wanted in another state: a pause is to stop its calls within five seconds, however
// long the lease is.
const askEvery = 2 * time.Second

// keepLease renews the lease that the slice took at claimed, at least every third of
// it, until release is called, which waits for the renewing goroutine. The context
// that it returns ends, with jobs.ErrStale or the error of the store as its cause, when the
// lease is lost: when the store says so, or when it could not be renewed for so
// long that another run may have it by now. When the store says that the job is
// wanted in another state, the slice is asked to stop.
func (s *slice) keepLease(ctx context.Context, claimed time.Time) (leased context.Context, release func()) {
	leased, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.renew(leased, claimed); err != nil {
			cancel(err)
		}
	}()
	return leased, func() {
		cancel(nil)
		<-done
	}
}

// renew returns why the lease was lost, or nil because ctx ended. The lease was
// last known to be ours at held.
func (s *slice) renew(ctx context.Context, held time.Time) (err error) {
	defer func() {
		if p := s.recovered(recover()); p != nil {
			err = p
		}
	}()
	lease := s.opts.Lease
	tick := time.NewTicker(min(lease/3, askEvery))
	defer tick.Stop()
	expiry := time.NewTimer(held.Add(lease).Sub(s.now()))
	defer expiry.Stop()
	last := errors.New("no attempt was made")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-expiry.C:
			return fmt.Errorf("lease of job %s could not be renewed in time: %w", s.job.ID, last)
		case <-tick.C:
		}
		asked := s.now()
		attempt, cancel := context.WithDeadline(ctx, held.Add(lease))
		var job jobs.Job
		job, last = s.opts.Store.Renew(attempt, s.ref, lease)
		cancel()
		if last == nil && job.Wanted != "" {
			s.stop()
		}
		switch {
		case last == nil:
			held = asked
			expiry.Reset(held.Add(lease).Sub(s.now()))
		case errors.Is(last, jobs.ErrStale):
			return last
		}
	}
}
