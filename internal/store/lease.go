package store

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// Claim takes the lease of the slice that ref names, for the owner to work on
// the job, and returns its row. When the run that holds the lease let it run
// out, the lease is taken under the next epoch, which fences off that run; the
// caller must go on with the Ref of the returned job.
//
// The errors are [jobs.ErrNotFound]; [jobs.ErrStale] for another epoch, an
// ended job, or a slice that is not yet due; [jobs.ErrSliceDone] for a slice
// completed before; and [jobs.ErrHeld] while another run holds the lease. With
// each but the first, the row is returned as it is.
func (s *Store) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	var job jobs.Job
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		job = r.Job
		now := fromMillis(x.now)
		switch {
		case r.Epoch != ref.Epoch, r.State.Terminal(), ref.Slice > r.Slice:
			return fmt.Errorf("job is %s at epoch %d, slice %d: %w", r.State, r.Epoch, r.Slice, jobs.ErrStale)
		case ref.Slice < r.Slice:
			return fmt.Errorf("job is at slice %d: %w", r.Slice, jobs.ErrSliceDone)
		case r.LeaseUntil.After(now):
			return fmt.Errorf("until %s: %w", r.LeaseUntil.Format(time.RFC3339Nano), jobs.ErrHeld)
		case !r.LeaseUntil.IsZero():
			r.Epoch++
		}
		r.State = jobs.Running
		r.WaitingFor, r.WaitUntil = "", time.Time{}
		r.LeaseUntil = x.after(lease)
		if r.StartedAt.IsZero() {
			r.StartedAt = now
		}
		if err := x.save(ctx, r); err != nil {
			return err
		}
		job = r.Job
		return nil
	})
	if err != nil {
		return job, fmt.Errorf("claim %s: %w", ref.TaskID(), err)
	}
	return job, nil
}

// Renew makes the owner's lease last for another lease from now.
func (s *Store) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) error {
	_, err := s.owned(ctx, ahead, ref, "renew lease", func(_ context.Context, x *tx, r *row) error {
		r.LeaseUntil = x.after(lease)
		return nil
	})
	return err
}

// EndSlice completes the owner's slice: the job's next one is due, and nobody
// owns it.
func (s *Store) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "end slice", func(_ context.Context, x *tx, r *row) error {
		r.Slice++
		r.LeaseUntil = time.Time{}
		return nil
	})
}

// Park puts the job aside: the same slice is due again at p.Until, and nobody
// owns it. A refusal counts as one, and as a trip back to the queue; a fault counts
// as a failure; waiting for an item that is due later counts as neither.
func (s *Store) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "park", func(_ context.Context, x *tx, r *row) error {
		r.State = jobs.Waiting
		r.WaitingFor, r.WaitUntil = clean(p.For), fromMillis(toMillis(p.Until))
		r.LeaseUntil = time.Time{}
		switch {
		case p.Refused:
			r.Refusals++
			r.Requeued++
		case p.Failure != "":
			r.Failures++
			r.LastError = clean(p.Failure)
		}
		return nil
	})
}

// Finish ends the job in a terminal state, and nobody owns it.
func (s *Store) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	if !f.State.Terminal() {
		return jobs.Job{}, fmt.Errorf("finish %s: state %q is not a terminal one", ref.TaskID(), f.State)
	}
	return s.owned(ctx, ahead, ref, "finish", func(_ context.Context, x *tx, r *row) error {
		r.State = f.State
		r.LastError = clean(f.Error)
		r.WaitingFor, r.WaitUntil = "", time.Time{}
		r.LeaseUntil = time.Time{}
		r.FinishedAt = fromMillis(x.now)
		return nil
	})
}

// TakeOver gives the owner of a job up for dead: the same slice is due again
// under the next epoch. It fails with [jobs.ErrStale] when the job has left the
// epoch that the caller saw, or has ended.
func (s *Store) TakeOver(ctx context.Context, id string, epoch int64) (jobs.Job, error) {
	var job jobs.Job
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, id)
		if err != nil {
			return err
		}
		if r.Epoch != epoch || r.State.Terminal() {
			return fmt.Errorf("job is %s at epoch %d: %w", r.State, r.Epoch, jobs.ErrStale)
		}
		r.Epoch++
		r.LeaseUntil = time.Time{}
		if err := x.save(ctx, r); err != nil {
			return err
		}
		job = r.Job
		return nil
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("take over %s at epoch %d: %w", id, epoch, err)
	}
	return job, nil
}
