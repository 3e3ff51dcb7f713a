package quota

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

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

// Renew renews the slots of the ledger's calls, as its timer does at a moment.
func (l *Ledger) Renew(now time.Time) { l.slots.renew(l, now) }

// Try is Acquire for a call that asks once: for a slot only, if its cost is 0.
func (l *Ledger) Try(ctx context.Context, c Call) (Permit, error) {
	b, err := l.book(c.Caller.Project, c.API)
	if err != nil {
		return nil, err
	}
	p, err := l.try(ctx, b, c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Slots is how many slots the ledger keeps renewing.
func (l *Ledger) Slots() int {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	return l.slots.n
}

// SlotKeys are the keys in which a user's slots and what was learned are kept.
func (l *Ledger) SlotKeys(c Caller, api string) []string {
	p, err := l.plan(c, api)
	if err != nil {
		panic(err)
	}
	return p.slotKeys(c.User)
}

// ReleaseHash names release.lua in Redis.
var ReleaseHash = releaseScript.Hash()

// AtLength lets the ledger decide about every call as about one that is not common.
func (l *Ledger) AtLength() {
	const test, never = "local plain = ", "local plain = 'never' .. "
	source := withNumbers(sourceOf("acquire.lua"))
	if strings.Count(source, test) != 1 {
		panic("acquire.lua tells the common call otherwise now")
	}
	l.acquire = redis.NewScript(strings.Replace(source, test, never, 1))
}
