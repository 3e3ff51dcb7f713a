package progress_test

import (
	"testing"
	"time"

	"headroom/internal/control/progress"
	"headroom/jobs"
)

func at(done, listed, expected int64) jobs.Job {
	return jobs.Job{State: jobs.Running, Progress: jobs.Progress{Stored: done, Listed: listed, Expected: expected}}
}

func TestSpeedFollowsTheLastMinute(t *testing.T) {
	var s progress.Speed
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

func TestALongWaitIsNoPartOfTheSpeedButOfTheETA(t *testing.T) {
	var s progress.Speed
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	look := func(j jobs.Job) jobs.Job {
		now = now.Add(time.Second)
		s.Look(now, j)
		return j
	}
	for i := range int64(21) { // four a second
		look(at(4*i, 0, 1000))
	}
	waiting := at(84, 0, 1000)
	waiting.State, waiting.WaitUntil = jobs.Waiting, now.Add(91*time.Second)
	for range 61 {
		look(waiting)
	}
	// It has stood still for a minute, waits 30 s more, and then 916 at four a second.
	if left, known := s.ETA(waiting); !known || left != (30+229)*time.Second {
		t.Errorf("ETA in a long wait = %s, %v, want 4m19s", left, known)
	}
	for range 30 {
		look(waiting)
	}
	if left, known := s.ETA(waiting); !known || left != 229*time.Second {
		t.Errorf("ETA at the end of the wait = %s, %v, want 3m49s", left, known)
	}
	look(waiting) // its moment has passed, and nobody takes it up: that counts
	if got := s.PerSecond(); got >= 4 {
		t.Errorf("PerSecond of a job that is overdue = %.2f, want less than 4", got)
	}
	for i := range int64(3) {
		look(at(88+4*i, 0, 1000))
	}
	if got := s.PerSecond(); got < 3.5 || got > 4 {
		t.Errorf("PerSecond after the wait = %.2f, want nearly 4", got)
	}
}

func TestShortWaitsArePartOfTheSpeed(t *testing.T) {
	var s progress.Speed
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(60) { // one item, then four seconds of waiting for quota
		j := at(i/5, 0, 100)
		if i%5 != 0 {
			j.State, j.WaitUntil = jobs.Waiting, now.Add(time.Duration(5-i%5)*time.Second)
		}
		s.Look(now, j)
		now = now.Add(time.Second)
	}
	if got := s.PerSecond(); got < 0.17 || got > 0.21 {
		t.Errorf("PerSecond = %.3f, want about 0.2", got)
	}
}

func TestTotalIsExactOnceListed(t *testing.T) {
	j := at(10, 80, 100)
	if n, exact := progress.Total(j); n != 100 || exact {
		t.Errorf("Total while listing = %d, %v, want 100, about", n, exact)
	}
	j.Checkpoint.Listed = true
	if n, exact := progress.Total(j); n != 80 || !exact {
		t.Errorf("Total when listed = %d, %v, want 80, exactly", n, exact)
	}
}

// What was stored before costs nothing and says nothing about the speed.
func TestKnownMessagesAreNoWork(t *testing.T) {
	var s progress.Speed
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := jobs.Job{State: jobs.Running, Checkpoint: jobs.Checkpoint{Listed: true}}
	s.Look(now, j) // it takes its time to begin
	j.Progress.Listed, j.Progress.Known = 1000, 800
	for i := range int64(11) { // ten a second
		j.Progress.Stored = 10 * i
		s.Look(now.Add(time.Duration(50+i)*time.Second), j)
	}
	if left, known := s.ETA(j); !known || left != 10*time.Second {
		t.Errorf("ETA = %s, %v, want 10s: 100 are done, and 100 are left at ten a second", left, known)
	}
}

// The metadata of 1,000 messages is a third of the work that their bodies are.
func TestETAOfMetadataFirst(t *testing.T) {
	s := progress.Speed{Metadata: 1.0 / 3}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := jobs.Job{State: jobs.Running, Filter: jobs.Filter{Format: jobs.FormatMetadataFirst}, Checkpoint: jobs.Checkpoint{Listed: true},
		Progress: jobs.Progress{Listed: 1000}}
	for i := range int64(31) { // of metadata thirty a second
		j.Progress.Noted = 30 * i
		s.Look(now.Add(time.Duration(i)*time.Second), j)
	}
	// 100 more at thirty a second, then 1,000 bodies at ten.
	if left, known := s.ETA(j); !known || left.Round(time.Second) != 103*time.Second {
		t.Errorf("ETA in the first pass = %s, %v, want 1m43s", left, known)
	}
	j.Progress.Noted = 1000
	for i := range int64(121) {
		j.Progress.Stored = min(600, 10*i)
		s.Look(now.Add(time.Duration(34+i)*time.Second), j)
		if i == 60 {
			if left, known := s.ETA(j); !known || left.Round(time.Second) != 40*time.Second {
				t.Errorf("ETA in the second pass = %s, %v, want 40s", left, known)
			}
		}
	}
	if done, left := s.Work(j); done < 933 || done > 934 || left != 400 {
		t.Errorf("Work = %v done, %v left, want 933.3 and 400", done, left)
	}
}

// The quota's pace is steady: what held a job up lately is no part of what is left,
// be it over or under way.
func TestAStallIsNoPartOfTheETA(t *testing.T) {
	type part struct {
		seconds, perSecond int
	}
	for _, tt := range []struct {
		name  string
		parts []part
		want  time.Duration // for 400 at 20 a second
	}{
		{"none", []part{{30, 20}}, 20 * time.Second},
		{"over", []part{{20, 5}, {10, 20}}, 20 * time.Second},
		{"under way", []part{{30, 20}, {4, 1}}, 20 * time.Second},
		{"in between", []part{{20, 20}, {10, 0}, {10, 20}}, 20 * time.Second},
		{"the whole time", []part{{60, 10}}, 40 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := progress.Speed{Allowed: 20, Window: 6 * time.Second}
			now, done := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), int64(0)
			s.Look(now, at(done, 0, 10_000))
			for _, p := range tt.parts {
				for range p.seconds {
					now, done = now.Add(time.Second), done+int64(p.perSecond)
					s.Look(now, at(done, 0, 10_000))
				}
			}
			left, known := s.ETA(at(done, 0, done+400))
			if off := (left - tt.want).Abs(); !known || off > tt.want/8 {
				t.Errorf("ETA = %s, %v, want %s, an eighth more or less", left, known, tt.want)
			}
		})
	}
}

// The first seconds say little, so what the settings allow counts with them.
func TestAnETAOfTheFirstSecondsLeansOnTheSettings(t *testing.T) {
	eta := func(s progress.Speed) time.Duration {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s.Look(now, at(0, 0, 1000))
		s.Look(now.Add(time.Second), at(1, 0, 1000))
		s.Look(now.Add(2*time.Second), at(2, 0, 1000))
		left, _ := s.ETA(at(2, 0, 1002))
		return left.Round(time.Second)
	}
	if got := eta(progress.Speed{}); got != 1000*time.Second {
		t.Errorf("ETA where nothing is known = %s, want 1000s for 1000 at one a second", got)
	}
	if got := eta(progress.Speed{Allowed: 20}); got < 70*time.Second || got > 80*time.Second {
		t.Errorf("ETA where 20 a second are allowed = %s, want a little over the 50s that it takes then", got)
	}
}
