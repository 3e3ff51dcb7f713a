package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// What the loads ask for: calls of one user, on a limit of Gmail's size.
const (
	loadLimit = 6000 // units a minute
	loadCost  = 20
	gulp      = loadLimit / loadCost // calls that use up the limit at once
	loadTime  = 6 * time.Minute
	// loadClients ask in turn. Only the plain script knows them apart.
	loadClients = 2
)

// loadBegins is on a full minute, where the two-counter's windows begin.
var loadBegins = time.Date(2026, time.October, 1, 12, 0, 0, 0, time.UTC)

// A wave is up to so many calls at one moment. It ends early when every client
// has been refused.
type wave struct {
	at    time.Duration // since the load began
	calls int
}

// loads are shapes of demand that all ask for more than the limit.
var loads = map[string]func() []wave{
	// Evenly, at twice the limit's rate, from three quarters of a minute on.
	"smooth": func() []wave { return evenly(nil, 45*time.Second, loadTime, 100*time.Millisecond) },
	// All that can be had, twice a second, at odd moments.
	"burst": func() []wave {
		var waves []wave
		odd := rand.New(rand.NewPCG(3, 3))
		for at := 45 * time.Second; at < loadTime; at += 250*time.Millisecond + time.Duration(odd.IntN(500))*time.Millisecond {
			waves = append(waves, wave{at, gulp})
		}
		return waves
	},
	// For 15 s four times the limit's rate, then nothing for 30 s.
	"on_off": func() []wave {
		var waves []wave
		for at := 45 * time.Second; at < loadTime; at += 45 * time.Second {
			waves = evenly(waves, at, at+15*time.Second, 50*time.Millisecond)
		}
		return waves
	},
	// All of the limit just before a full minute ends, as much again as can be
	// had in the minute after, and then a minute's rest.
	"edge": func() []wave {
		var waves []wave
		for at := time.Duration(0); at < loadTime; at += 3 * time.Minute {
			waves = append(waves, wave{at + time.Minute - 50*time.Millisecond, gulp})
			waves = evenly(waves, at+time.Minute, at+2*time.Minute, 100*time.Millisecond)
		}
		return waves
	},
}

// evenly adds single calls from from up to, but not at, until.
func evenly(waves []wave, from, until, every time.Duration) []wave {
	for at := from; at < until; at += every {
		waves = append(waves, wave{at, 1})
	}
	return waves
}

// overAdmission runs a load against a rival and returns by how many percent the
// fullest minute, however aligned, exceeds the limit.
func overAdmission(ctx context.Context, r rival, waves []wave) (percent float64, err error) {
	var log []time.Duration // of admitted calls
	oldest, most := 0, 0
	asked := 0
	for _, w := range waves {
		refused := 0
		for n := 0; n < w.calls && refused < loadClients; n++ {
			ok, err := r.admit(ctx, loadBegins.Add(w.at), asked%loadClients)
			if err != nil {
				return 0, fmt.Errorf("%s after %s: %w", r.name, w.at, err)
			}
			asked++
			if !ok {
				refused++
				continue
			}
			refused = 0
			log = append(log, w.at)
			for log[oldest] <= w.at-rivalWindow {
				oldest++
			}
			most = max(most, len(log)-oldest)
		}
	}
	if most == 0 {
		return 0, fmt.Errorf("%s admitted nothing", r.name)
	}
	return round(max(0, 100*(float64(most)*loadCost/loadLimit-1))), nil
}
