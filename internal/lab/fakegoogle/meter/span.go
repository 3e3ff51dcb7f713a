package meter

import "time"

// A spending is units charged at a moment.
type spending struct {
	at      time.Duration
	units   int64
	refused bool
}

// A span is a queue of spendings with its running sums. Pushing and dropping
// cost O(1) amortised, however long the queue.
type span struct {
	queue    []spending
	head     int
	units    int64 // of all of them
	admitted int64 // of those not refused
}

func (s *span) push(p spending) {
	s.queue = append(s.queue, p)
	s.units += p.units
	if !p.refused {
		s.admitted += p.units
	}
}

// dropUntil forgets what was spent at t or before.
func (s *span) dropUntil(t time.Duration) {
	for s.head < len(s.queue) && s.queue[s.head].at <= t {
		p := s.queue[s.head]
		s.units -= p.units
		if !p.refused {
			s.admitted -= p.units
		}
		s.head++
	}
	if s.head > 1024 && s.head*2 > len(s.queue) {
		s.queue = append(s.queue[:0:0], s.queue[s.head:]...)
		s.head = 0
	}
}

// A tally is the exact account of one limit: it judges nothing and sees every
// arrival, refused ones included.
type tally struct {
	limit  int64
	window time.Duration

	trailing     span // the half-open window (now-window, now]
	most         int64
	mostAdmitted int64
	over         int64

	units, admittedUnits int64
	calls                int64
	byMethod             map[string]int64
	refusals             map[Refusal]int64
	first, last          time.Duration
}

// note adds an arrival, and reports whether the window that ends there holds
// more than the limit now in force. The most that any window of this length ever
// held is reached in a window that ends at an arrival, so looking there is enough.
func (t *tally) note(now time.Duration, method string, units int64, refused Refusal) (over bool) {
	t.trailing.dropUntil(now - t.window)
	t.trailing.push(spending{at: now, units: units, refused: refused != ""})
	t.most = max(t.most, t.trailing.units)
	t.mostAdmitted = max(t.mostAdmitted, t.trailing.admitted)
	if over = t.trailing.units > t.limit; over {
		t.over++
	}
	if t.calls == 0 {
		t.first = now
		t.byMethod = map[string]int64{}
		t.refusals = map[Refusal]int64{}
	}
	t.last = now
	t.calls++
	t.units += units
	t.byMethod[method]++
	if refused != "" {
		t.refusals[refused]++
	} else {
		t.admittedUnits += units
	}
	return over
}
