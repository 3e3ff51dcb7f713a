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

// Candidates lists the live backfills, the oldest first.
func (s *Store) Candidates(ctx context.Context) ([]jobs.Candidate, error) {
	return list(ctx, s, func(scan func(...any) error, c *jobs.Candidate) error {
		err := scan(&c.Job, &c.Account, &c.Project, &c.Tenant, &c.Class, &c.Admission, millis{&c.WaitUntil}, &c.Units)
		c.Tenant = tenantOf(c.Tenant, c.Account)
		return err
	}, `SELECT j.id, j.account, j.project, a.tenant, a.class, j.place, j.wait_until, j.units
		FROM jobs j JOIN accounts a ON a.email = j.account
		WHERE j.live AND j.kind = ? ORDER BY j.created_at, j.id`, jobs.MailBackfill)
}

// SetAdmission changes a job's admission by [jobs.Job.Admit], and returns its row.
func (s *Store) SetAdmission(ctx context.Context, id string, from, to jobs.Admission) (job jobs.Job, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, id)
		if err != nil {
			return err
		}
		if err := r.Admit(from, to); err != nil {
			return err
		}
		err = x.save(ctx, r)
		job = r.Job
		return err
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("set admission of %s: %w", id, err)
	}
	return job, nil
}

// Charge notes units of quota that the owner's slice has spent.
func (s *Store) Charge(ctx context.Context, ref jobs.TaskRef, units int64) error {
	if units < 0 {
		return errors.New("charge: units are negative")
	}
	_, err := s.owned(ctx, ahead, ref, "charge", func(_ context.Context, _ *tx, r *row) error {
		r.Units += units
		return nil
	})
	return err
}

// Pause stops a job by [jobs.Job.Pause]. The error is [jobs.ErrNotFound] or a
// [*jobs.StateError].
func (s *Store) Pause(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "pause", func(_ context.Context, x *tx, r *row) (bool, error) { return r.Pause(x.moment()) })
}

// Resume makes a job go on by [jobs.Job.Resume], with its items and its checkpoint
// as they are; the caller puts it on the queue. The error is [jobs.ErrNotFound] or a
// [*jobs.StateError].
func (s *Store) Resume(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "resume", func(_ context.Context, _ *tx, r *row) (bool, error) { return r.Resume() })
}

// Cancel ends a job by [jobs.Job.Cancel]. What was stored stays; that another run of
// a sync was asked for is forgotten. The error is [jobs.ErrNotFound] or a
// [*jobs.StateError].
func (s *Store) Cancel(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "cancel", func(ctx context.Context, x *tx, r *row) (bool, error) {
		changed, err := r.Cancel(x.moment())
		if err != nil || !changed {
			return false, err
		}
		return true, x.forgetAsk(ctx, r)
	})
}

// steer changes the row of a job that somebody else may own.
func (s *Store) steer(ctx context.Context, id, verb string, change func(context.Context, *tx, *row) (bool, error)) (job jobs.Job, changed bool, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, id)
		if err != nil {
			return err
		}
		if changed, err = change(ctx, x, r); err != nil {
			return err
		}
		if changed {
			err = x.save(ctx, r)
		}
		job = r.Job
		return err
	})
	if err != nil {
		return jobs.Job{}, false, saying(err, "%s", verb)
	}
	return job, changed, nil
}

// saying puts what was being done before an error, unless that says it itself.
func saying(err error, format string, args ...any) error {
	if _, ok := errors.AsType[*jobs.StateError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
