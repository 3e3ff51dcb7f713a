// Package jobs is the vocabulary of the work: which kinds of job there are,
// the states that a job goes through, the ids and payloads of the tasks that
// carry it, and the rows that it produces. It puts tasks on the queue; it never
// talks to Google and keeps no state of its own.
//
// A job is a durable intention ("bring this mailbox to the store") whose row
// lives in the store. A slice is a few seconds of its work: one run of one
// Asynq task. At any moment a live job has exactly one task, named by
// [TaskRef.TaskID]:
//
//	queued ──► running ──► completed | completed-with-failures
//	   ▲          │ ▲
//	   │          ▼ │      (refused by quota: back to the queue, until a moment)
//	   ├────── waiting
//	   │          │
//	   │          └──────► failed   (too many faults in a row that do not pass)
//	   │                   blocked  (the account must act)
//	   │
//	   ├─ resume ─ paused     ◄── pause  ── queued, running or waiting
//	   ├─ resume ─ blocked
//	   └─ start ── cancelled  ◄── cancel ── queued, running, waiting, paused or blocked
//
// Pause and cancel go through the row. A job without an owner changes its state
// at once; an owner finds out when it renews its lease, starts no more calls,
// commits what is in flight, and then brings the job there. A job that has ended
// starts over with start, whatever its end was; retry-failed makes one that
// completed with failures go on with these only. Wherever a job is asked to go, it
// goes on to completed when nothing is left to do by then.
//
// Invariants:
//   - The store is the truth. A task that the queue lost is made again from the
//     job's row; a task whose epoch is not the row's does nothing.
//   - The transitions are the methods of [Job] in lifecycle.go, and nowhere else.
//   - The epoch rises whenever a job changes owner without the old owner's
//     consent. It is part of the task id and of every write, so an owner that
//     was given up for dead can do no harm when it comes back.
//   - A job completes only when none of its items is pending.
//   - Progress never spends a retry, and neither does waiting for quota.
package jobs
