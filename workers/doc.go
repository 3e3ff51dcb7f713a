// Package workers runs the work: one Asynq server per lane, and the handler
// that runs a job one slice at a time. It decides when a slice ends, what a
// fault means for an item and for its job, and how long refused work waits. It
// does not decide what a call costs or whether it may be made (package quota,
// below [Mailbox]), nor what enters the queue first (package scheduler).
//
// A slice is one run of one task. It claims the job in the [Store], works for
// [Options.SliceTime], and ends in exactly one of these ways:
//
//	what happened                      job's row        task
//	time is over, or shutting down     EndSlice         successor enqueued, nil
//	everything is dealt with           Finish           nil
//	refused for quota                  Park, refused    *ParkedError: retried at the moment
//	only deferred items are left       Park             *ParkedError
//	something broke                    Park, failure    *ParkedError, after a back-off
//	the same too often, and it is of   Finish failed    nil
//	a kind that does not pass
//	the account must act               Finish blocked   nil
//	the job has another owner          (nothing)        nil
//	the job is wanted paused           EndSlice         nil
//	or cancelled, and any of these     or as above      nil
//
// Invariants:
//   - At most one slice of a job writes. The lease is renewed while the slice
//     runs; once it is lost, the slice's context ends and nothing more is
//     written. The store fences every write by epoch besides.
//   - An item leaves the queue of pending ones only in a committed result. What
//     was in flight when a slice stopped is either committed or still pending.
//   - Waiting spends no retry and archives nothing: a [ParkedError] is no
//     failure to Asynq, and failures are counted in the job's row.
//   - A run of faults is an outage of Google's, and costs the items nothing, unless
//     another fetch works at about the same time. Outages end no job.
//   - No panic, of ours, of a parser or of a store, leaves the slice.
package workers
