package quota

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the ledger and of [Transport], to be tested with [errors.Is].
var (
	// ErrNeverFits says that a cost is larger than a limit or ceiling, so that
	// no wait would help.
	ErrNeverFits = errors.New("the cost can never fit under the limit")
	// ErrUnavailable says that the ledger could not be asked: nothing is known
	// about the quota, and whether units were charged is unknown too.
	ErrUnavailable = errors.New("the quota ledger is unavailable")
	// ErrNoCaller says that a request reached [Transport] without a [Caller]
	// in its context. It was not sent.
	ErrNoCaller = errors.New("no quota caller in the request's context")
	// ErrCaller says that a [Caller] names no user or lane that units can be charged
	// to; see [Caller.Validate]. Nothing was charged or sent.
	ErrCaller = errors.New("the quota's caller is not valid")
	// ErrUnknownProject says that the ledger has no settings for the project.
	ErrUnknownProject = errors.New("unknown Google Cloud project")
)

// A DeniedError reports that a call does not fit under a limit now. It is not a
// failure and nothing was charged: the same call will fit at At.
type DeniedError struct {
	Caller     Caller
	Cost       int64         // units that were asked for
	Limit      string        // the limit that bound, for instance "user-minute"
	Bound      Bound         // which part of the limit bound
	Used       int64         // units in the limit's window
	Ceiling    int64         // units up to which the lane may fill the window
	RetryAfter time.Duration // from the decision to At
	At         time.Time     // on the clock of Redis

	// Later is how much after At a background call had better come back, so that the
	// accounts of a project do not come back from its cool-down all at once.
	Later time.Duration
	// Cooldown is what is known of the cool-down that refused the call; nil: none did.
	Cooldown *Cooldown
}

// Why says for people what refused the call; until when is not part of it.
func (e *DeniedError) Why() string {
	switch {
	case e.Cooldown != nil && e.Cooldown.Scope != ScopeNone:
		return e.Cooldown.String()
	case e.Bound == BoundUnknown:
		return fmt.Sprintf("%s (Redis is new or lost its data, so nobody knows what was spent)", e.Limit)
	case e.Bound == BoundHold:
		return fmt.Sprintf("%s (cool-down after a refusal of Google's)", e.Limit)
	}
	return fmt.Sprintf("%s (%s)", e.Limit, e.Bound)
}

// Bound is the part of a limit that refused a call.
type Bound string

// The parts of a limit.
const (
	BoundCeiling Bound = "ceiling" // the lane's share of the window is used up
	BoundPace    Bound = "pace"    // the lane spends as fast as it may
	BoundHold    Bound = "hold"    // a cool-down
	BoundUnknown Bound = "unknown" // Redis lost the windows: nobody knows what was spent

	BoundInFlight Bound = "in-flight" // too many calls of the user are in flight
	BoundLocal    Bound = "local"     // Redis does not answer: the process' share is used up
)

func (e *DeniedError) Error() string {
	if e.Cost == 0 { // it asked for a place in flight
		return fmt.Sprintf("quota: a call in lane %s refused by %s of %s (%d of %d used), ask again in %s",
			e.Caller.Lane, e.Bound, e.Limit, e.Used, e.Ceiling, e.RetryAfter.Round(time.Millisecond))
	}
	if e.Cooldown != nil {
		return fmt.Sprintf("quota: %d units in lane %s refused by %s, fits at %s, in %s", e.Cost, e.Caller.Lane, e.Cooldown,
			e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("quota: %d units in lane %s refused by %s of %s (%d of %d used), fits at %s, in %s",
		e.Cost, e.Caller.Lane, e.Bound, e.Limit, e.Used, e.Ceiling,
		e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.RetryAfter.Round(time.Millisecond))
}
