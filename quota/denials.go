package quota

import (
	"sync"
	"time"
)

// maxDenials bounds how many refusals are remembered. When there are more, those
// that are over are forgotten, and the rest with them if that is not enough.
const maxDenials = 10_000

// recheck is how long a refusal is remembered at most: settings may have changed.
const recheck = 150 * time.Millisecond

// denials remembers refusals for a moment, so that a storm of repeated calls does
// not reach Redis: nothing but other settings could make such a call fit earlier than
// it was told. The zero value is ready for use.
type denials struct {
	mu   sync.Mutex
	told map[denialKey]denial
}

type denialKey struct {
	Caller // without MaxWait
	api    string
}

type denial struct {
	err   *DeniedError
	until time.Time // on the local clock
	known time.Time // when to ask again, on the local clock
}

func keyOf(c Caller, api string) denialKey {
	c.MaxWait, c.User = 0, lower(c.User)
	return denialKey{c, api}
}

// remember notes a refusal that was told just now.
func (d *denials) remember(c Caller, api string, e *DeniedError) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.told) >= maxDenials {
		for key, old := range d.told {
			if !old.known.After(now) {
				delete(d.told, key)
			}
		}
		if len(d.told) >= maxDenials {
			clear(d.told)
		}
	}
	if d.told == nil {
		d.told = map[denialKey]denial{}
	}
	d.told[keyOf(c, api)] = denial{err: e, until: now.Add(e.RetryAfter), known: now.Add(min(e.RetryAfter, recheck))}
}

// recall returns the refusal that still holds for a call of this cost, or nil.
func (d *denials) recall(c Caller, api string, cost int64) *DeniedError {
	if cost == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.told[keyOf(c, api)]
	if !ok || cost < old.err.Cost {
		return nil
	}
	now := time.Now()
	left := old.until.Sub(now)
	if left <= 0 || !old.known.After(now) {
		delete(d.told, keyOf(c, api))
		return nil
	}
	again := *old.err
	again.Caller, again.Cost, again.RetryAfter = c, cost, left
	return &again
}
