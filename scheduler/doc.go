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
// What a tick does with a live job, of whatever kind. A rescue is always the same:
// the job is taken over (epoch+1), which makes nothing of all that the old epoch has
// left, and the new epoch's task is put. A job that is wanted paused or cancelled is
// so then, and has no task put.
//
//	lease                          task               action
//	none, and no place             any                leave it: it waits for its turn
//	live                           any                leave it: its owner is at work
//	ended, not renewed since       any                rescue  lease-expired
//	live, not renewed for two      any                rescue  lease-frozen
//	live, renewed, nothing brought any                rescue  slice-hung
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
// Jobs that rest need no rescue: a paused or blocked one waits for people, and the
// others have ended. Nor does one in line for a place, however long: the order is
// [Admission]'s. After the walk, the tick looks at a page of the tasks that stand
// aside, and removes those of slices that are over, and broken ones. It registers
// the queues that Asynq has forgotten (queue-forgotten), and shows those that
// somebody has paused. How long "for long" is, and why, stands with the constants.
//
// Invariants:
//   - Every action may be repeated, and any number of schedulers may run: of all
//     takeovers of a job that were decided on the same row, one succeeds, and none
//     if anything was written to the row since. So no loss is rescued twice, also
//     where a tick is slow.
//   - A scheduler that dies between two steps leaves a job without a lease and
//     without a task, which the next tick of any scheduler mends.
//   - No clock that is set, on any machine, takes a job from an owner at work or
//     keeps a dead one in its place: a lease has ended when its time has passed and
//     it was not renewed while the scheduler watched, by a clock that nobody sets.
package scheduler
