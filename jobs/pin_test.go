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
		back   bool
	}{
		{"no other backfill", 300, nil, false, 300, false},
		{"an ended one that stored messages", 300, []jobs.Pin{{HistoryID: 200}}, true, 200, false},
		{"the earliest of several counts", 300, []jobs.Pin{{HistoryID: 250}, {HistoryID: 100}, {HistoryID: 200}}, true, 100, false},
		{"an ended one that stored nothing", 300, []jobs.Pin{{HistoryID: 200}}, false, 300, false},
		{"a live one that has stored nothing yet", 300, []jobs.Pin{{HistoryID: 200, Live: true}}, false, 200, false},
		{"one that has not begun", 300, []jobs.Pin{{Live: true}}, true, 300, false},
		{"an ended one that began later", 300, []jobs.Pin{{HistoryID: 400}}, true, 300, true},
		{"an ended one that began later and stored nothing", 300, []jobs.Pin{{HistoryID: 400}}, false, 300, false},
		{"a live one that began later", 300, []jobs.Pin{{HistoryID: 400, Live: true}}, true, 300, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := jobs.CursorStart(row.own, row.others, row.stored); got != row.want {
				t.Errorf("CursorStart = %d, want %d", got, row.want)
			}
			if got := jobs.RanBackwards(row.own, row.others, row.stored); got != row.back {
				t.Errorf("RanBackwards = %t, want %t", got, row.back)
			}
		})
	}
}
