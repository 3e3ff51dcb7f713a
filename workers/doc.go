// Package workers runs the work: one Asynq server per lane, and the handler
// that runs a job one slice at a time. It decides when a slice ends, what a
// fault means for an item and for its job, and how long refused work waits. It
// does not decide what a call costs or whether it may be made (package quota,
// below [Mailbox]), nor what enters the queue first (package scheduler).
//
// A slice is one run of one task. It claims the job in the [Store], has a run of the
// job's kind (backfill, live sync, calendars) work for [Options.SliceTime], and ends in
// exactly one of these ways:
//
//	what happened                      job's row        task
//	time is up, or shutting down       EndSlice         successor enqueued, nil
//	everything is dealt with           Finish           nil
//	refused for quota                  Park, refused    *RequeueError: runs again at the moment
//	only deferred items are left       Park             *RequeueError
//	something broke                    Park, failure    *RequeueError, after a back-off
//	the same too often, and it is of   Finish failed    nil
//	a kind that does not pass
//	the account must act               Finish blocked   nil
//	the job has another owner          (nothing)        nil
//	a pause is requested               EndSlice         nil
//	a cancel is requested, and any     or as above      nil
//	of these
//
// Invariants:
//   - At most one slice of a job writes. The lease is renewed while the slice
//     runs; once it is lost, the slice's context ends and nothing more is
//     written. The store also fences every write by epoch.
//   - An item leaves the queue of pending ones only in a committed result. What
//     was in flight when a slice stopped is either committed or still pending.
//   - Waiting spends no retry and archives nothing: a [RequeueError] is no
//     failure to Asynq, and failures are counted in the job's row.
//   - A row of faults counts as an outage of Google and costs the items nothing, unless
//     another fetch works at about the same time (see breaker.go). Outages end no job.
//   - No panic leaves the slice, whether in our code, a parser or a store.
package workers
