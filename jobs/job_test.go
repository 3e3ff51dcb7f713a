package jobs_test

import (
	"testing"

	"headroom/jobs"
)

func TestAListingIsShortBelowHalfOfThePromise(t *testing.T) {
	for _, row := range []struct {
		listed, expected int64
		complete, want   bool
	}{
		{0, 200, true, true},
		{99, 200, true, true},
		{100, 200, true, false},
		{0, 200, false, false},
		{0, 0, true, false},
		{0, 1, true, false},
		{300, 200, true, false},
	} {
		j := jobs.Job{Checkpoint: jobs.Checkpoint{Listed: row.complete}, Progress: jobs.Progress{Listed: row.listed, Expected: row.expected}}
		if got := j.Short(); got != row.want {
			t.Errorf("Short with %d of %d, complete %v = %v, want %v", row.listed, row.expected, row.complete, got, row.want)
		}
	}
}
