package scheduler

import (
	"time"

	"headroom/jobs"
)

// How long a job may stand where it is before it is rescued. Of a lease and of a
// slice, the bounds follow from the settings: see [Options].
const (
	// justUpdated: a worker may be about to put the task.
	justUpdated = time.Second
	// claimPatience: from taking a task to holding the lease is one write to the store.
	claimPatience = 5 * time.Second
	// lateBound: no worker puts a task off for much longer than a minute, unless
	// the row says until when.
	lateBound = 5 * time.Minute
	// waitBound: no moment more than a day ahead is believed, and a day's budget
	// comes back within 25 hours, on the day that has as many.
	waitBound = 26 * time.Hour
	// pendingBound: a task may wait for a worker as long as it must, but after so
	// long it is worth a look whether it is still in its list, which takes as
	// many steps as the list is long.
	pendingBound = 5 * time.Minute

	// overdueAfter: a task that should have come back by now. That is shown only,
	// since another task would not find a worker either.
	overdueAfter = 30 * time.Second
)

// unrenewed is how long a lease must have stood still before the clock's word
// that it has ended counts: its owner renews it at least as often. So nobody loses
// a job because a clock was set forward.
func (o Options) unrenewed() time.Duration { return o.Lease / 3 }

// leaseBound is how long a lease may stand still whatever the clocks say: an owner
// that could not renew it for one lease has stopped by itself.
func (o Options) leaseBound() time.Duration { return 2 * o.Lease }

// sliceBound is how long a slice may keep its lease and bring nothing: Asynq ends
// its run at the task's timeout, and then the lease must end.
func (o Options) sliceBound() time.Duration { return o.TaskTimeout + o.leaseBound() }

// A sight is something seen of a job that is not to last. As long as it is seen
// at every tick with the same mark, it grows older, by a clock that nobody sets.
type sight struct {
	ref  jobs.TaskRef
	what string
	mark int64
}

// sights tell since when each has been seen. A row alone cannot: its times are
// wall-clock times of other machines, and its last update may be as old as the
// task's time in the queue.
type sights map[sight]time.Duration

// age is how long a sight has been seen. It must be asked for at every tick.
func (t *tick) age(s sight) time.Duration {
	since, ok := t.scheduler.sights[s] // not written while a tick runs
	if !ok {
		since = t.elapsed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sights[s] = since
	return t.elapsed - since
}

// leaseSight is a lease that is not renewed.
func leaseSight(j jobs.Job) sight { return sight{j.Ref(), "lease", j.LeaseUntil.UnixMilli()} }

// sliceSight is a slice that brings nothing.
func sliceSight(j jobs.Job) sight {
	p := j.Progress
	return sight{j.Ref(), "slice", p.Listed + p.Noted + p.Done() + p.Bytes + j.Units + j.Requeued + int64(j.Refusals+j.Failures)}
}

// taskSight is a task that does not move while nothing is written to its job.
func taskSight(j jobs.Job, s TaskState) sight {
	return sight{j.Ref(), s.String(), j.UpdatedAt.UnixMilli()}
}
