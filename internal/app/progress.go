package app

import (
	"fmt"

	"headroom/internal/term"
	"headroom/jobs"
)

// Total is how many items a job has, 0 while nobody knows. It is exact once
// the listing is complete.
func Total(j jobs.Job) (n int64, exact bool) {
	if j.Checkpoint.Listed {
		return j.Progress.Listed, true
	}
	return max(j.Progress.Expected, j.Progress.Listed), false
}

// Waiting says in a few words for what, and until when, a job waits; "" when it
// does not.
func Waiting(j jobs.Job) string {
	if j.State != jobs.Waiting || j.WaitingFor == "" {
		return ""
	}
	if j.WaitUntil.IsZero() {
		return j.WaitingFor
	}
	return fmt.Sprintf("%s until %s", j.WaitingFor, term.Time(j.WaitUntil))
}
