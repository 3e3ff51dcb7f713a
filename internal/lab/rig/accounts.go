package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/internal/control"
	"headroom/jobs"
)

// operate does what an operator can do, from outside of all processes.
func (r *Rig) operate(log *zap.Logger, do func(*control.Control) error) error {
	c := control.New(control.Options{Config: r.Config, Log: log})
	return errors.Join(do(c), c.Close())
}

// AddAccount adds an account, if it is not there.
func (r *Rig) AddAccount(ctx context.Context, email, project string, log *zap.Logger) error {
	return r.operate(log, func(c *control.Control) error {
		_, err := c.AddAccount(ctx, email, project, control.Assignment{})
		if errors.Is(err, jobs.ErrExists) {
			return nil
		}
		return err
	})
}

// StartBackfill adds an account, if it is not there, and starts a backfill of its
// mailbox.
func (r *Rig) StartBackfill(ctx context.Context, email, project string, filter jobs.Filter, log *zap.Logger) (started jobs.Job, err error) {
	if err := r.AddAccount(ctx, email, project, log); err != nil {
		return jobs.Job{}, err
	}
	err = r.operate(log, func(c *control.Control) error {
		done, err := c.StartBackfill(ctx, email, filter)
		started = done.Job
		return err
	})
	return started, err
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
