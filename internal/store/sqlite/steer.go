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
		return true, x.unask(ctx, r)
	})
}

// unask forgets that another run of a sync was asked for, which would begin once
// this one has ended.
func (x *tx) unask(ctx context.Context, r *row) (err error) {
	switch r.Kind {
	case jobs.MailSync:
		_, err = x.ExecContext(ctx, "UPDATE mailboxes SET asked_at = 0 WHERE account = ? AND asked_at > 0", r.Account)
	case jobs.CalendarSync:
		_, err = x.ExecContext(ctx, "UPDATE calendar_lists SET asked_at = 0, asked_all = FALSE WHERE account = ? AND asked_at > 0", r.Account)
	}
	return err
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

// forgetAsked forgets what was asked of a sync before it was cancelled or blocked,
// which would have it begin again at once. Whoever asks from now on is heard.
func (x *tx) forgetAsked(ctx context.Context, r *row) (err error) {
	switch r.Kind {
	case jobs.MailSync:
		_, err = x.ExecContext(ctx, "UPDATE mailboxes SET asked_at = 0 WHERE account = ?", r.Account)
	case jobs.CalendarSync:
		_, err = x.ExecContext(ctx, "UPDATE calendar_lists SET asked_at = 0, asked_all = FALSE, resume_at = 0 WHERE account = ?", r.Account)
	}
	if err != nil {
		return fmt.Errorf("forget what was asked of %s: %w", r.ID, err)
	}
	return nil
}

// saying puts what was being done before an error, unless that says it itself.
func saying(err error, format string, args ...any) error {
	if _, ok := errors.AsType[*jobs.StateError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
