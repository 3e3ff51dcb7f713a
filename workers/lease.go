package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// granted is when the lease that a job was claimed with began, on our clock: the moment
// in its row, which is on the store's clock, but not before the lease was asked for nor
// after the answer. So a slice has its whole lease even if its claim had to wait for its
// turn in the store.
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

// askEvery is how often a slice asks the store at least whether a pause or cancel was
// requested: that is to stop its calls within five seconds, however long the lease is.
const askEvery = 2 * time.Second

// keepLease renews the lease that the slice took at claimed, at least every third of
// it, until release is called, which waits for the renewing goroutine. The context
// that it returns ends when the lease is lost, with jobs.ErrStale or the store's error as
// its cause: when the store reports that, or when the lease could not be renewed for so
// long that another run may have it by now. If a pause or cancel was requested, the slice
// is asked to stop.
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
