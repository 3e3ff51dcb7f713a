// Package quota keeps callers of Google's APIs within Google's quota, and the
// background within less than that, so that people who wait always find room.
//
// A [PriceList] says what a project may spend and what each call costs. A
// [Ledger] counts what all processes spend, in sliding windows in Redis, and
// admits or refuses a cost in one round trip. A [Transport] is an
// http.RoundTripper that charges each request to a ledger before it is sent. A
// [Lane] says how far up a limit a caller may fill it. [Classify] reads what
// Google's own refusals mean.
//
// The package decides about quota only. What an answer means for an account or
// a message is for its callers to say.
//
// Invariants of the ledger:
//   - In no window of Google's length, however aligned, are more units admitted
//     than the limit; and a lane admits nothing while all lanes together have
//     used its ceiling.
//   - A call is charged to all of its limits or to none.
//   - A refusal charges nothing and names the moment at which the same call
//     fits if nobody else spends: not a microsecond earlier.
//   - The clock is that of Redis. Callers' clocks do not matter.
//   - When it is unknown whether units were charged, they count as charged.
package quota
