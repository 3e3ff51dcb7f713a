// Package progress computes how far a job is, how fast it goes and how long it still
// takes. It only computes: it reads no store.
package progress

import (
	"cmp"
	"time"

	"headroom/jobs"
)

const (
	// aLittle is the least time in which a [Speed] sees how fast a job is now. On
	// fast quota time a window would show little but the waits of one slice.
	aLittle = 10 * time.Second
	// manyWindows are as many as it looks back, and aWhile the least of that.
	manyWindows, aWhile = 5, time.Minute
	// headStart is for how long a job is taken to have gone at the speed that the
	// settings allow before it was looked at, so that its first seconds, in which a
	// process warms up, count little.
	headStart = 2 * time.Second
	// longWait is how long a wait must be not to count as part of a job's pace. Shorter ones, for
	// the next units of quota, come again and again and belong to it.
	longWait = 10 * time.Second
)

// Speed estimates how fast a job goes from repeated looks at its row. It is the
// better of its speeds in the last window of the quota and in the last few: the
// quota sets a steady pace, so that a time in which the job was slower for another
// reason, be it over or under way, is not how the rest will go. Time in a long wait
// does not count, because it does not show how fast the job goes after it. The zero
// value has seen nothing. It is not safe for concurrent use.
type Speed struct {
	// Metadata is what the metadata of a message costs over what its body does, for
	// backfills that bring both one after the other; as much if zero.
	Metadata float64
	// Allowed is how much of [Speed.Work] per second the settings allow; unknown if
	// zero.
	Allowed float64
	// Window is that of the quota's limits; a minute if zero.
	Window time.Duration

	looks  []look // the oldest first
	last   time.Time
	waited time.Time // when the present wait was first seen; zero: none
	until  time.Time // when the present wait ends
}

type look struct {
	worked time.Duration // since the first look, without long waits
	done   float64       // see [Speed.Work]
}

// Look notes a job's progress at a moment, each later than the one before.
func (s *Speed) Look(at time.Time, j jobs.Job) {
	done, _ := s.Work(j)
	if n := len(s.looks); n > 0 && done < s.looks[n-1].done {
		*s = Speed{Metadata: s.Metadata, Allowed: s.Allowed, Window: s.Window} // the job started over
	}
	if n := len(s.looks); n > 0 && s.looks[n-1].done == 0 && !s.long() {
		s.looks = nil // the time before the first message is not the speed
	}
	now := look{done: done}
	if n := len(s.looks); n > 0 {
		now.worked = s.looks[n-1].worked + at.Sub(s.last) - s.idle(at)
		if s.looks[n-1] == now { // nothing happened but waiting
			s.looks = s.looks[:n-1]
		}
	}
	s.looks = append(s.looks, now)
	old := 0
	for span := max(aWhile, manyWindows*s.window()); old < len(s.looks)-2 && now.worked-s.looks[old+1].worked >= span; {
		old++
	}
	s.looks = s.looks[old:]
	s.last = at
	switch {
	case j.State != jobs.Waiting:
		s.waited, s.until = time.Time{}, time.Time{}
	case s.waited.IsZero() || s.until.Before(j.WaitUntil):
		s.until = j.WaitUntil
		if s.waited.IsZero() {
			s.waited = at
		}
	}
}

// idle is how much of the time since the last look was part of a long wait.
func (s *Speed) idle(at time.Time) time.Duration {
	if !s.long() {
		return 0
	}
	end := at
	if s.until.Before(end) {
		end = s.until
	}
	return max(0, end.Sub(s.last))
}

// long reports whether the job was in a long wait at the last look.
func (s *Speed) long() bool { return !s.waited.IsZero() && s.until.Sub(s.waited) >= longWait }

// Work is how much a job has done and has left to do, in messages to fetch. Those
// stored before are neither, and metadata ahead of a body counts for its share of
// the cost. What is left is 0 while nobody knows.
func (s *Speed) Work(j jobs.Job) (done, left float64) {
	p, metadata := j.Progress, 0.0
	if j.Filter.Format == jobs.FormatMetadataFirst {
		metadata = cmp.Or(s.Metadata, 1)
	}
	done = float64(p.Done()-p.Known) + metadata*float64(p.Noted)
	total, _ := Total(j)
	if total == 0 {
		return done, 0
	}
	unseen := total - (p.Done() - p.Stored) - p.Noted // whose metadata is not stored either
	return done, float64(max(0, total-p.Done())) + metadata*float64(max(0, unseen))
}

// PerSecond is how much of [Speed.Work] is done per second lately, 0 while unknown.
func (s *Speed) PerSecond() float64 {
	if len(s.looks) < 2 {
		return 0
	}
	first, now := s.looks[0], s.looks[len(s.looks)-1]
	from := len(s.looks) - 2 // where the last window begins
	for from > 0 && now.worked-s.looks[from].worked < max(aLittle, s.window()) {
		from--
	}
	rate := now.since(first, s.Allowed, headStart.Seconds())
	if from > 0 {
		rate = max(rate, now.since(s.looks[from], 0, 0))
	}
	return rate
}

// since is the speed from another look on, with some seconds at a speed before.
func (l look) since(from look, before, seconds float64) float64 {
	done, worked := l.done-from.done, (l.worked - from.worked).Seconds()
	if worked <= 0 || done <= 0 {
		return 0
	}
	if before == 0 {
		seconds = 0
	}
	return (done + before*seconds) / (worked + seconds)
}

func (s *Speed) window() time.Duration { return cmp.Or(s.Window, time.Minute) }

// ETA is how long the job still takes from the last look on: the rest of a long
// wait, and then the work at the speed known. It is not known while the job
// stands still or its size is not known.
func (s *Speed) ETA(j jobs.Job) (left time.Duration, known bool) {
	total, _ := Total(j)
	rate := s.PerSecond()
	if rate <= 0 || total == 0 || j.State.Terminal() {
		return 0, false
	}
	_, work := s.Work(j)
	seconds := work / rate
	left = time.Duration(min(seconds, 1e9) * float64(time.Second))
	if s.long() {
		left += max(0, s.until.Sub(s.last))
	}
	return left, true
}

// Total is how many items a job has, 0 while nobody knows. It is exact once
// the listing is complete.
func Total(j jobs.Job) (n int64, exact bool) {
	if j.Checkpoint.Listed {
		return j.Progress.Listed, true
	}
	return max(j.Progress.Expected, j.Progress.Listed), false
}
