package jobs_test

import (
	"testing"

	"headroom/jobs"
)

func TestACursorNeverBeginsAfterWhatWasStored(t *testing.T) {
	for _, row := range []struct {
		name   string
		own    uint64
		others []jobs.Pin
		stored bool
		want   uint64
	}{
		{"no other backfill", 300, nil, false, 300},
		{"an ended one that stored messages", 300, []jobs.Pin{{HistoryID: 200}}, true, 200},
		{"the earliest of several counts", 300, []jobs.Pin{{HistoryID: 250}, {HistoryID: 100}, {HistoryID: 200}}, true, 100},
		{"an ended one that stored nothing", 300, []jobs.Pin{{HistoryID: 200}}, false, 300},
		{"a live one that has stored nothing yet", 300, []jobs.Pin{{HistoryID: 200, Live: true}}, false, 200},
		{"one that has not begun", 300, []jobs.Pin{{Live: true}}, true, 300},
		{"one that began later", 300, []jobs.Pin{{HistoryID: 400, Live: true}}, true, 300},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := jobs.CursorStart(row.own, row.others, row.stored); got != row.want {
				t.Errorf("CursorStart = %d, want %d", got, row.want)
			}
		})
	}
}
