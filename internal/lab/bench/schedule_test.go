package bench

import (
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
)

func TestScheduleRunsEachSlotOnce(t *testing.T) {
	t.Parallel()
	f, err := simulateDay(t.Context(), Options{Log: zaptest.NewLogger(t)}, scheduleSize{accounts: 60, tick: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	f.PeakOverMean = 0 // so few accounts are not spread evenly
	if broken := f.Broken(); broken != "" || f.RunsExpected < 60*17 {
		t.Errorf("%+v: %s", f, broken)
	}
}

func TestScheduleNamesWhatItBroke(t *testing.T) {
	good := ScheduleFigures{Accounts: 10, Runs: 20, RunsExpected: 20, CatchUpRuns: 10}
	if b := good.Broken(); b != "" {
		t.Errorf("Broken = %q, want none", b)
	}
	for _, spoil := range []func(*ScheduleFigures){
		func(f *ScheduleFigures) { f.Doubles = 1 }, func(f *ScheduleFigures) { f.Missed = 1 }, func(f *ScheduleFigures) { f.Runs++ },
		func(f *ScheduleFigures) { f.PeakOverMean = 2.1 }, func(f *ScheduleFigures) { f.CatchUpRuns-- },
	} {
		bad := good
		spoil(&bad)
		if bad.Broken() == "" {
			t.Errorf("%+v breaks nothing", bad)
		}
	}
}
