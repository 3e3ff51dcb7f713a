package jobs

import "time"

// Park says why and until when a job waits. It is a refusal, a fault, or neither:
// then the job waits for an item that is due later.
type Park struct {
	For     string    // the limit or the fault, for people
	Until   time.Time // when it may go on
	Refused bool      // refused for quota: no failure
	Failure string    // the error's text, when a fault and not a refusal
}

// Finish says how a job ends.
type Finish struct {
	State State // a terminal one
	Error string
}
