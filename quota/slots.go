package quota

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slotLife is how long an in-flight slot counts that nobody renews: a process that
	// dies frees its slots within that time.
	slotLife = 10 * time.Second
	// renewEvery is how often the slots of long calls are renewed: often enough that one
	// attempt may fail.
	renewEvery = slotLife / 3
	// renewTimeout bounds how long one renewal takes, over all users.
	renewTimeout = 2 * time.Second
	// longestSilence is how long the slot of a call is renewed that makes no progress:
	// one whose body nobody reads or closes would have it for ever.
	longestSilence = 5 * time.Minute
)

// A slot is one of the calls that a user may have in flight.
type slot struct {
	user     slotUser
	name     string       // in Redis
	at       time.Time    // when it was taken, on the clock of Redis
	inFlight int64        // calls in flight then, this one included
	progress atomic.Int64 // when the call last made progress, by the local clock, in ns

	renewed time.Time // on the local clock; guarded by slots.mu
}

type slotUser struct {
	state *book
	user  string // folded
}

// slots are the in-flight slots that this process has. While there are any, a timer
// renews those of long calls; while there are none, nothing runs.
type slots struct {
	process string       // tells this process' slots from those of others
	named   atomic.Int64 // slots

	mu    sync.Mutex
	users map[slotUser]*userSlots
	n     int         // slots of all users
	timer *time.Timer // nil: not set
}

// userSlots are the slots of a user. They exist as long as there are any, or calls
// wait for one.
type userSlots struct {
	held    map[*slot]struct{}
	waiting int
	freed   chan struct{} // closed and replaced when a slot was released
}

func newSlots() *slots {
	var id [6]byte
	rand.Read(id[:]) // never fails
	return &slots{process: hex.EncodeToString(id[:]), users: map[slotUser]*userSlots{}}
}

// newSlot names a slot that Redis may be asked for.
func (s *slots) newSlot(user slotUser) *slot {
	return &slot{user: user, name: s.process + "-" + strconv.FormatInt(s.named.Add(1), 36)}
}

// of returns the slots of a user. s.mu must be held.
func (s *slots) of(user slotUser) *userSlots {
	u := s.users[user]
	if u == nil {
		u = &userSlots{held: map[*slot]struct{}{}, freed: make(chan struct{})}
		s.users[user] = u
	}
	return u
}

// tidy forgets a user without slots, and stops the timer when nobody has any. s.mu
// must be held.
func (s *slots) tidy(user slotUser) {
	if u := s.users[user]; u != nil && len(u.held) == 0 && u.waiting == 0 {
		delete(s.users, user)
	}
	if s.n == 0 && s.timer != nil && s.timer.Stop() { // else run is at work, and ends it
		s.timer = nil
	}
}

// add keeps a slot that was taken when Redis was asked at a moment of the local clock.
func (s *slots) add(l *Ledger, taken *slot, asked time.Time) {
	taken.renewed = asked
	taken.progress.Store(asked.UnixNano())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(taken.user).held[taken] = struct{}{}
	s.n++
	if s.timer == nil {
		s.timer = time.AfterFunc(renewEvery, func() { s.run(l) })
	}
}

// remove ends the renewal of a slot.
func (s *slots) remove(gone *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(gone)
	s.tidy(gone.user)
}

// drop is remove with s.mu held.
func (s *slots) drop(gone *slot) {
	if u := s.users[gone.user]; u != nil {
		if _, ok := u.held[gone]; ok {
			delete(u.held, gone)
			s.n--
		}
	}
}

// wait announces a call that waits for a slot of a user, until done is called. Freed
// returns a channel that is closed when this process releases one.
func (s *slots) wait(user slotUser) (freed func() <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.of(user)
	u.waiting++
	freed = func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return u.freed
	}
	return freed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.waiting--
		s.tidy(user)
	}
}

// wake lets the calls that wait for a slot of a user ask again.
func (s *slots) wake(user slotUser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[user]; u != nil && u.waiting > 0 {
		close(u.freed)
		u.freed = make(chan struct{})
	}
}

// run renews slots, and sets the timer again while there are any.
func (s *slots) run(l *Ledger) {
	s.renew(l, time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer = nil; s.n > 0 {
		s.timer = time.AfterFunc(renewEvery, func() { s.run(l) })
	}
}

// renew renews the slots of calls that have been in flight for a while.
func (s *slots) renew(l *Ledger, now time.Time) {
	// No caller's context applies here, and Redis may not answer.
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	for user, names := range s.due(now) {
		keys := user.state.rules.Load().plan(user.user, Interactive).slotKeys(user.user)
		_, _ = l.eval(ctx, renewScript, keys[:1], append([]any{l.testClock()}, names...)...) // slots that are lost count again with their next calls
	}
}

// due returns the names of the slots that are to be renewed, and forgets those whose
// calls have been silent for too long.
func (s *slots) due(now time.Time) map[slotUser][]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := map[slotUser][]any{}
	for user, u := range s.users {
		for held := range u.held {
			switch {
			case now.UnixNano()-held.progress.Load() > longestSilence.Nanoseconds():
				s.drop(held)
			case now.Sub(held.renewed) >= renewEvery/2:
				due[user] = append(due[user], held.name)
				held.renewed = now
			}
		}
	}
	return due
}
