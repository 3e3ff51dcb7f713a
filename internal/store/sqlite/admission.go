package sqlite

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

// Contenders lists the live backfills, the oldest first.
func (s *Store) Contenders(ctx context.Context) ([]jobs.Contender, error) {
	return list(ctx, s, func(scan func(...any) error, c *jobs.Contender) error {
		err := scan(&c.Job, &c.Account, &c.Project, &c.Tenant, &c.Class, &c.Place, millis{&c.WaitUntil}, &c.Units)
		c.Tenant = tenantOf(c.Tenant, c.Account)
		return err
	}, `SELECT j.id, j.account, j.project, a.tenant, a.class, j.place, j.wait_until, j.units
		FROM jobs j JOIN accounts a ON a.email = j.account
		WHERE j.live AND j.kind = ? ORDER BY j.created_at, j.id`, jobs.MailBackfill)
}

// SetPlace brings a live job from one place to another, and returns its row. The
// error is [jobs.ErrStale] when it is live no longer, or has another place.
func (s *Store) SetPlace(ctx context.Context, id string, from, to jobs.Place) (job jobs.Job, err error) {
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
		return jobs.Job{}, fmt.Errorf("give a place: %w", err)
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
