package app

import (
	"fmt"
	"time"

	"headroom/jobs"
)

// speedSpan is how far back a [Speed] looks: longer than a window of the quota
// would take to show, short enough to follow.
const speedSpan = time.Minute

// Speed estimates how fast a job goes from repeated looks at its row. The zero
// value has seen nothing. It is not safe for concurrent use.
type Speed struct {
	looks []look // the oldest first
}

type look struct {
	at   time.Time
	done int64
}

// Look notes a job's progress at a moment, each later than the one before.
func (s *Speed) Look(at time.Time, j jobs.Job) {
	done := j.Progress.Done()
	if n := len(s.looks); n > 0 && done < s.looks[n-1].done {
		s.looks = nil // the job started over
	}
	s.looks = append(s.looks, look{at, done})
	old := 0
	for old < len(s.looks)-2 && at.Sub(s.looks[old+1].at) >= speedSpan {
		old++
	}
	s.looks = s.looks[old:]
}

// PerSecond is the number of items done per second lately, 0 while unknown.
func (s *Speed) PerSecond() float64 {
	if len(s.looks) < 2 {
		return 0
	}
	first, last := s.looks[0], s.looks[len(s.looks)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(last.done-first.done) / seconds
}

// ETA is how long the job still takes at its present speed. It is not known
// while the job stands still or nobody knows how much there is.
func (s *Speed) ETA(j jobs.Job) (left time.Duration, known bool) {
	total, _ := Total(j)
	rate := s.PerSecond()
	if rate <= 0 || total == 0 || j.State.Terminal() {
		return 0, false
	}
	seconds := float64(max(0, total-j.Progress.Done())) / rate
	return time.Duration(min(seconds, 1e9) * float64(time.Second)), true
}

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
	return fmt.Sprintf("%s until %s", j.WaitingFor, j.WaitUntil.Local().Format(time.TimeOnly))
}
