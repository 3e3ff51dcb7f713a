package scheduler

import (
	"container/heap"
	"time"

	"headroom/jobs"
)

// An entry is a schedule of one account.
type entry struct {
	key
	tenant   string
	timing   *timing
	position position
	row      time.Time // the slot in the store
	base     time.Time // the slot after which runs are due
	resumed  time.Time // slots up to here were paused, not missed
	due      time.Time // when its first run that has not been is due
	at       time.Time // when it is looked at next; zero: never
}

type key struct {
	schedule jobs.Schedule
	account  string
}

// arrange finds out when the entry's next run is.
//
// One that is a little late runs at once. One that is later, because no scheduler
// ran, waits for its next slot where that comes soon enough, and else for its
// phase of a window, so that those who return do not all run at once.
func (e *entry) arrange(now time.Time) {
	t := e.timing
	first := t.next(e.base)
	if first.IsZero() {
		e.due, e.at = time.Time{}, time.Time{}
		return
	}
	e.due = t.due(first, e.position)
	e.at = e.due
	if now.Sub(e.due) <= t.patience(first) {
		return
	}
	last := t.lastDue(now, e.position)
	e.at = time.Time{}
	if coming := t.next(last); !coming.IsZero() {
		e.at = t.due(coming, e.position)
	}
	window := min(t.gap(last), catchUpWindow)
	if t.CatchUp && (e.at.IsZero() || e.at.After(now.Add(window))) {
		e.at = nextPhase(now, window, e.position.phase)
	}
	if !t.CatchUp {
		e.due = e.at // nothing before it will ever run
	}
}

// claim is what to run now, or false when nothing is due.
func (e *entry) claim(now time.Time) (jobs.SlotClaim, bool) {
	t := e.timing
	slot := t.lastDue(now, e.position)
	if !slot.After(e.base) { // the clock was put back
		return jobs.SlotClaim{}, false
	}
	first := t.next(e.base)
	counted := e.base
	if e.resumed.After(counted) {
		counted = e.resumed
	}
	c := jobs.SlotClaim{Schedule: e.schedule, Account: e.account, Spec: t.id(), After: e.row, Slot: slot, At: now,
		Missed: t.between(counted, slot)}
	c.CatchUp = t.CatchUp && (slot.After(first) || now.Sub(t.due(first, e.position)) > t.patience(first))
	return c, true
}

// held reports whether the entry is paused, and notes when it was last resumed.
func (e *entry) held(pauses []jobs.SchedulePause) bool {
	for _, p := range pauses {
		if !p.Covers(e.schedule, e.tenant, e.account) {
			continue
		}
		if p.ResumedAt.IsZero() {
			return true
		}
		if p.ResumedAt.After(e.resumed) {
			e.resumed = p.ResumedAt
		}
	}
	return false
}

// passed is the slot of an entry that is seen for the first time.
func (e *entry) passed(now time.Time) time.Time {
	if slot := e.timing.lastDue(now, e.position); !slot.IsZero() {
		return slot
	}
	return now.Truncate(time.Second) // there was none yet
}

// firstSlot is the row of an entry that is seen for the first time.
func (e *entry) firstSlot(now time.Time) *jobs.Slot {
	return &jobs.Slot{Schedule: e.schedule, Account: e.account, Spec: e.timing.id(), Slot: e.passed(now)}
}

// begin arranges the entry from its row. What the timeline before knew of it holds
// while the row is the same, so that a run that waits its turn does not begin to
// wait anew.
func (e *entry) begin(row *jobs.Slot, before *timeline, now time.Time) {
	e.row, e.base = row.Slot, row.Slot
	if row.Spec != e.timing.id() { // it is another schedule now, which has missed nothing
		if slot := e.passed(now); slot.After(e.base) {
			e.base = slot
		}
	}
	if before != nil {
		if old := before.entries[e.key]; old != nil && old.row.Equal(e.row) && old.timing == e.timing && old.resumed.Equal(e.resumed) {
			e.base, e.due, e.at = old.base, old.due, old.at
			return
		}
	}
	e.arrange(now)
}

// A timeline holds the entries by the moment at which each is looked at next, so that
// a tick touches only those that are due.
type timeline struct {
	revision jobs.ScheduleRevision
	entries  map[key]*entry
	count    map[jobs.Schedule]int // of the entries
	late     map[*entry]bool       // those that wait longer than until they are due
	order    byMoment
}

func newTimeline() *timeline {
	return &timeline{entries: map[key]*entry{}, count: map[jobs.Schedule]int{}, late: map[*entry]bool{}}
}

// add puts an entry into the order, if it has a moment.
func (l *timeline) add(s *entry) {
	l.entries[s.key] = s
	l.count[s.schedule]++
	l.push(s)
}

// remove forgets an entry that is not in the order.
func (l *timeline) remove(s *entry) {
	delete(l.entries, s.key)
	l.count[s.schedule]--
}

func (l *timeline) push(s *entry) {
	if s.at.IsZero() {
		return
	}
	heap.Push(&l.order, s)
	if s.at.After(s.due) {
		l.late[s] = true
	}
}

// pop takes out the entries whose moment has come, at most n.
func (l *timeline) pop(now time.Time, n int) (due []*entry) {
	for len(l.order) > 0 && len(due) < n && !l.order[0].at.After(now) {
		s := heap.Pop(&l.order).(*entry)
		delete(l.late, s)
		due = append(due, s)
	}
	return due
}

// lag returns for how long the run of each schedule that has waited longest has been
// due. It looks only at what waits.
func (l *timeline) lag(now time.Time) map[jobs.Schedule]time.Duration {
	lag := map[jobs.Schedule]time.Duration{}
	for s := range l.late {
		lag[s.schedule] = max(lag[s.schedule], now.Sub(s.due))
	}
	var look func(i int)
	look = func(i int) {
		if i >= len(l.order) || l.order[i].at.After(now) { // nor has what is below it waited
			return
		}
		lag[l.order[i].schedule] = max(lag[l.order[i].schedule], now.Sub(l.order[i].due))
		look(2*i + 1)
		look(2*i + 2)
	}
	look(0)
	return lag
}

// byMoment is a heap.
type byMoment []*entry

func (h byMoment) Len() int           { return len(h) }
func (h byMoment) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byMoment) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *byMoment) Push(x any) { *h = append(*h, x.(*entry)) }

// Pop implements [heap.Interface].
func (h *byMoment) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
