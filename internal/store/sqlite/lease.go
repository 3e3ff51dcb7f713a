package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// Claim takes the lease of the slice that ref names, for the owner to work on
// the job, and returns its row. When the run that holds the lease let it run
// out, the lease is taken under the next epoch, which fences off that run; the
// caller must go on with the Ref of the returned job. A job whose owner died on
// the way to the state that somebody wanted it in is brought there, and not
// claimed.
//
// The errors are [jobs.ErrNotFound]; [jobs.ErrStale] for another epoch, an
// job that is paused or has ended, or a slice that is not yet due; [jobs.ErrSliceDone] for a slice
// completed before; and [jobs.ErrHeld] while another run holds the lease. With
// each but the first, the row is returned as it is.
func (s *Store) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	var job jobs.Job
	var steered error
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		job = r.Job
		now := fromMillis(x.now)
		switch {
		case r.Epoch != ref.Epoch, !r.State.Live(), ref.Slice > r.Slice:
			return r.stale()
		case ref.Slice < r.Slice:
			return fmt.Errorf("job is at slice %d: %w", r.Slice, jobs.ErrSliceDone)
		case r.LeaseUntil.After(now):
			return fmt.Errorf("until %s: %w", r.LeaseUntil.Format(time.RFC3339Nano), jobs.ErrHeld)
		case r.Wanted != "":
			r.Epoch++
			x.release(r)
			job, steered = r.Job, r.stale()
			return x.save(ctx, r)
		case !r.LeaseUntil.IsZero():
			r.Epoch++
		}
		r.State = jobs.Running
		if r.Place == jobs.PlaceWanted { // whoever put the task has given it one
			r.Place = jobs.PlaceHeld
		}
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
	if err == nil {
		err = steered
	}
	if err != nil {
		return job, fmt.Errorf("claim %s: %w", ref.TaskID(), err)
	}
	return job, nil
}

// Renew makes the owner's lease last for another lease from now, and returns the
// job's row. When that says that the job is wanted in another state, the owner is
// to make no more calls, and to end its slice.
func (s *Store) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "renew lease", func(_ context.Context, x *tx, r *row) error {
		r.LeaseUntil = x.after(lease)
		return nil
	})
}

// release gives the job's lease back, with its place if somebody else's turn is next, and brings the job to the state that it is
// wanted in, if any.
func (x *tx) release(r *row) {
	r.LeaseUntil = time.Time{}
	r.yield()
	if r.Wanted != "" {
		x.bring(r, r.Wanted)
	}
}

// bring brings a job without an owner to a state that it rests in.
func (x *tx) bring(r *row, to jobs.State) {
	r.State, r.Wanted = to, ""
	r.WaitingFor, r.WaitUntil = "", time.Time{}
	r.LeaseUntil, r.FinishedAt = time.Time{}, time.Time{}
	if to.Terminal() {
		r.FinishedAt = fromMillis(x.now)
	}
}

// EndSlice completes the owner's slice: the job's next one is due, and nobody
// owns it. A job that is wanted in another state is there now.
func (s *Store) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "end slice", func(_ context.Context, x *tx, r *row) error {
		r.Slice++
		x.release(r)
		return nil
	})
}

// Park puts the job aside: the same slice is due again at p.Until, and nobody
// owns it. A refusal counts as one, and as a trip back to the queue; a fault counts
// as a failure; waiting for an item that is due later counts as neither. A job
// that is wanted in another state is there now, and does not wait.
func (s *Store) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "park", func(_ context.Context, x *tx, r *row) error {
		r.State = jobs.Waiting
		r.WaitingFor, r.WaitUntil = clean(p.For), fromMillis(toMillis(p.Until))
		switch {
		case p.Refused:
			r.Refusals++
			r.Requeued++
			r.QuotaWait = true
		case p.Failure != "":
			if r.QuotaWait { // what failed before that was no longer what it waited for
				r.QuotaWait, r.FailingSince = false, time.Time{}
			}
			r.Failures++
			r.LastError = clean(p.Failure)
		}
		x.release(r)
		return nil
	})
}

// Finish ends the job in a terminal state, and nobody owns it. A job that is
// wanted cancelled completes if it can, and else is cancelled whatever its end
// was. A job does not complete while items of it are pending, which they can be
// again because somebody wants them retried: then the slice ends instead, as by
// [Store.EndSlice].
func (s *Store) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	if !f.State.Terminal() {
		return jobs.Job{}, fmt.Errorf("finish %s: state %q is not a terminal one", ref.TaskID(), f.State)
	}
	return s.owned(ctx, ahead, ref, "finish", func(ctx context.Context, x *tx, r *row) error {
		completes := f.State == jobs.Completed || f.State == jobs.CompletedWithFailures
		if completes {
			switch pending, err := x.hasPending(ctx, r); {
			case err != nil:
				return err
			case pending, r.Kind == jobs.MailSync && !r.Checkpoint.Listed: // another was asked for
				r.Slice++
				x.release(r)
				return nil
			}
		}
		r.LastError = clean(f.Error)
		if r.Wanted == jobs.Cancelled && !completes {
			f.State = jobs.Cancelled
		}
		x.bring(r, f.State)
		return x.askSync(ctx, r)
	})
}

func (x *tx) hasPending(ctx context.Context, r *row) (bool, error) {
	var one int
	err := x.QueryRowContext(ctx, "SELECT 1 FROM items WHERE job = ? AND state = 'pending' LIMIT 1", r.num).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// TakeOver gives the owner of a job, or its task, up for dead: the same slice is
// due again under the next epoch. A job that is wanted in another state is there
// now. It fails with [jobs.ErrStale] when anything was written to the job since it
// was as seen, or when it is paused or has ended: of any number of callers who have
// seen the same, one takes it over.
func (s *Store) TakeOver(ctx context.Context, seen jobs.Job) (jobs.Job, error) {
	var job jobs.Job
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, seen.ID)
		if err != nil {
			return err
		}
		if r.Ref() != seen.Ref() || !r.LeaseUntil.Equal(seen.LeaseUntil) || !r.UpdatedAt.Equal(seen.UpdatedAt) || !r.State.Live() {
			return r.stale()
		}
		r.Epoch++
		x.release(r)
		if err := x.save(ctx, r); err != nil {
			return err
		}
		job = r.Job
		return nil
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("take over %s at epoch %d: %w", seen.ID, seen.Epoch, err)
	}
	return job, nil
}
