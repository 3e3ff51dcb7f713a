package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// A cause is why something was rescued.
type cause string

const (
	causeLeaseExpired   cause = "lease-expired"   // the owner died at work
	causeLeaseFrozen    cause = "lease-frozen"    // the same, but a clock was set back and the lease seems to last
	causeSliceHung      cause = "slice-hung"      // the owner renews its lease and makes no progress
	causeTaskMissing    cause = "task-missing"    // the queue lost the task, or never got it
	causeTaskDead       cause = "task-dead"       // the task was archived
	causeTaskLate       cause = "task-late"       // the task is put off for longer than its job waits
	causeNeverClaimed   cause = "never-claimed"   // the worker died between taking the task and the lease
	causeWaitTooLong    cause = "wait-too-long"   // the job waits for a moment that cannot be right
	causeQueueForgotten cause = "queue-forgotten" // Asynq's list of queues lost one
)

var causes = []cause{causeLeaseExpired, causeLeaseFrozen, causeSliceHung, causeTaskMissing, causeTaskDead,
	causeTaskLate, causeNeverClaimed, causeWaitTooLong, causeQueueForgotten}

// tick looks at every live job once. One job's error does not keep the others
// from their rescue; all errors come back joined.
func (s *Scheduler) tick(ctx context.Context) error {
	if err := s.register(ctx); err != nil {
		return err // without a queue there is nothing to rescue into
	}
	t := &tick{scheduler: s, elapsed: s.opts.ElapsedFunc(), now: s.opts.NowFunc(), observations: observations{}}
	if err := s.repairClock(ctx, t.now, t.elapsed); err != nil {
		return err
	}
	live, err := s.opts.Store.LiveJobs(ctx)
	if err != nil {
		return fmt.Errorf("list live jobs: %w", err)
	}
	forEach(&t.failures, rescuesAtATime, live, func(job jobs.Job) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := t.check(ctx, job); err != nil {
			return fmt.Errorf("job %s: %w", job.ID, err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return t.err() // what an unfinished walk has not seen may still be there
	}
	s.observations, s.suspicion = t.observations, t.suspicion.Load()
	s.metrics.live.Set(float64(len(live)))
	s.watchFaults(live, t.now)
	s.metrics.overdue.Set(float64(t.overdue.Load()))
	if err := s.sweep(ctx, live); err != nil {
		t.add(err)
	}
	return t.err()
}

// A tick is one walk over the live jobs. Its methods are safe for concurrent
// use.
type tick struct {
	scheduler *Scheduler
	elapsed   time.Duration // for the age of observations
	now       time.Time     // to compare with rows
	overdue   atomic.Int64
	suspicion atomic.Bool // something looks lost, but has to be seen twice

	failures
	observations observations // guarded by mu
}

// check does what the table of the package comment says for one job.
func (t *tick) check(ctx context.Context, job jobs.Job) error {
	var why cause
	switch {
	case !job.LeaseUntil.IsZero():
		why = t.checkOwned(job)
	case job.Admission == jobs.NotAdmitted: // it is to have no task until it is admitted
	default:
		task, err := t.scheduler.opts.Queue.Look(ctx, job.Ref())
		if err != nil {
			return err
		}
		if why, err = t.checkTask(ctx, job, task); err != nil {
			return err
		}
	}
	if why == "" {
		return nil
	}
	return t.rescue(ctx, job, why)
}

// checkOwned returns what is wrong with a job that has an owner; "": nothing.
func (t *tick) checkOwned(job jobs.Job) cause {
	o := t.scheduler.opts
	unrenewed, fruitless := t.age(leaseSeen(job)), t.age(sliceSeen(job))
	switch {
	case !t.now.Before(job.LeaseUntil):
		if unrenewed >= o.unrenewed() {
			return causeLeaseExpired
		}
		t.suspicion.Store(true)
	case unrenewed >= o.leaseBound():
		return causeLeaseFrozen
	case fruitless >= o.sliceBound():
		return causeSliceHung
	}
	return ""
}

// checkTask returns what is wrong with a job that nobody owns, by its task; "": nothing.
func (t *tick) checkTask(ctx context.Context, job jobs.Job, task Task) (cause, error) {
	still := t.age(taskSeen(job, task.State))
	idle := max(still, t.now.Sub(job.UpdatedAt)) // a clock that was set back makes the row young
	switch task.State {
	case TaskNone:
		if idle >= justUpdated {
			return causeTaskMissing, nil
		}
		t.suspicion.Store(true)
	case TaskDead:
		return causeTaskDead, nil
	case TaskActive:
		if still > claimPatience {
			return causeNeverClaimed, nil
		}
		t.suspicion.Store(true)
	case TaskPending:
		t.countOverdue(job)
		if still > pendingBound {
			return t.checkPending(ctx, job)
		}
	case TaskDelayed:
		t.countOverdue(job)
		switch {
		case task.Due.Sub(t.now) > lateBound && task.Due.Sub(job.WaitUntil) > lateBound:
			return causeTaskLate, nil
		case idle > waitBound && task.Due.After(t.now):
			return causeWaitTooLong, nil
		}
	}
	return "", nil
}

// checkPending checks that a task that has been pending for long is in its list. If so,
// it does so again after the same time.
func (t *tick) checkPending(ctx context.Context, job jobs.Job) (cause, error) {
	switch listed, err := t.scheduler.opts.Queue.Listed(ctx, job.Ref()); {
	case err != nil:
		return "", err
	case !listed:
		return causeTaskMissing, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observations[taskSeen(job, TaskPending)] = t.elapsed
	return "", nil
}

func (t *tick) countOverdue(job jobs.Job) {
	if job.State == jobs.Waiting && !job.WaitUntil.IsZero() && t.now.Sub(job.WaitUntil) > overdueAfter {
		t.overdue.Add(1)
	}
}

// rescue gives the job a new epoch and puts its task. What the old epoch has left, an
// owner, a task or another scheduler's rescue, has no effect from then on.
func (t *tick) rescue(ctx context.Context, job jobs.Job, why cause) error {
	taken, err := t.scheduler.opts.Store.TakeOver(ctx, job)
	if errors.Is(err, jobs.ErrStale) || errors.Is(err, jobs.ErrNotFound) {
		return nil // it moved on by itself, or another scheduler was faster
	}
	if err != nil {
		return err
	}
	if taken.State.Live() && taken.Admission != jobs.NotAdmitted { // else it is where somebody wanted it
		if err := t.scheduler.opts.Queue.Put(ctx, taken.Ref()); err != nil {
			return err // the next tick finds the task missing
		}
	}
	t.scheduler.metrics.rescues.WithLabelValues(string(why)).Inc()
	t.scheduler.opts.Log.Warn("job rescued", zap.String("cause", string(why)), zap.String("job", job.ID),
		zap.String("was", string(job.State)), zap.String("lost_task", job.Ref().TaskID()),
		zap.String("is", string(taken.State)), zap.Int64("epoch", taken.Epoch))
	return nil
}
