package quota

import (
	"context"
	"sync/atomic"
)

// A Tally counts the units that are charged to some Google calls, see [WithTally].
// It is safe for concurrent use.
type Tally struct{ units atomic.Int64 }

// Take returns the units counted since the last Take.
func (t *Tally) Take() int64 { return t.units.Swap(0) }

type tallyKey struct{}

// WithTally returns a context whose Google calls [Transport] counts in t, besides
// charging them.
func WithTally(ctx context.Context, t *Tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

// tally counts the units of a call that was charged.
func tally(ctx context.Context, units int64) {
	if t, ok := ctx.Value(tallyKey{}).(*Tally); ok {
		t.units.Add(units)
	}
}
