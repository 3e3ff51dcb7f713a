package scheduler

import (
	"container/heap"
	"time"

	"headroom/jobs"
)

// A stream is a schedule of one account.
type stream struct {
	key
	tenant  string
	timing  *timing
	place   place
	row     time.Time // the slot in the store
	base    time.Time // the slot after which runs are due
	resumed time.Time // slots up to here were paused, not missed
	due     time.Time // when its first run that has not been is due
	at      time.Time // when it is looked at next; zero: never
}

type key struct {
	schedule jobs.Schedule
	account  string
}

// arrange finds out when the stream's next run is.
//
// One that is a little late runs at once. One that is later, because no scheduler
// ran, waits for its next slot where that comes soon enough, and else for its
// phase of a window, so that those who return do not all run at once.
func (s *stream) arrange(now time.Time) {
	t := s.timing
	first := t.next(s.base)
	if first.IsZero() {
		s.due, s.at = time.Time{}, time.Time{}
		return
	}
	s.due = t.due(first, s.place)
	s.at = s.due
	if now.Sub(s.due) <= t.patience(first) {
		return
	}
	last := t.lastDue(now, s.place)
	s.at = time.Time{}
	if coming := t.next(last); !coming.IsZero() {
		s.at = t.due(coming, s.place)
	}
	window := min(t.gap(last), catchUpWindow)
	if t.CatchUp && (s.at.IsZero() || s.at.After(now.Add(window))) {
		s.at = nextPhase(now, window, s.place.phase)
	}
	if !t.CatchUp {
		s.due = s.at // nothing before it will ever run
	}
}

// claim is what to run now, or false when nothing is due.
func (s *stream) claim(now time.Time) (jobs.SlotClaim, bool) {
	t := s.timing
	slot := t.lastDue(now, s.place)
	if !slot.After(s.base) { // the clock was put back
		return jobs.SlotClaim{}, false
	}
	first := t.next(s.base)
	counted := s.base
	if s.resumed.After(counted) {
		counted = s.resumed
	}
	c := jobs.SlotClaim{Schedule: s.schedule, Account: s.account, Spec: t.id(), After: s.row, Slot: slot, At: now,
		Missed: t.between(counted, slot)}
	c.CatchUp = t.CatchUp && (slot.After(first) || now.Sub(t.due(first, s.place)) > t.patience(first))
	return c, true
}

// A plan holds the streams by the moment at which each is looked at next, so that
// a tick touches only those that are due.
type plan struct {
	revision jobs.ScheduleRevision
	streams  map[key]*stream
	count    map[jobs.Schedule]int // of the streams
	late     map[*stream]bool      // those that wait longer than until they are due
	order    byMoment
}

func newPlan() *plan {
	return &plan{streams: map[key]*stream{}, count: map[jobs.Schedule]int{}, late: map[*stream]bool{}}
}

// add puts a stream into the order, if it has a moment.
func (p *plan) add(s *stream) {
	p.streams[s.key] = s
	p.count[s.schedule]++
	p.push(s)
}

// remove forgets a stream that is not in the order.
func (p *plan) remove(s *stream) {
	delete(p.streams, s.key)
	p.count[s.schedule]--
}

func (p *plan) push(s *stream) {
	if s.at.IsZero() {
		return
	}
	heap.Push(&p.order, s)
	if s.at.After(s.due) {
		p.late[s] = true
	}
}

// pop takes out the streams whose moment has come, at most n.
func (p *plan) pop(now time.Time, n int) (due []*stream) {
	for len(p.order) > 0 && len(due) < n && !p.order[0].at.After(now) {
		s := heap.Pop(&p.order).(*stream)
		delete(p.late, s)
		due = append(due, s)
	}
	return due
}

// lag says of each schedule for how long the run has been due that has waited
// longest. It looks only at what waits.
func (p *plan) lag(now time.Time) map[jobs.Schedule]time.Duration {
	lag := map[jobs.Schedule]time.Duration{}
	for s := range p.late {
		lag[s.schedule] = max(lag[s.schedule], now.Sub(s.due))
	}
	var look func(i int)
	look = func(i int) {
		if i >= len(p.order) || p.order[i].at.After(now) { // nor has what is below it waited
			return
		}
		lag[p.order[i].schedule] = max(lag[p.order[i].schedule], now.Sub(p.order[i].due))
		look(2*i + 1)
		look(2*i + 2)
	}
	look(0)
	return lag
}

// byMoment is a heap.
type byMoment []*stream

func (h byMoment) Len() int           { return len(h) }
func (h byMoment) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byMoment) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *byMoment) Push(x any) { *h = append(*h, x.(*stream)) }

// Pop implements [heap.Interface].
func (h *byMoment) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
