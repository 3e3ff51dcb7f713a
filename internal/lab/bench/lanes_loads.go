package bench

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// What people ask for in the loads, in units.
const (
	laneLimit       = 6000 // of the user's minute
	interactiveCost = 5
	sendCost        = 100
	backfillCost    = 20
)

// A burst is what somebody does who comes back to a mailbox.
const (
	burstCalls = 60
	burstTime  = 2 * time.Second
)

// laneLoad is a kind of interactive demand on one user. Calls come one by one,
// independently of each other, and so do bursts.
type laneLoad struct {
	name       string
	perMinute  float64       // calls, on average, beside the bursts
	burstEvery time.Duration // on average; 0: no bursts
}

var laneLoads = []laneLoad{
	{name: "light", perMinute: 5},
	{name: "moderate", perMinute: 50},
	{name: "heavy", perMinute: 250},
	{name: "spiky", perMinute: 20, burstEvery: 5 * time.Minute},
}

// A demand is a call that somebody makes, admitted or not.
type demand struct {
	at   time.Duration // since the load began
	cost int64
}

// demands are the calls of a load, in their order. The same seed gives the same
// calls, so that all modes meet the same people.
func (l laneLoad) demands(seed uint64, long time.Duration) []demand {
	var all []demand
	for _, at := range poisson(rand.New(rand.NewPCG(seed, 1)), time.Duration(float64(time.Minute)/l.perMinute), long) {
		all = append(all, demand{at, interactiveCost})
	}
	if l.burstEvery > 0 {
		chance := rand.New(rand.NewPCG(seed, 2))
		for _, began := range poisson(chance, l.burstEvery, long) {
			within := func() time.Duration {
				return began + time.Duration(chance.Int64N(burstTime.Microseconds()))*time.Microsecond
			}
			for range burstCalls {
				all = append(all, demand{within(), interactiveCost})
			}
			all = append(all, demand{within(), sendCost})
		}
	}
	slices.SortStableFunc(all, func(a, b demand) int { return cmp.Compare(a.at, b.at) })
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
