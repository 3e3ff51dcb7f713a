package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"headroom/jobs"
)

// StartBackfill starts the backfill of an account's mailbox, or of the part of it
// that the filter lets through. There is one job for each filter. A job that is
// live or paused is returned as it is, with created false. One that has ended
// starts over: under the next epoch, queued, with its listing, items, counters
// and failure list cleared. Stored messages stay, so they are not fetched
// again; as long as there are any, the history id that was pinned before they
// were read stays too, since what changed since then has yet to be read. Of
// concurrent calls, one creates. The error is [jobs.ErrNotFound] when there is
// no such account, and a [*jobs.StateError] while the job is being cancelled.
func (s *Store) StartBackfill(ctx context.Context, email string, filter jobs.Filter) (job jobs.Job, created bool, err error) {
	if err := filter.Validate(); err != nil {
		return jobs.Job{}, false, fmt.Errorf("start backfill of %q: %w", email, err)
	}
	for done := false; !done; {
		err := s.write(ctx, func(ctx context.Context, x *tx) (err error) {
			job, created, done, err = x.startBackfill(ctx, normal(email), filter.Normal())
			return err
		})
		if err != nil {
			return jobs.Job{}, false, saying(err, "start backfill of %q", email)
		}
	}
	return job, created, nil
}

// startBackfill is one step of [Store.StartBackfill]; it is not done while an
// ended job has items left to clear.
func (x *tx) startBackfill(ctx context.Context, email string, filter jobs.Filter) (job jobs.Job, created, done bool, err error) {
	r, err := x.load(ctx, filter.BackfillID(email))
	if err == nil {
		if starts, err := r.CanStart(); err != nil || !starts {
			return r.Job, false, true, err
		}
	} else if !errors.Is(err, jobs.ErrNotFound) {
		return jobs.Job{}, false, false, err
	}
	var project string
	if err := x.QueryRowContext(ctx, "SELECT project FROM accounts WHERE email = ?", email).Scan(&project); err != nil {
		return jobs.Job{}, false, false, fmt.Errorf("account: %w", notFound(err))
	}
	if r == nil {
		r, err = x.insertBackfill(ctx, email, project, filter)
		done = err == nil
	} else {
		done, err = x.reset(ctx, r, project)
	}
	if err != nil || !done {
		return jobs.Job{}, false, false, err
	}
	return r.Job, true, true, nil
}

func (x *tx) insertBackfill(ctx context.Context, email, project string, filter jobs.Filter) (*row, error) {
	id := filter.BackfillID(email)
	text, err := json.Marshal(filter)
	if err != nil {
		return nil, fmt.Errorf("encode filter: %w", err)
	}
	_, err = x.ExecContext(ctx, `INSERT INTO jobs (id, kind, account, project, filter, state, place, live, epoch, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, TRUE, 1, ?, ?)`,
		id, jobs.MailBackfill, email, project, string(text), jobs.Queued, jobs.NotAdmitted, x.now, x.now)
	if err != nil {
		return nil, fmt.Errorf("insert job %q: %w", id, err)
	}
	return x.load(ctx, id)
}

// clearAtOnce is how many items one transaction clears, so that clearing those
// of a large mailbox does not hold up other writers for seconds.
const clearAtOnce = 2_000

// reset turns an ended job into a new run of itself. It is not done, and only
// cleared some items, when there are more of them than one transaction clears;
// the job counts as cancelled until then, so that nobody makes it go on with what
// is left of them.
func (x *tx) reset(ctx context.Context, r *row, project string) (done bool, err error) {
	res, err := x.ExecContext(ctx, `DELETE FROM items WHERE job = ? AND id IN
		(SELECT id FROM items WHERE job = ? AND state <> 'skipped' LIMIT ?)`, r.num, r.num, clearAtOnce)
	if err != nil {
		return false, fmt.Errorf("clear items: %w", err)
	}
	switch n, err := res.RowsAffected(); {
	case err != nil:
		return false, err
	case n == clearAtOnce:
		r.State = jobs.Cancelled
		return false, x.save(ctx, r)
	}
	// What was outside the filter is so for ever, and need not be looked at again.
	if _, err := x.ExecContext(ctx, "UPDATE items SET seq = 0 WHERE job = ? AND state = 'skipped'", r.num); err != nil {
		return false, fmt.Errorf("keep what was skipped: %w", err)
	}
	if _, err := x.ExecContext(ctx, "DELETE FROM failures WHERE job = ?", r.num); err != nil {
		return false, fmt.Errorf("clear failures: %w", err)
	}
	stored, err := x.hasMessages(ctx, r.Account)
	if err != nil {
		return false, err
	}
	r.Restart(project, stored)
	return true, x.save(ctx, r)
}

// Job returns one job, or [jobs.ErrNotFound].
func (s *Store) Job(ctx context.Context, id string) (jobs.Job, error) {
	var r row
	if err := r.scan(s.reader.QueryRowContext(ctx, selectJob+"WHERE id = ?", id).Scan); err != nil {
		return jobs.Job{}, fmt.Errorf("job %q: %w", id, notFound(err))
	}
	return r.Job, nil
}

// Jobs lists all jobs, the oldest first.
func (s *Store) Jobs(ctx context.Context) ([]jobs.Job, error) {
	return list(ctx, s, scanJob, selectJob+"ORDER BY created_at, id")
}

// newestJobs finds the rows by an index before it reads them.
var newestJobs = selectJob + `WHERE num IN (SELECT num FROM jobs ORDER BY created_at DESC, id DESC LIMIT ?)
	ORDER BY created_at DESC, id DESC`

// NewestJobs lists at most limit jobs, the newest first, and says how many there are.
// It reads no more of them than it lists.
func (s *Store) NewestJobs(ctx context.Context, limit int) (newest []jobs.Job, total int, err error) {
	if err := s.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs").Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count the jobs: %w", err)
	}
	newest, err = list(ctx, s, scanJob, newestJobs, limit)
	return newest, total, err
}

// AccountJobs lists the jobs of an account, the oldest first.
func (s *Store) AccountJobs(ctx context.Context, email string) ([]jobs.Job, error) {
	return list(ctx, s, scanJob, selectJob+"WHERE account = ? ORDER BY created_at, id", normal(email))
}

// LiveJobs lists the jobs that must have a task or an owner, the oldest first.
func (s *Store) LiveJobs(ctx context.Context) ([]jobs.Job, error) {
	return list(ctx, s, scanJob, selectJob+"WHERE live ORDER BY created_at, id")
}

func scanRow(scan func(...any) error, r **row) error {
	*r = new(row)
	return (*r).scan(scan)
}

func scanJob(scan func(...any) error, j *jobs.Job) error {
	var r row
	err := r.scan(scan)
	*j = r.Job
	return err
}
