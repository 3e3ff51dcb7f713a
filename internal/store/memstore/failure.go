package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// Failures lists the entries of a job's failure list that the filter chooses, by id,
// from those after afterID.
func (s *Store) Failures(ctx context.Context, id string, f jobs.FailureFilter, afterID string, limit int) (all []jobs.Failure, err error) {
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("list failures of %s: %w", id, err)
	}
	err = s.do(ctx, func(time.Time) error {
		if j := s.jobs[id]; j != nil {
			for _, one := range sorted(j.failures) {
				if one.ID > afterID && chooses(f, one) && len(all) < page(limit) {
					all = append(all, *one)
				}
			}
		}
		return nil
	})
	return all, err
}

func chooses(f jobs.FailureFilter, one *jobs.Failure) bool {
	return (!f.GivenUp || one.GivenUp) && (f.Class == "" || one.Class == f.Class) && (f.Reason == "" || one.Reason == f.Reason) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, one.ID))
}

// RetryFailed makes items that a job gave up pending again, as if never tried: those
// that the filter chooses. See [jobs.Job.CanRetry] and [jobs.Job.Retry].
func (s *Store) RetryFailed(ctx context.Context, id string, f jobs.FailureFilter) (out jobs.Job, retried int, err error) {
	if err := f.Validate(); err != nil {
		return jobs.Job{}, 0, fmt.Errorf("retry failed items of %s: %w", id, err)
	}
	f.GivenUp = true
	err = s.do(ctx, func(now time.Time) error {
		j, err := s.job(id)
		if err != nil {
			return err
		}
		if err := j.CanRetry(); err != nil {
			return err
		}
		for _, one := range j.failures {
			if !chooses(f, one) {
				continue
			}
			i := j.items[one.ID]
			i.state, i.Attempts, i.due = jobs.ItemPending, 0, time.Time{}
			one.GivenUp = false
			retried++
		}
		if retried > 0 {
			j.Progress.Failed -= int64(retried)
			j.Retry()
			s.save(j, now)
		}
		out = j.Job
		return nil
	})
	return out, retried, saying(err, "retry failed items of "+id)
}
