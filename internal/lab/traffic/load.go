package traffic

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// What calls of a load cost, in units.
const (
	ReadCost = 5
	SendCost = 100
)

// A burst is what a user does who comes back to a mailbox: so many reads within so
// long, and one message sent.
const (
	BurstCalls = 60
	BurstTime  = 2 * time.Second
)

// A Load is a kind of interactive demand on one user. Calls come one by one,
// independently of each other, and so do bursts.
type Load struct {
	Name       string
	PerMinute  float64       // calls, on average, beside the bursts
	BurstEvery time.Duration // on average; 0: no bursts
}

// The loads that benchmarks play.
var (
	Light    = Load{Name: "light", PerMinute: 5}
	Moderate = Load{Name: "moderate", PerMinute: 50}
	Heavy    = Load{Name: "heavy", PerMinute: 250}
	Spiky    = Load{Name: "spiky", PerMinute: 20, BurstEvery: 5 * time.Minute}
)

// A Demand is a call that a user makes, admitted or not.
type Demand struct {
	At   time.Duration // since the load began
	Cost int64         // in units
}

// Demands are the calls of a load, in their order. The same seed gives the same
// calls, so that whatever is compared meets the same users.
func (l Load) Demands(seed uint64, long time.Duration) []Demand {
	var all []Demand
	for _, at := range poisson(rand.New(rand.NewPCG(seed, 1)), time.Duration(float64(time.Minute)/l.PerMinute), long) {
		all = append(all, Demand{at, ReadCost})
	}
	if l.BurstEvery > 0 {
		chance := rand.New(rand.NewPCG(seed, 2))
		for _, began := range poisson(chance, l.BurstEvery, long) {
			within := func() time.Duration {
				return began + time.Duration(chance.Int64N(BurstTime.Microseconds()))*time.Microsecond
			}
			for range BurstCalls {
				all = append(all, Demand{within(), ReadCost})
			}
			all = append(all, Demand{within(), SendCost})
		}
	}
	slices.SortStableFunc(all, func(a, b Demand) int { return cmp.Compare(a.At, b.At) })
	return all
}

// poisson returns the moments before until of a Poisson process, in whole
// microseconds, as the ledger counts.
func poisson(chance *rand.Rand, every, until time.Duration) []time.Duration {
	var all []time.Duration
	for at := time.Duration(0); ; {
		at += time.Duration(chance.ExpFloat64() * float64(every))
		if at >= until {
			return all
		}
		all = append(all, at.Truncate(time.Microsecond))
	}
}
