package jobs

import (
	"fmt"
	"slices"
	"time"
)

// States lists all states of a job.
var States = []State{Queued, Running, Waiting, Paused, Blocked, Completed, CompletedWithFailures, Cancelled, Failed}

// A JobFilter chooses jobs. The zero value chooses all.
type JobFilter struct {
	Kind    Kind
	Account string
	State   State
}

// A MessageFilter chooses stored messages. The zero value chooses all.
type MessageFilter struct {
	Label  string    // the id of a label that they have
	After  time.Time // received at this moment or later
	Before time.Time // received before this moment
}

// Validate reports what is wrong with the filter.
func (f MessageFilter) Validate() error {
	if !f.After.IsZero() && !f.Before.IsZero() && !f.After.Before(f.Before) {
		return fmt.Errorf("after %s is not before %s", f.After.Format(time.RFC3339), f.Before.Format(time.RFC3339))
	}
	return nil
}

// Validate reports what is wrong with the filter.
func (f JobFilter) Validate() error {
	if f.State != "" && !slices.Contains(States, f.State) {
		return fmt.Errorf("unknown state %q; there are %v", f.State, States)
	}
	return nil
}
