package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// Pause brings a job to a stop that [Store.Resume] ends: at once, or, while
// somebody owns it, when the owner next renews its lease; until then the job is
// wanted paused. Changed is false when that was so already. The error is
// [jobs.ErrNotFound], or a [*jobs.StateError] for a job that has nothing to pause.
func (s *Store) Pause(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "pause", func(x *tx, r *row) (bool, error) {
		switch {
		case r.Wanted == jobs.Cancelled:
			return false, beingCancelled("pause", r)
		case r.State == jobs.Paused, r.Wanted == jobs.Paused:
			return false, nil
		case r.State == jobs.Blocked:
			return false, notPossible("pause", r, "it makes no calls; resume it when the account has acted, or cancel it")
		case !r.State.Live():
			return false, notPossible("pause", r, "start it again for another run")
		}
		x.want(r, jobs.Paused)
		return true, nil
	})
}

// Resume makes a job go on that was paused, or that was blocked until the account
// acted: it is queued under the next epoch, with its items and its checkpoint as
// they are, and the caller puts it on the queue. Of a job that is only wanted
// paused, that is taken back. Changed is false when the job is live already. The
// error is [jobs.ErrNotFound], or a [*jobs.StateError] for a job that has ended or
// is to end.
func (s *Store) Resume(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "resume", func(_ *tx, r *row) (bool, error) {
		switch {
		case r.Wanted == jobs.Cancelled:
			return false, beingCancelled("resume", r)
		case r.Wanted == jobs.Paused:
			r.Wanted = ""
			return true, nil
		case r.State.Live():
			return false, nil
		case r.State != jobs.Paused && r.State != jobs.Blocked:
			return false, notPossible("resume", r, "start it again for another run")
		}
		requeue(r)
		return true, nil
	})
}

// Cancel ends a job; what was stored stays, and of a sync it is forgotten that
// another was asked for. It takes effect like [Store.Pause].
// Changed is false when the job is cancelled, or wanted so, already. The error is
// [jobs.ErrNotFound], or a [*jobs.StateError] for a job that has ended otherwise.
func (s *Store) Cancel(ctx context.Context, id string) (job jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "cancel", func(x *tx, r *row) (bool, error) {
		switch {
		case r.State == jobs.Cancelled, r.Wanted == jobs.Cancelled:
			return false, nil
		case r.State.Terminal() && r.State != jobs.Blocked:
			return false, notPossible("cancel", r, "there is nothing left to cancel")
		}
		x.want(r, jobs.Cancelled)
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
func (s *Store) steer(ctx context.Context, id, verb string, change func(*tx, *row) (bool, error)) (job jobs.Job, changed bool, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, id)
		if err != nil {
			return err
		}
		if changed, err = change(x, r); err != nil {
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

// want brings a job to a state, or asks its owner to. Under the next epoch, the
// job's task means nothing any more, nor does an owner that let its lease run out.
func (x *tx) want(r *row, to jobs.State) {
	if r.LeaseUntil.After(fromMillis(x.now)) {
		r.Wanted = to
		return
	}
	r.Epoch++
	x.bring(r, to)
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

// requeue makes a job that rests go on.
func requeue(r *row) {
	r.Epoch++
	r.State, r.Place = jobs.Queued, jobs.FirstPlace(r.Kind)
	r.LastError, r.Refusals, r.Failures = "", 0, 0
	r.FinishedAt = time.Time{}
}

func notPossible(verb string, r *row, next string) error {
	return &jobs.StateError{Verb: verb, Job: r.ID, State: r.State, Next: next}
}

func beingCancelled(verb string, r *row) error {
	return notPossible(verb, r, "it is being cancelled; start it again once it is")
}

// saying puts what was being done before an error, unless that says it itself.
func saying(err error, format string, args ...any) error {
	if _, ok := errors.AsType[*jobs.StateError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
