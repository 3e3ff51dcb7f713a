package quota

import (
	"context"
	"sync"
	"time"
)

// leaseLife is how long a lease may be spent from, in quota time. Its units are
// counted when they are leased; the guard covers that they are spent later.
const leaseLife = guard

// A Lease is a few units that were charged in one go and are spent without asking
// again, for bulk work whose calls would ask for each. It ends with the process'
// first news of a cool-down; other processes' leases end within their second. It is
// safe for concurrent use.
type Lease struct {
	ledger *Ledger
	charge Charge
	ends   time.Time // on the local clock, counted from before the units were charged

	mu       sync.Mutex
	left     int64
	returned bool
}

// Lease charges at least cost units, and up to want as far as they fit now, and
// spends cost of them. The rest may be spent within a second by
// [Lease.Spend], and goes back with [Lease.Return]. Errors are those of
// [Ledger.Take].
func (l *Ledger) Lease(ctx context.Context, c Caller, api string, cost, want int64) (*Lease, error) {
	began := time.Now()
	d, err := l.TakeUpTo(ctx, c, api, cost, want)
	if err != nil {
		return nil, err
	}
	return &Lease{ledger: l, charge: d.Charge, left: d.Charge.Units - cost, ends: began.Add(leaseLife / time.Duration(l.scale))}, nil
}

// Spend takes units from the lease, and reports whether it could: not when it has
// ended, was returned, has less left, or Google has refused a call meanwhile.
func (l *Lease) Spend(units int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.returned || units > l.left || !now.Before(l.ends) || l.ledger.knowsClosed(l.charge, now) {
		return false
	}
	l.left -= units
	return true
}

// Return gives back what is left. Nothing can be spent afterwards; returning
// twice is fine.
func (l *Lease) Return(ctx context.Context) error {
	l.mu.Lock()
	left := l.left
	l.left, l.returned = 0, true
	l.mu.Unlock()
	return l.ledger.Settle(ctx, l.charge, l.charge.Units-left)
}

// life is how long the lease can still be spent from; 0 when it is over or empty.
func (l *Lease) life() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return 0
	}
	return max(0, time.Until(l.ends))
}
