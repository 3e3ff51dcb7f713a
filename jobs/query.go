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

// A Selection chooses backfills of many accounts at once. Empty fields choose all.
type Selection struct {
	State           State
	Tenant, Project string
}

// Validate reports what is wrong with the selection.
func (s Selection) Validate() error { return JobFilter{State: s.State}.Validate() }

// TakesAccount reports whether an account of a project and a tenant is chosen.
func (s Selection) TakesAccount(project, tenant string) bool {
	return (s.Project == "" || s.Project == project) && (s.Tenant == "" || s.Tenant == tenant)
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
