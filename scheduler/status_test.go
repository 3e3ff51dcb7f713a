package scheduler_test

import (
	"testing"
	"time"

	"headroom/jobs"
	"headroom/scheduler"
)

func TestStandingsTellWhatASchedulerWouldDo(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
	accounts := []jobs.Account{{Email: "late@example.com"}, {Email: "new@example.com"}, {Email: "held@example.com", Tenant: "acme"}}
	roll := jobs.ScheduleSnapshot{
		Accounts: accounts,
		Slots: []jobs.Slot{
			{Schedule: jobs.ScheduleMail, Account: "late@example.com", Spec: "0 * * * * UTC", Slot: now.Add(-5*time.Hour - 30*time.Minute), Runs: 1},
			{Schedule: jobs.ScheduleMail, Account: "held@example.com", Spec: "0 * * * * UTC", Slot: now.Add(-5*time.Hour - 30*time.Minute), Runs: 1},
		},
		Pauses: []jobs.SchedulePause{{Tenant: "acme", PausedAt: now}, {Tenant: "gone", PausedAt: now}},
	}
	timing := func(s jobs.Schedule, _, _ string) scheduler.Timing {
		if s != jobs.ScheduleMail {
			return scheduler.Timing{}
		}
		return scheduler.Timing{Spec: "0 * * * *", Zone: "UTC", Spread: 0, CatchUp: true}
	}
	all, err := scheduler.Statuses(roll, timing, now)
	if err != nil || len(all) != len(accounts)*len(jobs.Schedules) {
		t.Fatalf("%d standings, %v", len(all), err)
	}
	mail := map[string]scheduler.ScheduleStatus{}
	for _, s := range all {
		if s.Schedule == jobs.ScheduleMail {
			mail[s.Account.Email] = s
		} else if !s.Next.IsZero() || s.Lag != 0 {
			t.Errorf("%s has no specification: %+v", s.Schedule, s)
		}
	}
	// Due since 8:00, it catches up within ten minutes.
	if late := mail["late@example.com"]; late.Lag != 4*time.Hour+30*time.Minute || !late.Next.After(now) || late.Next.After(now.Add(10*time.Minute)) {
		t.Errorf("late: %+v", late)
	}
	if fresh := mail["new@example.com"]; fresh.Lag != 0 || !fresh.Next.Equal(now.Add(30*time.Minute)) {
		t.Errorf("new: %+v", fresh)
	}
	if held := mail["held@example.com"]; !held.Paused() || held.Lag != 0 || !held.Next.IsZero() || len(held.Pauses) != 1 || held.Slot.Runs != 1 {
		t.Errorf("held: %+v", held)
	}
}

func TestWhatComesIsShownInItsZone(t *testing.T) {
	before := time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)
	of := scheduler.Timing{Spec: "30 2 * * *", Zone: "America/New_York", Spread: time.Hour}
	slots, err := scheduler.NextRuns(of, jobs.ScheduleMail, "", before, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"} {
		if got := slots[i]; got.Slot.Format(time.RFC3339) != want || !got.Due.Equal(got.Slot) || got.Spread != time.Hour {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	due, err := scheduler.NextRuns(of, jobs.ScheduleMail, "ann@example.com", before, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range due {
		if late := got.Due.Sub(got.Slot); !got.Slot.Equal(slots[i].Slot) || late != due[0].Due.Sub(due[0].Slot) || late <= 0 || late >= time.Hour {
			t.Errorf("%+v, want the same place in each hour", got)
		}
	}
}
