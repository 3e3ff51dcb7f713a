package scheduler

import (
	"time"

	"headroom/jobs"
)

// How long a job may stay in a state before it is rescued. The bounds of a lease and of
// a slice follow from the settings: see [Options].
const (
	// justUpdated: a worker may be about to put the task.
	justUpdated = time.Second
	// claimPatience: from taking a task to holding the lease is one write to the store.
	claimPatience = 5 * time.Second
	// lateBound: no worker delays a task for much longer than a minute, unless the
	// row says until when.
	lateBound = 5 * time.Minute
	// waitBound: no moment more than a day ahead is believed, and a day's budget
	// comes back within 25 hours, on the day that has as many.
	waitBound = 26 * time.Hour
	// pendingBound: a task may wait for a worker as long as it must, but after so
	// long it is worth a look whether it is still in its list, which takes as
	// many steps as the list is long.
	pendingBound = 5 * time.Minute

	// overdueAfter: a task that should have come back by now. That is only shown,
	// since another task would not find a worker either.
	overdueAfter = 30 * time.Second
)

// unrenewed is how long a lease must not have been renewed before it counts as ended:
// its owner renews it at least as often. So nobody loses a job because a clock was set
// forward.
func (o Options) unrenewed() time.Duration { return o.Lease / 3 }

// leaseBound is how long a lease may go without renewal whatever the clocks say: an
// owner that could not renew it for one lease has stopped by itself.
func (o Options) leaseBound() time.Duration { return 2 * o.Lease }

// sliceBound is how long a slice may keep its lease without progress: Asynq ends its
// run at the task's timeout, and then the lease must end.
func (o Options) sliceBound() time.Duration { return o.TaskTimeout + o.leaseBound() }

// An observation is something seen of a job that should not last. As long as it is seen
// at every tick with the same mark, it grows older, by a clock that nobody sets.
type observation struct {
	ref  jobs.TaskRef
	what string
	mark int64
}

// observations holds since when each has been seen. A row alone cannot tell: its times are
// wall-clock times of other machines, and its last update may be as old as the
// task's time in the queue.
type observations map[observation]time.Duration

// age is how long an observation has lasted. It must be asked for at every tick.
func (t *tick) age(s observation) time.Duration {
	since, ok := t.scheduler.observations[s] // not written while a tick runs
	if !ok {
		since = t.elapsed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observations[s] = since
	return t.elapsed - since
}

// leaseSeen is a lease that is not renewed.
func leaseSeen(j jobs.Job) observation {
	return observation{j.Ref(), "lease", j.LeaseUntil.UnixMilli()}
}

// sliceSeen is a slice without progress.
func sliceSeen(j jobs.Job) observation {
	p := j.Progress
	return observation{j.Ref(), "slice", p.Listed + p.Noted + p.Done() + p.Bytes + j.Units + j.Requeued + int64(j.Refusals+j.Failures)}
}

// taskSeen is a task that does not move while nothing is written to its job.
func taskSeen(j jobs.Job, s TaskState) observation {
	return observation{j.Ref(), s.String(), j.UpdatedAt.UnixMilli()}
}
