package jobs

import (
	"fmt"
	"time"
)

// The methods of this file are the transitions of the package comment's diagram.
// They change the row in memory only: a store loads the row, calls one of them on
// the store's clock, and saves the row, all in one transaction. A method that
// returns an error has not changed the row, with one exception at [Job.Claim].

// Rests reports whether a job in state s goes on only when somebody resumes or
// starts it.
func (s State) Rests() bool { return s == Paused || s == Blocked || s == Cancelled }

// Completes reports whether the job ends with nothing left to do.
func (f Finish) Completes() bool { return f.State == Completed || f.State == CompletedWithFailures }

// OwnedBy returns [ErrStale] unless ref names the slice that holds the job's lease.
// A lease that ran out still counts until another run takes it.
func (j *Job) OwnedBy(ref TaskRef) error {
	if j.Epoch == ref.Epoch && j.Slice == ref.Slice && !j.LeaseUntil.IsZero() && j.State.Live() {
		return nil
	}
	return j.stale()
}

// Claim takes the lease of the slice that ref names. A lease that another run let
// expire is taken under the next epoch, which fences that run off; the caller goes
// on with [Job.Ref].
//
// It returns [ErrStale] for another epoch, for a slice that is not due yet, and for a
// job that is paused or has ended; [ErrSliceDone] for a slice that was completed
// before; and [ErrHeld] while another run holds the lease. If the owner died before
// it came to a requested pause or cancellation, Claim applies that request and
// returns ErrStale with changed true: the row is to be saved all the same.
func (j *Job) Claim(ref TaskRef, now time.Time, lease time.Duration) (changed bool, err error) {
	switch {
	case j.Epoch != ref.Epoch, !j.State.Live(), ref.Slice > j.Slice:
		return false, j.stale()
	case ref.Slice < j.Slice:
		return false, fmt.Errorf("job is at slice %d: %w", j.Slice, ErrSliceDone)
	case j.LeaseUntil.After(now):
		return false, fmt.Errorf("until %s: %w", j.LeaseUntil.Format(time.RFC3339Nano), ErrHeld)
	case j.Wanted != "":
		j.Epoch++
		j.release(now)
		return true, j.stale()
	case !j.LeaseUntil.IsZero():
		j.Epoch++
	}
	j.State = Running
	if j.Admission == NotAdmitted { // whoever made the task admitted the job
		j.Admission = Admitted
	}
	j.WaitingFor, j.WaitUntil = "", time.Time{}
	j.Renew(now, lease)
	if j.StartedAt.IsZero() {
		j.StartedAt = now
	}
	return true, nil
}

// Renew makes the owner's lease last until lease from now, to the millisecond.
func (j *Job) Renew(now time.Time, lease time.Duration) {
	j.LeaseUntil = now.Add(lease.Truncate(time.Millisecond))
}

// EndSlice completes the owner's slice: the next one is due, and nobody owns the
// job. A requested pause or cancellation takes effect.
func (j *Job) EndSlice(now time.Time) {
	j.Slice++
	j.release(now)
}

// Park gives the owner's slice back to be run again at p.Until. A refusal counts as
// a refusal and as a return to the queue; a fault counts as a failure; waiting for
// an item that is due later counts as neither. A requested pause or cancellation
// takes effect instead of the wait.
func (j *Job) Park(p Park, now time.Time) {
	j.State = Waiting
	j.WaitingFor, j.WaitUntil = p.For, p.Until.UTC().Truncate(time.Millisecond)
	switch {
	case p.Refused:
		j.Refusals++
		j.Requeued++
		j.QuotaWait = true
	case p.Failure != "":
		if j.QuotaWait { // the failures before the wait for quota were of another fault
			j.QuotaWait, j.FailingSince = false, time.Time{}
		}
		j.Failures++
		j.LastError = p.Failure
	}
	j.release(now)
}

// Finish ends the job in the terminal state f.State. Pending says that items of the
// job are pending; a job completes only without them, and a mail sync only when the
// history was read since it was last asked for. Otherwise the slice ends, as by
// [Job.EndSlice]. If a cancellation was requested, the job completes if it can and
// is cancelled otherwise. A state that is not terminal is an error.
func (j *Job) Finish(f Finish, pending bool, now time.Time) error {
	switch {
	case !f.State.Terminal():
		return fmt.Errorf("state %q is not a terminal one", f.State)
	case f.Completes() && (pending || j.Kind == MailSync && !j.Checkpoint.Listed):
		j.EndSlice(now)
		return nil
	case !f.Completes() && j.Wanted == Cancelled:
		f.State = Cancelled
	}
	j.LastError = f.Error
	j.bring(f.State, now)
	return nil
}

// TakeOver gives the job's owner, or its task, up for dead: the same slice is due
// again under the next epoch. A requested pause or cancellation takes effect. It
// returns [ErrStale] when the row was written since it was as seen, and for a job
// that is paused or has ended: of several callers who saw the same row, one
// succeeds.
func (j *Job) TakeOver(seen Job, now time.Time) error {
	if j.Ref() != seen.Ref() || !j.LeaseUntil.Equal(seen.LeaseUntil) || !j.UpdatedAt.Equal(seen.UpdatedAt) || !j.State.Live() {
		return j.stale()
	}
	j.Epoch++
	j.release(now)
	return nil
}

// Pause stops a job until [Job.Resume]: at once or, while somebody owns it, when the
// owner next renews its lease. Changed is false when the job is paused already, or
// is about to be. It returns a [*StateError] for a job that has nothing to pause.
func (j *Job) Pause(now time.Time) (changed bool, err error) {
	switch {
	case j.Wanted == Cancelled:
		return false, j.beingCancelled("pause")
	case j.State == Paused, j.Wanted == Paused:
		return false, nil
	case j.State == Blocked:
		return false, j.cannot("pause", "it makes no calls; resume it when the account has acted, or cancel it")
	case !j.State.Live():
		return false, j.cannot("pause", "start it again for another run")
	}
	j.want(Paused, now)
	return true, nil
}

// Resume queues a job that was paused, or that was blocked until the account acted,
// under the next epoch. A pause that has not taken effect yet is taken back. Changed
// is false when the job is live already. It returns a [*StateError] for a job that
// has ended or is about to.
func (j *Job) Resume() (changed bool, err error) {
	switch {
	case j.Wanted == Cancelled:
		return false, j.beingCancelled("resume")
	case j.Wanted == Paused:
		j.Wanted = ""
		return true, nil
	case j.State.Live():
		return false, nil
	case j.State != Paused && j.State != Blocked:
		return false, j.cannot("resume", "start it again for another run")
	}
	j.requeue()
	return true, nil
}

// Cancel ends a job, at once or as [Job.Pause] does. Changed is false when the job is
// cancelled already, or is about to be. It returns a [*StateError] for a job that has
// ended otherwise.
func (j *Job) Cancel(now time.Time) (changed bool, err error) {
	switch {
	case j.State == Cancelled, j.Wanted == Cancelled:
		return false, nil
	case j.State.Terminal() && j.State != Blocked:
		return false, j.cannot("cancel", "there is nothing left to cancel")
	}
	j.want(Cancelled, now)
	return true, nil
}

// CanStart reports whether starting a backfill makes a new run of it: false for one
// that is live or paused. It returns a [*StateError] while the job is being
// cancelled.
func (j *Job) CanStart() (bool, error) {
	if j.Wanted == Cancelled {
		return false, j.beingCancelled("start")
	}
	return j.State.Terminal(), nil
}

// Restart makes a new run of a job that has ended, under the next epoch. A backfill
// begins as if it had never run, but for its id and, with keepPin, the history id
// that was pinned before: what has changed since then has yet to be read if messages
// are stored. A sync keeps its counters, which are those of all runs.
func (j *Job) Restart(project string, keepPin bool) {
	if j.Kind == MailBackfill {
		fresh := Job{ID: j.ID, Kind: j.Kind, Account: j.Account, Filter: j.Filter, Epoch: j.Epoch, CreatedAt: j.CreatedAt}
		if keepPin {
			fresh.Checkpoint.HistoryID = j.Checkpoint.HistoryID
		}
		*j = fresh
	}
	j.requeue()
	j.Project, j.Slice, j.Wanted = project, 0, ""
	j.Checkpoint.Listed = false
	j.StartedAt = time.Time{}
}

// Wake queues a waiting job at once, under the next epoch, which voids the task that
// it waits in.
func (j *Job) Wake() {
	j.Epoch++
	j.State, j.WaitingFor, j.WaitUntil = Queued, "", time.Time{}
	j.Checkpoint.Listed = false
}

// CanRetry returns a [*StateError] unless items that the job gave up may be made
// pending again. [Job.Retry] follows.
func (j *Job) CanRetry() error {
	switch j.State {
	case Cancelled, Failed:
		return j.cannot("retry failed items of", "start it again, which fetches all that is not stored")
	case Blocked:
		return j.cannot("retry failed items of", "resume it when the account has acted, and then retry")
	}
	return nil
}

// Retry queues a job that has completed, under the next epoch, because items of it
// are pending again. One that is live or paused stays as it is.
func (j *Job) Retry() {
	if j.State.Terminal() {
		j.requeue()
	}
}

// Admit changes the admission of a live job. It returns [ErrStale] when the job is no
// longer live, or has another admission than from.
func (j *Job) Admit(from, to Admission) error {
	if !j.State.Live() || j.Admission != from {
		return j.stale()
	}
	j.Admission = to
	return nil
}

// Progressed ends a row of refusals and failures, because something was done.
func (j *Job) Progressed() { j.Refusals, j.Failures = 0, 0 }

// Touch marks the row as written at now. Stores call it with each save.
func (j *Job) Touch(now time.Time) {
	j.UpdatedAt = now
	if j.Failures == 0 {
		j.FailingSince = time.Time{}
	} else if j.FailingSince.IsZero() || j.FailingSince.After(now) {
		j.FailingSince = now
	}
}

// release ends the lease. A job that yields waits for its next admission, and a
// requested pause or cancellation takes effect.
func (j *Job) release(now time.Time) {
	j.LeaseUntil = time.Time{}
	if j.Admission == Yielding {
		j.Admission = NotAdmitted
		if j.State == Running {
			j.State = Queued
		}
	}
	if j.Wanted != "" {
		j.bring(j.Wanted, now)
	}
}

// want brings a job to a state, or asks its owner to. The next epoch voids the job's
// task, and fences off an owner that let its lease expire.
func (j *Job) want(to State, now time.Time) {
	if j.LeaseUntil.After(now) {
		j.Wanted = to
		return
	}
	j.Epoch++
	j.bring(to, now)
}

// bring brings a job to a state in which nobody owns it.
func (j *Job) bring(to State, now time.Time) {
	j.State, j.Wanted = to, ""
	j.WaitingFor, j.WaitUntil = "", time.Time{}
	j.LeaseUntil, j.FinishedAt = time.Time{}, time.Time{}
	if to.Terminal() {
		j.FinishedAt = now
	}
}

// requeue queues a job that rests or has ended.
func (j *Job) requeue() {
	j.Epoch++
	j.State, j.Admission = Queued, FirstAdmission(j.Kind)
	j.LastError, j.Refusals, j.Failures = "", 0, 0
	j.FinishedAt = time.Time{}
}

// stale says where the job is, to a caller that believes it elsewhere.
func (j *Job) stale() error {
	return fmt.Errorf("job %s is %s at epoch %d, slice %d: %w", j.ID, j.State, j.Epoch, j.Slice, ErrStale)
}

func (j *Job) cannot(verb, next string) error {
	return &StateError{Verb: verb, Job: j.ID, State: j.State, Next: next}
}

func (j *Job) beingCancelled(verb string) error {
	return j.cannot(verb, "it is being cancelled; start it again once it is")
}
