package quota

import "time"

// exactWidth is how wide the buckets are without the guard: as narrow as the
// layout of the keys allows for a minute, whose buckets are counted in a byte.
const exactWidth = 250 * time.Millisecond

// Simulate makes a ledger count by now instead of by the clock of Redis, for
// simulations of hours in seconds. No setting leads here: processes that count
// by clocks of their own do not count together. It is called before the ledger's
// first decision.
func Simulate(l *Ledger, now func() time.Time) { l.now = now }

// WithoutGuard makes the ledger of these options hold a unit for Google's window
// and for as little longer as it can, for measurements that show what the guard
// and the width of the buckets are for. Such a ledger still admits no more than
// the limit in any window, but calls of which some travel longer than others
// arrive at Google in other windows, and are refused. No setting leads here.
func WithoutGuard(o *Options) { o.noGuard = true }
