package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// Claim takes the lease of the slice that ref names, by [jobs.Job.Claim], and returns
// the job's row. The error is [jobs.ErrNotFound], [jobs.ErrStale],
// [jobs.ErrSliceDone] or [jobs.ErrHeld]; with each but the first, the row is
// returned as it is.
func (s *Store) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	var job jobs.Job
	var refused error
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		var changed bool
		if changed, refused = r.Claim(ref, x.moment(), lease); changed {
			err = x.save(ctx, r)
		}
		job = r.Job
		return err
	})
	if err == nil {
		err = refused
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
		r.Renew(x.moment(), lease)
		return nil
	})
}

// EndSlice completes the owner's slice: the job's next one is due, and nobody
// owns it. A job that is wanted in another state is there now.
func (s *Store) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "end slice", func(_ context.Context, x *tx, r *row) error {
		r.EndSlice(x.moment())
		return nil
	})
}

// Park gives the owner's slice back, to be run again later, by [jobs.Job.Park].
func (s *Store) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "park", func(_ context.Context, x *tx, r *row) error {
		p.For, p.Failure = clean(p.For), clean(p.Failure)
		r.Park(p, x.moment())
		return nil
	})
}

// Finish ends the owner's job by [jobs.Job.Finish], unless items of it are pending.
// A backfill that completes asks for a sync, so that what changed meanwhile is read
// at once.
func (s *Store) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	return s.owned(ctx, ahead, ref, "finish", func(ctx context.Context, x *tx, r *row) error {
		pending, err := x.hasPending(ctx, r)
		if err != nil {
			return err
		}
		f.Error = clean(f.Error)
		if err := r.Finish(f, pending, x.moment()); err != nil {
			return err
		}
		if r.AsksSync() {
			_, err = x.askMail(ctx, r.Account)
		}
		return err
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

// TakeOver gives the owner of a job, or its task, up for dead, by
// [jobs.Job.TakeOver].
func (s *Store) TakeOver(ctx context.Context, seen jobs.Job) (job jobs.Job, err error) {
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, seen.ID)
		if err != nil {
			return err
		}
		if err := r.TakeOver(seen, x.moment()); err != nil {
			return err
		}
		err = x.save(ctx, r)
		job = r.Job
		return err
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("take over %s at epoch %d: %w", seen.ID, seen.Epoch, err)
	}
	return job, nil
}
