package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headroom/jobs"
)

// A cause is why a job was put back on the queue.
type cause string

const (
	causeLeaseExpired cause = "lease-expired" // the owner died at work
	causeTaskMissing  cause = "task-missing"  // the queue lost the task, or never got it
	causeTaskDead     cause = "task-dead"     // the task was archived
	causeNeverClaimed cause = "never-claimed" // the worker died between taking the task and the lease
)

var causes = []cause{causeLeaseExpired, causeTaskMissing, causeTaskDead, causeNeverClaimed}

// tick looks at every live job once. One job's error does not keep the others
// from their rescue; all errors come back joined.
func (s *Scheduler) tick(ctx context.Context) error {
	if err := s.opts.Queue.Register(ctx); err != nil {
		return err // without a queue there is nothing to rescue into
	}
	live, err := s.opts.Store.LiveJobs(ctx)
	if err != nil {
		return fmt.Errorf("list live jobs: %w", err)
	}
	t := &tick{scheduler: s, now: time.Now(), claims: claims{}}
	var group errgroup.Group
	group.SetLimit(rescuesAtATime)
	for _, job := range live {
		if ctx.Err() != nil {
			t.fail(ctx.Err())
			break
		}
		group.Go(func() error {
			if err := t.mend(ctx, job); err != nil {
				t.fail(fmt.Errorf("job %s: %w", job.ID, err))
			}
			return nil
		})
	}
	_ = group.Wait() // errors are gathered by fail
	if ctx.Err() != nil {
		return t.err() // what an unfinished walk has not seen is not gone
	}
	s.claims = t.claims
	s.metrics.live.Set(float64(len(live)))
	s.metrics.overdue.Set(float64(t.overdue.Load()))
	return t.err()
}

// A tick is one walk over the live jobs. Its methods are safe for concurrent
// use.
type tick struct {
	scheduler *Scheduler
	now       time.Time
	overdue   atomic.Int64

	mu     sync.Mutex
	claims claims
	first  error
	failed int
}

// claims holds since when tasks have been seen active without a lease. A row
// alone cannot tell: its last update may be as old as the task's time in the
// queue.
type claims map[string]time.Time

// fail notes an error; the first one stands for all, so that an outage does
// not make a message of as many lines as there are jobs.
func (t *tick) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed++; t.first == nil {
		t.first = err
	}
}

func (t *tick) err() error {
	if t.failed > 1 {
		return fmt.Errorf("%w (and %d more errors)", t.first, t.failed-1)
	}
	return t.first
}

// mend does what the table of the package comment says for one job.
func (t *tick) mend(ctx context.Context, job jobs.Job) error {
	if job.LeaseUntil.IsZero() && job.Place == jobs.PlaceWanted {
		return nil // it is to have no task until it is given a place
	}
	if !job.LeaseUntil.IsZero() {
		if t.now.Before(job.LeaseUntil) {
			return nil
		}
		return t.takeOver(ctx, job, causeLeaseExpired)
	}
	q := t.scheduler.opts.Queue
	state, err := q.State(ctx, job.Ref())
	if err != nil {
		return err
	}
	idle := t.now.Sub(job.UpdatedAt)
	switch state {
	case TaskNone:
		if idle < justUpdated {
			return nil
		}
		return t.put(ctx, job, causeTaskMissing)
	case TaskDead:
		if err := t.drop(ctx, job.Ref()); err != nil {
			return err
		}
		return t.put(ctx, job, causeTaskDead)
	case TaskActive:
		if since := t.unclaimed(job.Ref()); t.now.Sub(since) > claimPatience && idle > claimPatience {
			return t.takeOver(ctx, job, causeNeverClaimed)
		}
	case TaskPending:
		if job.State == jobs.Waiting && !job.WaitUntil.IsZero() && t.now.Sub(job.WaitUntil) > overdueAfter {
			t.overdue.Add(1)
		}
	}
	return nil
}

// unclaimed returns since when this scheduler has seen the task active without
// a lease at every tick.
func (t *tick) unclaimed(ref jobs.TaskRef) time.Time {
	since, ok := t.scheduler.claims[ref.TaskID()] // not written while a tick runs
	if !ok {
		since = t.now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims[ref.TaskID()] = since
	return since
}

// takeOver gives the job a new epoch, so that the old owner's writes are
// refused, and puts the new epoch's task.
func (t *tick) takeOver(ctx context.Context, job jobs.Job, why cause) error {
	taken, err := t.scheduler.opts.Store.TakeOver(ctx, job.ID, job.Epoch)
	if errors.Is(err, jobs.ErrStale) || errors.Is(err, jobs.ErrHeld) || errors.Is(err, jobs.ErrNotFound) {
		return nil // another scheduler was faster, or the owner came back, or the job ended
	}
	if err != nil {
		return err
	}
	if !taken.State.Live() || taken.Place == jobs.PlaceWanted { // somebody wanted it so, and it is now
		return nil
	}
	return t.put(ctx, taken, why)
}

// drop deletes a dead task. When another scheduler has replaced it meanwhile
// and a worker has begun, the task is no longer dead and there is no error.
func (t *tick) drop(ctx context.Context, ref jobs.TaskRef) error {
	err := t.scheduler.opts.Queue.Drop(ctx, ref)
	if err == nil {
		return nil
	}
	if state, stateErr := t.scheduler.opts.Queue.State(ctx, ref); stateErr == nil && state != TaskDead {
		return nil
	}
	return err
}

func (t *tick) put(ctx context.Context, job jobs.Job, why cause) error {
	if err := t.scheduler.opts.Queue.Put(ctx, job.Ref()); err != nil {
		return err
	}
	t.scheduler.metrics.rescues.WithLabelValues(string(why)).Inc()
	t.scheduler.opts.Log.Warn("lost work put back on the queue", zap.String("cause", string(why)),
		zap.String("job", job.ID), zap.String("state", string(job.State)), zap.String("task_id", job.Ref().TaskID()))
	return nil
}
