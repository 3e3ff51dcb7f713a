package app_test

import (
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/jobs"
)

func at(done, listed, expected int64) jobs.Job {
	return jobs.Job{State: jobs.Running, Progress: jobs.Progress{Stored: done, Listed: listed, Expected: expected}}
}

func TestSpeedFollowsTheLastMinute(t *testing.T) {
	var s app.Speed
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, known := s.ETA(at(0, 0, 100)); known {
		t.Error("an ETA is known before anything was seen")
	}
	for i := range 5 * 60 { // one a second for two minutes, then ten a second
		done := int64(min(i, 120) + 10*max(0, i-120))
		s.Look(start.Add(time.Duration(i)*time.Second), at(done, 0, 3000))
	}
	if got := s.PerSecond(); got < 9.9 || got > 10.1 {
		t.Errorf("PerSecond = %.2f, want 10", got)
	}
	now := at(1910, 0, 3000)
	if left, known := s.ETA(now); !known || left.Round(time.Second) != 109*time.Second {
		t.Errorf("ETA = %s, %v, want 1m49s", left, known)
	}
	s.Look(start.Add(time.Hour), at(5, 0, 3000)) // started over
	if got := s.PerSecond(); got != 0 {
		t.Errorf("PerSecond after a new start = %.2f, want 0", got)
	}
}

func TestTotalIsExactOnceListed(t *testing.T) {
	j := at(10, 80, 100)
	if n, exact := app.Total(j); n != 100 || exact {
		t.Errorf("Total while listing = %d, %v, want 100, about", n, exact)
	}
	j.Checkpoint.Listed = true
	if n, exact := app.Total(j); n != 80 || !exact {
		t.Errorf("Total when listed = %d, %v, want 80, exactly", n, exact)
	}
}

func TestWaitingSaysForWhat(t *testing.T) {
	j := jobs.Job{State: jobs.Waiting, WaitingFor: "user-minute", WaitUntil: time.Date(2026, 1, 1, 12, 0, 5, 0, time.Local)}
	if got := app.Waiting(j); got != "user-minute until 12:00:05" {
		t.Errorf("Waiting = %q", got)
	}
	j.State = jobs.Running
	if got := app.Waiting(j); got != "" {
		t.Errorf("Waiting of a running job = %q, want nothing", got)
	}
}
