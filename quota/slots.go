package quota

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
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

// LimitInFlight is the limit of the calls that a Google user has in flight.
const LimitInFlight = "user-in-flight"

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

// slotKeys names what the scripts keep of a user's calls in flight: the slots, and what
// was learned of them. They are no part of the windows' shape: processes that count in
// other windows share them. The names are older than our words.
func (p *plan) slotKeys(user string) []string {
	user = lower(user)
	return []string{p.base + "places:" + user, p.base + "flight:" + user}
}

// hour is the length of an hour of quota time, in us.
func (l *Ledger) hour() int64 { return time.Hour.Microseconds() / int64(l.scale) }

// FlightState is what is known of the calls that a Google user has in flight, and
// of its bytes.
type FlightState struct {
	InFlight int64 `json:"in_flight"` // now, over all processes
	// Learned is how many Google allows as far as refusals tell; 0: none was refused
	// lately. The background may use one less.
	Learned int64 `json:"learned,omitempty"`
	// CalmUntil is when a call may try one more than Learned; zero if nothing was
	// learned.
	CalmUntil time.Time `json:"calm_until,omitzero"`
	// Bytes of answers in the last day, as the calls' bodies delivered them: after
	// decompression, so Google may count fewer.
	Bytes int64 `json:"bytes"`
}

// InFlight reports what is known of a user's calls in flight, and changes nothing.
func (l *Ledger) InFlight(ctx context.Context, project, user, api string) (FlightState, error) {
	p, err := l.plan(Caller{Project: project, User: user, Lane: Interactive}, api)
	if err == nil {
		err = checkUser(user)
	}
	if err != nil {
		return FlightState{}, err
	}
	reply, err := l.eval(ctx, lookScript, p.slotKeys(user), l.hour(), l.testClock())
	switch {
	case err != nil:
		err = unavailable(err)
	case len(reply) != 4:
		err = fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, len(reply))
	}
	if err != nil {
		return FlightState{}, fmt.Errorf("look at calls in flight: %w", err)
	}
	s := FlightState{InFlight: reply[0], Learned: reply[1], Bytes: reply[3]}
	if reply[2] > 0 {
		s.CalmUntil = time.UnixMicro(reply[2])
	}
	return s, nil
}

// release gives a slot back, and reports how many bytes the call brought. If Google
// refused it because too many calls were in flight, refused is how many of Google's
// calls it was, else 0.
func (l *Ledger) release(ctx context.Context, s *slot, lane Lane, bytes, refused int64) error {
	l.slots.remove(s)
	defer l.slots.wake(s.user)
	state := s.user.state
	if err := state.breaker.broken(); err != nil {
		return err // while Redis does not answer, nobody is held up here
	}
	p := state.rules.Load().plan(s.user.user, lane)
	keys, args := p.slotKeys(s.user.user), []any{s.name, bytes, l.hour()}
	if refused > 0 || l.now != nil {
		keys = append(keys, p.keys(s.user.user)[1])
		args = append(args, refused, s.at.UnixMicro(), s.inFlight, l.testClock())
	}
	lowered, err := l.eval(ctx, releaseScript, keys, args...)
	if err != nil {
		return fmt.Errorf("release an in-flight slot: %w", unavailable(err))
	}
	l.metrics.bytes.WithLabelValues(string(lane)).Add(float64(bytes))
	if len(lowered) == 1 && lowered[0] == 1 {
		l.metrics.lowered.WithLabelValues(state.list.API).Inc()
	}
	return nil
}
