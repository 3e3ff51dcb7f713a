// Package quota keeps callers of Google's APIs within Google's quota, and the
// background within less than that, so that people who wait always find room.
//
// A [price.List] says what a project may spend and what each call costs. A
// [Ledger] counts what all processes spend, in sliding windows in Redis, and
// admits or refuses a cost in one round trip. A [Transport] is an
// http.RoundTripper that charges each request to a ledger before it is sent. A
// [Lane] says how far up a limit a caller may fill it. [Classify] reads what
// Google's own refusals mean.
//
// The package decides about quota only. What an answer means for an account or
// a message is for its callers to say.
//
// # Invariants
//
//   - In no window of Google's length, however aligned, are more units admitted
//     than the limit; and a lane admits nothing while all lanes together have
//     used its ceiling.
//   - A call is charged to all of its limits or to none.
//   - A refusal charges nothing, and names the moment at which the same call fits
//     if nobody else spends: not a microsecond earlier. Only what may be used after
//     a refusal of Google's, or under lending ceilings, changes by itself meanwhile.
//   - The clock is that of Redis. Callers' clocks do not matter, but for which day
//     it is. A clock that steps back never frees a unit.
//   - When it is unknown whether units were charged, they count as charged. The
//     ledger repeats a call only when Redis said that it was not run.
//   - When it is unknown what was spent (Redis lost its data, was replaced, or
//     threw keys away), background lanes hold for one window, and interactive
//     calls keep to what the background's ceilings leave.
//   - A cool-down that Google demanded binds every lane and process with their next
//     decision, and no later answer shortens it. After it, one call goes ahead.
//   - After [Ledger.Publish] has returned, no decision is made by older settings.
//
// # Why no window exceeds the limit
//
// Units are counted in buckets of a second, and a unit counts in its own bucket
// and in 61 more: it leaves when the bucket number has grown by 62. Take any 60
// seconds. They touch at most 61 buckets, and at the last admission in them all of
// those still count, since the oldest is at most 60 buckets older than the newest.
// So the sum that the last admission was checked against holds every unit of the
// 60 seconds, and it was at most the limit. Nothing was assumed about alignment.
//
// 60 buckets more would do for that. The 61st is the guard: Google counts calls
// when they arrive and not when they were admitted, so two calls that were
// admitted 60 seconds apart may arrive 59.9 seconds apart. A call that is on its
// way for up to a second longer than another still meets a window with room. The
// price is one part in 62 of the limit; without it, Google refuses calls under
// ordinary jitter (docs/ledger.md has the figures).
//
// What a clock that steps forward frees too early cannot be noticed, since the
// script knows no other clock: let Redis' host slew its clock, not step it.
package quota
