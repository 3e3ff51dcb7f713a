package quota

import (
	"sync"
	"time"
)

// maxDenials bounds how many refusals are remembered. When there are more, those
// that are over are forgotten, and the rest with them if that is not enough.
const maxDenials = 10_000

// denials remembers refusals until the moment that they name, so that a storm of
// repeated calls does not reach Redis: nothing but a refund could make such a
// call fit earlier. The zero value is ready for use.
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
}

func keyOf(c Caller, api string) denialKey {
	c.MaxWait = 0
	return denialKey{c, api}
}

// remember notes a refusal that was told just now.
func (d *denials) remember(c Caller, api string, e *DeniedError) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.told) >= maxDenials {
		for key, old := range d.told {
			if !old.until.After(now) {
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
	d.told[keyOf(c, api)] = denial{err: e, until: now.Add(e.RetryAfter)}
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
	left := time.Until(old.until)
	if left <= 0 {
		delete(d.told, keyOf(c, api))
		return nil
	}
	again := *old.err
	again.Caller, again.Cost, again.RetryAfter = c, cost, left
	return &again
}

// forget lets the next call of an account ask again, whatever it was told.
func (d *denials) forget(c Caller, api string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, lane := range Lanes {
		c.Lane = lane
		delete(d.told, keyOf(c, api))
	}
}
