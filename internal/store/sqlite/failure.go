package sqlite

import (
	"context"
	"fmt"
	"strings"

	"headroom/jobs"
)

const selectFailure = `SELECT jobs.id, f.id, f.phase, f.class, f.reason, f.attempts, f.first_at, f.last_at, f.given_up
	FROM failures AS f JOIN jobs ON jobs.num = f.job WHERE jobs.id = ? AND f.id > ?`

// Failures lists the entries of a job's failure list that the filter chooses, by
// id, from those after afterID, at most limit ([DefaultPage] if zero or less).
func (s *Store) Failures(ctx context.Context, jobID string, f jobs.FailureFilter, afterID string, limit int) ([]jobs.Failure, error) {
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("list failures of %s: %w", jobID, err)
	}
	where, args := chosen(f)
	args = append([]any{jobID, afterID}, args...)
	return list(ctx, s, func(scan func(...any) error, f *jobs.Failure) error {
		return scan(&f.Job, &f.ID, &f.Phase, &f.Class, &f.Reason, &f.Attempts, millis{&f.FirstAt}, millis{&f.LastAt}, &f.GivenUp)
	}, selectFailure+where+" ORDER BY f.id LIMIT ?", append(args, page(limit))...)
}

// chosen is the condition on rows of failures, named f, that a filter stands for.
func chosen(f jobs.FailureFilter) (where string, args []any) {
	if f.GivenUp {
		where += " AND f.given_up"
	}
	if f.Class != "" {
		where, args = where+" AND f.class = ?", append(args, f.Class)
	}
	if f.Reason != "" {
		where, args = where+" AND f.reason = ?", append(args, f.Reason)
	}
	if len(f.IDs) > 0 {
		where += " AND f.id IN (?" + strings.Repeat(", ?", len(f.IDs)-1) + ")"
		for _, id := range f.IDs {
			args = append(args, id)
		}
	}
	return where, args
}

// RetryFailed makes items that a job gave up pending again, as if never tried:
// those that the filter chooses. A job that completed is queued under the next
// epoch, and the caller puts it on the queue; one that is live or paused stays
// what it is. An item's entry leaves the failure list when it succeeds. It
// returns how many items there were; those that a cancelled, failed or blocked
// job gave up are not retried, and the error is a [*jobs.StateError].
func (s *Store) RetryFailed(ctx context.Context, id string, f jobs.FailureFilter) (job jobs.Job, retried int, err error) {
	if err := f.Validate(); err != nil {
		return jobs.Job{}, 0, fmt.Errorf("retry failed items of %s: %w", id, err)
	}
	f.GivenUp = true
	for after, done := "", false; !done; {
		var n int
		err := s.write(ctx, func(ctx context.Context, x *tx) (err error) {
			job, after, n, err = x.retrySome(ctx, id, f, after)
			return err
		})
		if err != nil {
			return jobs.Job{}, retried, saying(err, "retry failed items of %s", id)
		}
		retried += n
		done = n < retryAtOnce
	}
	return job, retried, nil
}

// retryAtOnce is how many items one transaction makes pending again, so that
// other writers need not wait for a list of thousands.
const retryAtOnce = 500

// retrySome is one step of [Store.RetryFailed]: it takes the first items after an
// id, and returns the last of them. Each item comes once, however soon it fails
// again.
func (x *tx) retrySome(ctx context.Context, id string, f jobs.FailureFilter, after string) (job jobs.Job, last string, n int, err error) {
	r, err := x.load(ctx, id)
	if err != nil {
		return jobs.Job{}, "", 0, err
	}
	if err := r.CanRetry(); err != nil {
		return jobs.Job{}, "", 0, err
	}
	ids, err := x.givenUp(ctx, r, f, after)
	if err != nil || len(ids) == 0 {
		return r.Job, "", 0, err
	}
	for _, item := range ids {
		if err := x.retry(ctx, r, item); err != nil {
			return jobs.Job{}, "", 0, fmt.Errorf("item %q: %w", item, err)
		}
	}
	r.Progress.Failed -= int64(len(ids))
	r.Retry()
	return r.Job, ids[len(ids)-1], len(ids), x.save(ctx, r)
}

// givenUp lists the next items for [tx.retrySome].
func (x *tx) givenUp(ctx context.Context, r *row, f jobs.FailureFilter, after string) (ids []string, err error) {
	where, args := chosen(f)
	args = append([]any{r.num, after}, args...)
	return x.ids(ctx, "SELECT f.id FROM failures AS f WHERE f.job = ? AND f.id > ?"+where+" ORDER BY f.id LIMIT ?", append(args, retryAtOnce)...)
}

func (x *tx) retry(ctx context.Context, r *row, item string) error {
	if _, err := x.ExecContext(ctx, "UPDATE items SET state = 'pending', attempts = 0, not_before = 0 WHERE job = ? AND id = ?", r.num, item); err != nil {
		return err
	}
	_, err := x.ExecContext(ctx, "UPDATE failures SET given_up = FALSE WHERE job = ? AND id = ?", r.num, item)
	return err
}
