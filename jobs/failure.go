package jobs

import (
	"fmt"
	"slices"
)

// MaxFailureIDs is how many ids a [FailureFilter] may name.
const MaxFailureIDs = 1000

// A FailureFilter chooses entries of a failure list. The zero value chooses all.
type FailureFilter struct {
	Class   Class    `json:"class,omitempty"`
	Reason  string   `json:"reason,omitempty"` // exactly as listed
	IDs     []string `json:"ids,omitempty"`
	GivenUp bool     `json:"given_up,omitempty"` // only those that are not tried again by themselves
}

// Validate reports what is wrong with the filter.
func (f FailureFilter) Validate() error {
	if len(f.IDs) > MaxFailureIDs {
		return fmt.Errorf("%d ids are too many, at most %d at once; choose by class or reason, or ask several times", len(f.IDs), MaxFailureIDs)
	}
	if slices.Contains(f.IDs, "") {
		return fmt.Errorf("an empty id")
	}
	return nil
}
