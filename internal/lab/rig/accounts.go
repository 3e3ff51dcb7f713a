package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/internal/app"
	"headroom/jobs"
)

// AddAccount adds an account, if it is not there.
func (r *Rig) AddAccount(ctx context.Context, email, project string, log *zap.Logger) error {
	_, err := app.AddAccount(ctx, r.Config, email, project, log)
	if errors.Is(err, jobs.ErrExists) {
		return nil
	}
	return err
}

// StartBackfill adds an account, if it is not there, and starts a backfill of its
// mailbox.
func (r *Rig) StartBackfill(ctx context.Context, email, project string, filter jobs.Filter, log *zap.Logger) (jobs.Job, error) {
	if err := r.AddAccount(ctx, email, project, log); err != nil {
		return jobs.Job{}, err
	}
	started, err := app.StartBackfill(ctx, r.Config, email, filter, log)
	return started.Job, err
}

// A Jobs is a store, as far as jobs are followed.
type Jobs interface {
	Job(ctx context.Context, id string) (jobs.Job, error)
}

// Follow looks at jobs every so often, until all have ended, and returns their
// last rows. An error of look, which sees every look, ends it, too.
func Follow(ctx context.Context, store Jobs, ids []string, every time.Duration, look func(time.Time, []jobs.Job) error) ([]jobs.Job, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		all, ended := make([]jobs.Job, len(ids)), 0
		for i, id := range ids {
			job, err := store.Job(ctx, id)
			if err != nil {
				return nil, err
			}
			if all[i] = job; job.State.Terminal() {
				ended++
			}
		}
		if err := look(time.Now(), all); err != nil {
			return nil, err
		}
		if ended == len(ids) {
			return all, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d backfills had not ended: %w", len(ids)-ended, len(ids), context.Cause(ctx))
		}
	}
}
