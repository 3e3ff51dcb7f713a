// Package scheduler decides what enters the queue and when. On every tick it
// walks the live jobs and makes sure that exactly one task carries each of
// them, so that work survives a dead worker, a wiped Redis and an archived
// task. It does no work itself and knows nothing of Google or of quota.
//
// Only admitted backfills have a task. [Admission] admits them, so that classes, tenants
// and accounts get their shares of the quota, and the queue holds only jobs that are
// worked on.
//
//	            admitted                      another job's turn is next
//	waiting ──────────────────────► admitted ────────────────────► yielding
//	   ▲                            │  ▲        nobody waits any more │
//	   │                            │  └──────────────────────────────┤
//	   │ resumed, started again     ▼                                 │
//	   └───────────────────────── rests          the slice has ended  │
//	   └──────────────────────────────────────────────────────────────┘
//
// What a tick does with a live job, of whatever kind, is in the table below. A rescue is
// always the same: the job is taken over (epoch+1), so that everything that the old epoch
// has left has no effect, and the task of the new epoch is put. If a worker dies while a
// pause or cancel is requested, the rescue applies it, and puts no task.
//
//	lease                          task               action
//	none, not admitted             any                leave it: it waits for admission
//	live                           any                leave it: its owner is at work
//	ended, not renewed since       any                rescue  lease-expired
//	live, not renewed for two      any                rescue  lease-frozen
//	live, renewed, no progress     any                rescue  slice-hung
//	none                           none               rescue  task-missing
//	none                           pending            leave it: it will run
//	none                           pending, in no     rescue  task-missing
//	                               list, for long
//	none                           active for long    rescue  never-claimed
//	none                           delayed            leave it: it will be pending
//	none                           delayed, beyond    rescue  task-late
//	                               the job's moment
//	none                           delayed for over   rescue  wait-too-long
//	                               a day
//	none                           archived, or       rescue  task-dead
//	                               completed
//
// Jobs that rest need no rescue: a paused or blocked job waits for somebody to act, and
// the others have ended. A job that waits for admission needs none either, however long
// it waits. After the walk, the tick looks at a page of the tasks that are not pending,
// and removes those of slices that are over, and broken ones. It registers the queues
// that Asynq has forgotten (queue-forgotten), and reports those that somebody has paused.
// How long "for long" is, and why, is explained with the constants.
//
// Invariants:
//   - Every action may be repeated, and any number of schedulers may run: of all
//     takeovers of a job that were decided on the same row, one succeeds, and none
//     if anything was written to the row since. So no loss is rescued twice, even
//     if a tick is slow.
//   - A scheduler that dies between two steps leaves a job without a lease and
//     without a task, which the next tick of any scheduler repairs.
//   - No clock that is set, on any machine, takes a job from an owner at work or
//     lets a dead owner keep it: a lease has ended when its time has passed and
//     it was not renewed while the scheduler watched, by a clock that nobody sets.
package scheduler
