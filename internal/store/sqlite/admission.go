package sqlite

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

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
