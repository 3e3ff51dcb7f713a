// Package scheduler decides what enters the queue and when. On every tick it
// walks the live jobs and makes sure that exactly one task carries each of
// them, so that work survives a dead worker, a wiped Redis and an archived
// task. It does no work itself and knows nothing of Google or of quota.
//
// Of backfills, there is a task for those only that have a place. [Admission] gives
// the places out, so that classes, tenants and accounts come by their shares of the
// quota, and the queue holds only what is at work.
//
//	            given a place                 yields: another's turn is next
//	wanted ───────────────────────► held ───────────────────────► yields
//	   ▲                            │  ▲        nobody waits any more │
//	   │                            │  └──────────────────────────────┤
//	   │ resumed, started again     ▼                                 │
//	   └───────────────────────── rests          the slice has ended  │
//	   └──────────────────────────────────────────────────────────────┘
//
// What a tick does with a live job:
//
//	lease  task              action
//	none   none, and no place leave it: it waits for its turn
//	live   any               leave it: its owner is at work
//	ended  any               take over (epoch+1), put     cause lease-expired
//	none   none              put                          cause task-missing
//	none   dead              drop, put                    cause task-dead
//	none   active for long   take over (epoch+1), put     cause never-claimed
//	none   pending           leave it: it will run
//
// Invariants:
//   - Every action may be repeated, and any number of schedulers may run: a
//     task's id is fixed by the job's row, a put of an id that exists changes
//     nothing, and of two takeovers of one epoch one gets [jobs.ErrStale].
//   - A scheduler that dies between two steps leaves a job without a lease and
//     without a task, which the next tick of any scheduler mends.
//   - The row's times are compared with the local clock. The store writes them
//     with the clock of its own machine; a store on another machine must keep
//     that clock within a second or two of the scheduler's.
package scheduler
