package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
	"headroom/scheduler"
)

var hourly = scheduler.Timing{Spec: "0 * * * *", Spread: -1, CatchUp: true}

// at is a time of the day on which the clock of a bubble begins, 2000-01-01.
func at(clock string) time.Time {
	d, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return time.Date(2000, 1, 1, d.Hour(), d.Minute(), d.Second(), 0, time.UTC)
}

const half = time.Second / 2 // a moment between two ticks of the first scheduler

// perAccount counts runs, and fails where a slot ran twice.
func perAccount(t *testing.T, won []jobs.SlotClaim) map[string]int {
	t.Helper()
	counts, seen := map[string]int{}, map[string]bool{}
	for _, c := range won {
		if seen[c.ID()] {
			t.Errorf("%s ran twice", c.ID())
		}
		seen[c.ID()] = true
		counts[c.Account]++
	}
	return counts
}

// wantEach fails unless each of n accounts ran so many times.
func wantEach(t *testing.T, what string, won []jobs.SlotClaim, n, each int) {
	t.Helper()
	counts := perAccount(t, won)
	for account, got := range counts {
		if got != each {
			t.Errorf("%s: %s ran %d times, want %d", what, account, got, each)
			return
		}
	}
	if len(counts) != n && each > 0 {
		t.Errorf("%s: %d accounts ran, want %d", what, len(counts), n)
	}
	if each == 0 && len(won) > 0 {
		t.Errorf("%s: %d runs, want none", what, len(won))
	}
}

// busiest is the most runs of any ten seconds.
func busiest(won []jobs.SlotClaim) int {
	tens := map[int64]int{}
	most := 0
	for _, c := range won {
		tens[c.At.Unix()/10]++
		most = max(most, tens[c.At.Unix()/10])
	}
	return most
}

func TestAnHourIsSpreadAndTheSameAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		f := &fleet{t: t, store: newSlots(t, names(n)...)}
		f.launch(timings(hourly))
		until(at("01:00:00").Add(half))
		first := f.store.taken()
		wantEach(t, "an hour", first, n, 1)
		if got, mean := busiest(first), n/360.0; float64(got) > 2*mean {
			t.Errorf("the busiest 10 s had %d runs, the mean is %.1f", got, mean)
		}
		f.stop()
		f.launch(timings(hourly))
		until(at("02:00:00").Add(2 * half))
		second := map[string]time.Duration{}
		for _, c := range f.store.taken() {
			second[c.Account] = c.At.Sub(c.Slot)
		}
		for _, c := range first {
			if d := second[c.Account] - c.At.Sub(c.Slot); d.Abs() > time.Second {
				t.Fatalf("%s ran %s after its slot, and %s after the restart", c.Account, c.At.Sub(c.Slot), second[c.Account])
			}
		}
		f.stop()
	})
}

func TestThreeSchedulersRunEachSlotOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		f := &fleet{t: t, store: newSlots(t, names(n)...)}
		for range 3 {
			f.launch(timings(hourly))
		}
		until(at("00:59:58"))
		f.stops[0]() // one dies two seconds before the hour
		f.stops = f.stops[1:]
		f.store.taken()
		until(at("05:59:58"))
		wantEach(t, "five hours", f.store.taken(), n, 5)
		f.stop()
		if f.store.lost == 0 {
			t.Error("no claim was ever lost: the schedulers did not compete")
		}
	})
}

func TestDownForHoursIsMadeUpForByOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		f := &fleet{t: t, store: newSlots(t, names(n)...)}
		f.launch(timings(hourly))
		until(at("02:58:00"))
		f.stop()
		f.store.taken()
		until(at("09:10:00"))
		for range 3 {
			f.launch(timings(hourly))
		}
		until(at("09:20:02"))
		var back []jobs.SlotClaim
		for _, c := range f.store.taken() {
			if c.CatchUp || c.At.Before(at("09:20:00")) {
				back = append(back, c) // without those whose own time has come since
			}
		}
		wantEach(t, "the return", back, n, 1)
		if got, mean := busiest(back), n/60.0; float64(got) > 2*mean {
			t.Errorf("the busiest 10 s of the return had %d runs, want them spread over 10 minutes, %.1f", got, mean)
		}
		for _, c := range back {
			if !c.CatchUp || c.Missed < 4 || c.Missed > 6 {
				t.Fatalf("%s: catch-up %v, %d missed, want the last of six slots", c.ID(), c.CatchUp, c.Missed)
			}
		}
		until(at("10:00:01"))
		f.store.taken()
		until(at("11:00:01"))
		wantEach(t, "the hour after", f.store.taken(), n, 1)
		f.stop()
	})
}

func TestSkipMissed(t *testing.T) {
	none := hourly
	none.CatchUp = false
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		f := &fleet{t: t, store: newSlots(t, names(n)...)}
		f.launch(timings(none))
		until(at("02:58:00"))
		f.stop()
		f.store.taken()
		until(at("09:10:00"))
		f.launch(timings(none))
		until(at("10:09:59"))
		won := f.store.taken()
		wantEach(t, "the hour after the return", won, n, 1)
		for _, c := range won {
			if c.CatchUp || c.Missed < 5 || c.At.Sub(c.Slot) > time.Hour {
				t.Fatalf("%s at %s: catch-up %v, %d missed", c.ID(), c.At, c.CatchUp, c.Missed)
			}
		}
		f.stop()
	})
}

func TestDownAcrossOneSlotRunsIt(t *testing.T) {
	exact := hourly
	exact.Spread = 0
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newSlots(t, "ann@example.com")}
		f.launch(timings(exact))
		until(at("15:59:59"))
		f.stop()
		f.store.taken()
		until(at("16:00:16"))
		f.launch(timings(exact))
		until(at("16:00:18"))
		won := f.store.taken()
		if len(won) != 1 || !won[0].Slot.Equal(at("16:00:00")) || won[0].CatchUp || won[0].Missed != 0 {
			t.Errorf("16 s later ran %+v, want the slot of 16:00", won)
		}
		f.stop()
		until(at("16:30:00")) // a slot that has run is not run again
		f.launch(timings(exact))
		until(at("16:59:59"))
		wantEach(t, "after another start", f.store.taken(), 1, 0)
		f.stop()
		until(at("17:30:00"))
		f.launch(timings(exact))
		until(at("17:40:01"))
		if won := f.store.taken(); len(won) != 1 || !won[0].CatchUp || won[0].Missed != 0 || !won[0].Slot.Equal(at("17:00:00")) {
			t.Errorf("half an hour later ran %+v, want the slot of 17:00 to be caught up", won)
		}
		f.stop()
	})
}

func TestAMachineThatSleptCatchesUpSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		store, now := newSlots(t, names(n)...), at("00:00:00")
		s, err := scheduler.NewSchedules(scheduler.SchedulesOptions{Store: store, TimingFunc: timings(hourly), NowFunc: func() time.Time { return now },
			Log: noLog, Registerer: newRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			if err := s.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for ; now.Before(at("02:30:00")); now = now.Add(time.Second) {
			look()
		}
		store.taken()
		now = at("08:00:00")
		look()
		if won := store.taken(); len(won) > n/50 {
			t.Errorf("%d accounts ran at once after a sleep", len(won))
		}
		for ; now.Before(at("08:10:01")); now = now.Add(time.Second) {
			look()
		}
	})
}

func TestNobodyCatchesUpOnWhatWasBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newSlots(t, names(50)...)}
		until(at("05:30:00"))
		f.launch(timings(hourly))
		until(at("06:29:59"))
		won := f.store.taken()
		wantEach(t, "the first hour", won, 50, 1)
		for _, c := range won {
			if c.CatchUp || c.Missed != 0 {
				t.Fatalf("%s: catch-up %v, %d missed", c.ID(), c.CatchUp, c.Missed)
			}
		}
		if err := f.store.AddAccount(t.Context(), jobs.Account{Email: "new@example.com", Project: "p"}); err != nil {
			t.Fatal(err)
		}
		until(at("07:29:59"))
		if got := perAccount(t, f.store.taken())["new@example.com"]; got != 1 {
			t.Errorf("an account that was added ran %d times in an hour, want once", got)
		}
		f.stop()
	})
}

func TestAnotherSpecificationMissedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newSlots(t, "ann@example.com")}
		f.launch(timings(scheduler.Timing{Spec: "0 0 * * *", Spread: 0, CatchUp: true}))
		until(at("10:30:00"))
		f.stop()
		f.store.taken()
		f.launch(timings(scheduler.Timing{Spec: "* * * * *", Spread: 0, CatchUp: true}))
		until(at("10:32:30"))
		won := f.store.taken()
		if len(won) != 2 || won[0].Missed != 0 || won[0].CatchUp {
			t.Errorf("ran %+v, want 10:31 and 10:32, and nothing missed", won)
		}
		f.stop()
	})
}

func TestPausedIsNotRunAndResumedIsMadeUpForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		f := &fleet{t: t, store: newSlots(t, names(n)...)}
		tenant := "example.org"
		if err := f.store.AssignAccount(t.Context(), names(1)[0], &tenant, nil); err != nil {
			t.Fatal(err)
		}
		f.launch(timings(hourly))
		until(at("01:00:00"))
		f.store.taken()
		f.pause(jobs.SchedulePause{Tenant: "example.org"})
		f.pause(jobs.SchedulePause{Account: names(2)[1], Schedule: jobs.ScheduleMail})
		f.pause(jobs.SchedulePause{Schedule: jobs.ScheduleCalendar})
		until(at("02:00:00"))
		f.stop() // a pause outlives its schedulers
		f.launch(timings(hourly))
		until(at("03:00:00"))
		counts := perAccount(t, f.store.taken())
		if counts[names(1)[0]] != 0 || counts[names(2)[1]] != 0 || len(counts) != n-2 {
			t.Errorf("%d accounts ran, those that are paused %d and %d times", len(counts), counts[names(1)[0]], counts[names(2)[1]])
		}
		f.pause(jobs.SchedulePause{})
		until(at("08:00:00"))
		wantEach(t, "while all is paused", f.store.taken(), n, 0)
		f.resumeAll()
		until(at("08:10:03"))
		var won []jobs.SlotClaim
		for _, c := range f.store.taken() {
			if c.CatchUp || c.At.Before(at("08:10:00")) {
				won = append(won, c)
			}
		}
		wantEach(t, "ten minutes after", won, n, 1)
		for _, c := range won {
			if c.Missed > 1 {
				t.Fatalf("%s: %d missed, though they were paused", c.ID(), c.Missed)
			}
		}
		if got, mean := busiest(won), n/60.0; float64(got) > 4*mean {
			t.Errorf("the busiest 10 s after the pause had %d runs, the mean is %.1f", got, mean)
		}
		f.stop()
	})
}

func TestAStoreThatIsAwayDelaysARun(t *testing.T) {
	exact := hourly
	exact.Spread = 0
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newSlots(t, "ann@example.com")}
		f.launch(timings(exact))
		f.store.failWith(errAway)
		until(at("01:05:00").Add(time.Millisecond))
		f.store.failWith(nil)
		until(at("01:05:02"))
		won := f.store.taken()
		if len(won) != 1 || !won[0].Slot.Equal(at("01:00:00")) {
			t.Errorf("ran %+v, want the slot of 01:00", won)
		}
		want := `
# HELP headroom_scheduler_schedule_errors_total Failed checks for due runs of schedules.
# TYPE headroom_scheduler_schedule_errors_total counter
headroom_scheduler_schedule_errors_total 301
`
		if err := testutil.GatherAndCompare(f.reg, strings.NewReader(want), "headroom_scheduler_schedule_errors_total"); err != nil {
			t.Error(err)
		}
		f.stop()
	})
}

// A day's schedule runs once on days of 23, 24 and 25 hours, whoever runs it.
func TestADailyScheduleOverAYear(t *testing.T) {
	daily := scheduler.Timing{Spec: "30 2 * * *", Zone: "America/New_York", Spread: 0, CatchUp: true}
	loc, err := time.LoadLocation(daily.Zone)
	if err != nil {
		t.Fatal(err)
	}
	store, now := newSlots(t, "ann@example.com"), time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)
	var all []*scheduler.Schedules
	for range 3 {
		s, err := scheduler.NewSchedules(scheduler.SchedulesOptions{Store: store, TimingFunc: timings(daily), Tick: 10 * time.Minute,
			NowFunc: func() time.Time { return now }, Log: noLog, Registerer: newRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for i := 0; now.Before(time.Date(2027, 1, 1, 5, 0, 0, 0, time.UTC)); i++ {
		if err := all[i%3].Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(10 * time.Minute)
	}
	var days []string
	for _, c := range store.taken() {
		if c.Missed != 0 || c.CatchUp {
			t.Errorf("%s: %d missed, catch-up %v", c.ID(), c.Missed, c.CatchUp)
		}
		days = append(days, c.Slot.In(loc).Format(time.DateOnly))
	}
	if !slices.IsSorted(days) || len(slices.Compact(days)) != 365 {
		t.Errorf("%d runs on %d days, want one on each of 365", len(days), len(slices.Compact(days)))
	}
}
