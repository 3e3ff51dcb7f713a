package memstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// Claim is [jobs.Job.Claim] in the store. With [jobs.ErrStale], [jobs.ErrSliceDone] and
// [jobs.ErrHeld], it returns the row as it is.
func (s *Store) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (out jobs.Job, err error) {
	err = s.do(ctx, func(now time.Time) error {
		j, err := s.job(ref.Job)
		if err != nil {
			return err
		}
		changed, err := j.Claim(ref, now, lease)
		if changed {
			s.save(j, now)
		}
		out = j.Job
		return err
	})
	if err != nil {
		return out, fmt.Errorf("claim %s: %w", ref.TaskID(), err)
	}
	return out, nil
}

// TakeOver is [jobs.Job.TakeOver] in the store.
func (s *Store) TakeOver(ctx context.Context, seen jobs.Job) (out jobs.Job, err error) {
	err = s.do(ctx, func(now time.Time) error {
		j, err := s.job(seen.ID)
		if err == nil {
			err = j.TakeOver(seen, now)
		}
		if err == nil {
			out = s.save(j, now)
		}
		return err
	})
	return out, err
}

// Renew is [jobs.Job.Renew] in the store.
func (s *Store) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	return s.owned(ctx, ref, "renew lease", func(j *job, _ *account, now time.Time) error {
		j.Renew(now, lease)
		return nil
	})
}

// EndSlice is [jobs.Job.EndSlice] in the store.
func (s *Store) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return s.owned(ctx, ref, "end slice", func(j *job, _ *account, now time.Time) error {
		j.EndSlice(now)
		return nil
	})
}

// Park is [jobs.Job.Park] in the store.
func (s *Store) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return s.owned(ctx, ref, "park", func(j *job, _ *account, now time.Time) error {
		p.For, p.Failure = clean(p.For), clean(p.Failure)
		j.Park(p, now)
		return nil
	})
}

// Finish is [jobs.Job.Finish] in the store. A backfill that completes asks for a sync.
func (s *Store) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	return s.owned(ctx, ref, "finish", func(j *job, a *account, now time.Time) error {
		f.Error = clean(f.Error)
		if err := j.Finish(f, len(j.pending()) > 0, now); err != nil {
			return err
		}
		if j.AsksSync() {
			s.askMail(a, now)
		}
		return nil
	})
}

// Charge counts units of quota that the owner's slice has spent.
func (s *Store) Charge(ctx context.Context, ref jobs.TaskRef, units int64) error {
	if units < 0 {
		return errors.New("charge: units are negative")
	}
	_, err := s.owned(ctx, ref, "charge", func(j *job, _ *account, _ time.Time) error {
		j.Units += units
		return nil
	})
	return err
}
