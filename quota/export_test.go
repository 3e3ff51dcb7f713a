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
