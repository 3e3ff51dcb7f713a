package quota

import (
	"context"
	"time"
)

// A Limiter says which calls may be made, and counts them. What it is asked and what
// it answers are plain values, so it may stand in the same process or behind a
// network. A Limiter is safe for concurrent use.
type Limiter interface {
	// Acquire gets leave for one call: an in-flight slot of the caller's user, and the
	// call's cost in units of every limit that it counts for. It waits for both for up
	// to [Caller.MaxWait]. When they are not to be had by then it returns a
	// [*DeniedError] that says when to ask again; [ErrNeverFits] when no wait would
	// help; [ErrUnavailable] when the limiter does not answer, and then it is unknown
	// whether the units were charged. Other errors wrap [ErrCaller],
	// [ErrUnknownProject], or the cause with which ctx ended.
	Acquire(ctx context.Context, c Call) (Permit, error)

	// Peek reports how full a caller's limits for an API are, and charges nothing. A
	// caller without a user looks at the project.
	Peek(ctx context.Context, c Caller, api string) (Decision, error)
}

// Prices say what calls cost.
type Prices interface {
	// Cost returns the units that a call of a method costs a project. It wraps
	// [ErrUnknownProject] when there is no price list for the project and the API.
	Cost(project string, m Method) (units int64, err error)
}

// A Call is one HTTP request to Google, as far as a [Limiter] needs to know it.
type Call struct {
	Caller   Caller
	API      string   // "gmail" or "calendar"
	Methods  []string // ids of the discovery document; one, or those of a batch's parts
	Cost     int64    // in units, of all parts together; 0: it needs a slot only
	Weight   int64    // how many calls it is to Google at once: the parts of a batch; 1 if zero
	Features []string // parts of Google's service that it uses and that may be closed by themselves
}

// A Permit is leave to make one call. Whoever has one must release it. It is safe for
// concurrent use.
type Permit interface {
	// Decision is what the limiter charged, and how full the limits were then.
	Decision() Decision
	// Touch says that the call makes progress. The slot of a permit that was neither
	// touched nor released for five minutes is given to others.
	Touch()
	// Release gives the slot back and reports what Google answered. Only the first
	// Release counts. An error means that the limiter does not know the answer; the
	// slot is free after some seconds all the same.
	Release(ctx context.Context, a Answer) error
}

// An Answer is what a [Limiter] is told of a call that has ended. The zero value
// stands for a call that brought nothing, because it was not sent or got no answer.
type Answer struct {
	Refusals []Refusal // of quota, by Google; those of a batch's parts too
	Bytes    int64     // received of the body
	At       time.Time // when the answer began to arrive, on the local clock
}
