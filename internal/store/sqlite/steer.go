package sqlite

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

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
