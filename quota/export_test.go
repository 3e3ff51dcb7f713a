package quota

import "time"

// SetNow makes a ledger count by another clock than that of Redis.
func (l *Ledger) SetNow(now func() time.Time) { l.now = now }

// SkewClock lets a ledger believe in a wrong local clock: the one that it tells
// days by.
func SkewClock(l *Ledger, by time.Duration) {
	l.today = func() time.Time { return time.Now().Add(by) }
}

// Keys are the keys that a caller's decisions touch.
func (l *Ledger) Keys(c Caller, api string) []string {
	p, err := l.plan(c, api)
	if err != nil {
		panic(err)
	}
	return p.keys(c.User)
}

// MethodTable is the table that requests are recognised by.
var MethodTable = methodTable

// Prefix is what the names of the ledger's keys begin with.
func (l *Ledger) Prefix() string { return l.prefix }

// Renew renews the places of the ledger's calls, as its timer does at a moment.
func (l *Ledger) Renew(now time.Time) { l.flights.renew(l, now) }

// Flying is how many places the ledger keeps renewing.
func (l *Ledger) Flying() int {
	l.flights.mu.Lock()
	defer l.flights.mu.Unlock()
	return l.flights.n
}

// PlaceKeys are the keys in which a user's places and what was learned are kept.
func (l *Ledger) PlaceKeys(c Caller, api string) []string {
	p, err := l.plan(c, api)
	if err != nil {
		panic(err)
	}
	return p.flightKeys(c.User)
}
