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
	// renewEvery is how often the places of calls that take long are renewed: often
	// enough that one attempt may go wrong.
	renewEvery = placeLife / 3
	// renewTimeout bounds how long one renewal takes, over all users.
	renewTimeout = 2 * time.Second
	// longestSilence is how long a place is renewed for a call that shows no life:
	// one whose body nobody reads or closes would have it for ever.
	longestSilence = 5 * time.Minute
)

// flights are the calls that this process has in flight. While there are any, a
// timer renews the places of those that take long; while there are none, nothing
// runs.
type flights struct {
	process string       // tells this process' places from those of others
	named   atomic.Int64 // places

	mu    sync.Mutex
	users map[flightUser]*flightsOf
	n     int         // calls in flight
	timer *time.Timer // nil: not set
}

type flightUser struct {
	book *book
	user string // folded
}

// flightsOf are the calls that a user has in flight in this process. It exists as
// long as there are any, or some wait for a place.
type flightsOf struct {
	places  map[*Departure]struct{}
	waiting int
	freed   chan struct{} // closed and replaced when a place was given back
}

func newFlights() *flights {
	var id [6]byte
	rand.Read(id[:]) // never fails
	return &flights{process: hex.EncodeToString(id[:]), users: map[flightUser]*flightsOf{}}
}

func (f *flights) newName() string {
	return f.process + "-" + strconv.FormatInt(f.named.Add(1), 36)
}

func (d *Departure) key() flightUser { return flightUser{d.book, lower(d.caller.User)} }

// of returns the flights of a user. f.mu must be held.
func (f *flights) of(key flightUser) *flightsOf {
	u := f.users[key]
	if u == nil {
		u = &flightsOf{places: map[*Departure]struct{}{}, freed: make(chan struct{})}
		f.users[key] = u
	}
	return u
}

// tidy forgets a user with nothing in flight, and stops the timer when nobody has.
// f.mu must be held.
func (f *flights) tidy(key flightUser) {
	if u := f.users[key]; u != nil && len(u.places) == 0 && u.waiting == 0 {
		delete(f.users, key)
	}
	if f.n == 0 && f.timer != nil && f.timer.Stop() { // else renew is running, and ends it
		f.timer = nil
	}
}

func (f *flights) add(l *Ledger, d *Departure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(d.key()).places[d] = struct{}{}
	f.n++
	if f.timer == nil {
		f.timer = time.AfterFunc(renewEvery, func() { f.run(l) })
	}
}

// remove lets a place not be renewed any more.
func (f *flights) remove(d *Departure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(d)
	f.tidy(d.key())
}

// drop is remove with f.mu held.
func (f *flights) drop(d *Departure) {
	if u := f.users[d.key()]; u != nil {
		if _, ok := u.places[d]; ok {
			delete(u.places, d)
			f.n--
		}
	}
}

// wait says that somebody waits for a place of a user, until done is called. Freed
// returns a channel that is closed when this process gives one back.
func (f *flights) wait(key flightUser) (freed func() <-chan struct{}, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.of(key)
	u.waiting++
	freed = func() <-chan struct{} {
		f.mu.Lock()
		defer f.mu.Unlock()
		return u.freed
	}
	return freed, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		u.waiting--
		f.tidy(key)
	}
}

// wake lets those who wait for a place ask again.
func (f *flights) wake(d *Departure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.users[d.key()]; u != nil && u.waiting > 0 {
		close(u.freed)
		u.freed = make(chan struct{})
	}
}

// run renews places, and sets the timer again while anything is in flight.
func (f *flights) run(l *Ledger) {
	f.renew(l, time.Now())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer = nil; f.n > 0 {
		f.timer = time.AfterFunc(renewEvery, func() { f.run(l) })
	}
}

// renew renews the places of calls that have been in flight for a while.
func (f *flights) renew(l *Ledger, now time.Time) {
	// Nobody's context is in question here, and Redis may not answer.
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	for key, names := range f.due(now) {
		p := key.book.rules.Load().plan(key.user, Interactive)
		_, _ = l.flight(ctx, p, key.user, "renew", names...) // places that are lost count again with their next calls
	}
}

// due returns the names of the places that are to be renewed, and forgets those
// whose calls have been silent for too long.
func (f *flights) due(now time.Time) map[flightUser][]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := map[flightUser][]any{}
	for key, u := range f.users {
		for d := range u.places {
			switch {
			case now.UnixNano()-d.active.Load() > longestSilence.Nanoseconds():
				f.drop(d)
			case now.Sub(d.renewed) >= renewEvery/2:
				due[key] = append(due[key], d.name)
				d.renewed = now
			}
		}
	}
	return due
}
