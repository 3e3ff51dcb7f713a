package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"headroom/internal/lab/traffic"
	"headroom/quota"
)

// laneLoads are the loads under which modes are compared.
var laneLoads = []traffic.Load{traffic.Light, traffic.Moderate, traffic.Heavy, traffic.Spiky}

const (
	laneLimit    = 6000 // units of the user's minute
	backfillCost = 20
)

// How much is simulated, and within what time that must be done.
const (
	laneSeeds     = 2
	laneTime      = 4 * time.Hour
	laneBound     = 10 * time.Minute
	laneSeedsFull = 6
	laneTimeFull  = 8 * time.Hour
	laneBoundFull = time.Hour
)

// What the lanes promise.
const (
	minDefaultShareLight  = 0.75
	minDefaultShareSpiky  = 0.72
	maxDefaultRefusals    = 0.002
	minAdaptiveShareLight = 0.85
)

// LanesFigures are what lanes measured: how a backfill that never ends and
// interactive calls share one user's limit, in virtual time. Nothing in them depends on the machine
// but Seconds.
type LanesFigures struct {
	Bench string  `json:"bench"`
	Seeds int     `json:"seeds"`
	Hours float64 `json:"hours"` // of virtual time, with each seed

	DefaultShareLight      float64 `json:"default_share_light"`
	DefaultShareSpiky      float64 `json:"default_share_spiky"`
	DefaultRefusalRatioMax float64 `json:"default_refusal_ratio_max"` // the highest of the loads'
	DefaultLongestWaitMax  float64 `json:"default_longest_wait_s_max"`
	GuaranteedRefusals     int64   `json:"guaranteed_refusals"` // in all loads
	AdaptiveShareLight     float64 `json:"adaptive_share_light"`
	NoBackfillRefusals     int64   `json:"no_backfill_refusals"` // in all loads: the limit's own doing

	Runs      []LaneRun `json:"runs"`
	Decisions int64     `json:"decisions"`
	Seconds   float64   `json:"seconds"`
}

// LaneRun is one mode under one load, over all seeds.
type LaneRun struct {
	Mode          string  `json:"mode"` // "none": interactive calls alone
	Load          string  `json:"load"`
	BackfillShare float64 `json:"backfill_share"` // of the whole limit
	Calls         int64   `json:"interactive_calls"`
	Refused       int64   `json:"refused"` // interactive calls, at their first attempt
	RefusalRatio  float64 `json:"refusal_ratio"`
	// LongestWait is the longest that an interactive call waited, from its first
	// attempt until it was admitted.
	LongestWait float64 `json:"longest_wait_s"`
}

// Broken implements [Figures].
func (f *LanesFigures) Broken() string {
	switch {
	case len(f.Runs) != len(laneModes())*len(laneLoads):
		return fmt.Sprintf("%d of %d modes and loads were measured", len(f.Runs), len(laneModes())*len(laneLoads))
	case f.DefaultShareLight < minDefaultShareLight:
		return fmt.Sprintf("default_share_light is %v, at least %v is promised", f.DefaultShareLight, minDefaultShareLight)
	case f.DefaultShareSpiky < minDefaultShareSpiky:
		return fmt.Sprintf("default_share_spiky is %v, at least %v is promised", f.DefaultShareSpiky, minDefaultShareSpiky)
	case f.DefaultRefusalRatioMax > maxDefaultRefusals:
		return fmt.Sprintf("default_refusal_ratio_max is %v, at most %v is promised", f.DefaultRefusalRatioMax, maxDefaultRefusals)
	case f.GuaranteedRefusals != f.NoBackfillRefusals:
		return fmt.Sprintf("guaranteed_refusals is %d, as many as no_backfill_refusals are promised: %d", f.GuaranteedRefusals, f.NoBackfillRefusals)
	case f.AdaptiveShareLight < minAdaptiveShareLight:
		return fmt.Sprintf("adaptive_share_light is %v, at least %v is promised", f.AdaptiveShareLight, minAdaptiveShareLight)
	}
	return ""
}

// judge sums the runs up.
func (f *LanesFigures) judge() {
	for _, r := range f.Runs {
		switch r.Mode {
		case withoutBackfill.name:
			f.NoBackfillRefusals += r.Refused
		case string(quota.ModeGuaranteed):
			f.GuaranteedRefusals += r.Refused
		case string(quota.ModeAdaptive):
			if r.Load == "light" {
				f.AdaptiveShareLight = r.BackfillShare
			}
		case string(quota.ModeDefault):
			f.DefaultRefusalRatioMax = max(f.DefaultRefusalRatioMax, r.RefusalRatio)
			f.DefaultLongestWaitMax = max(f.DefaultLongestWaitMax, r.LongestWait)
			switch r.Load {
			case "light":
				f.DefaultShareLight = r.BackfillShare
			case "spiky":
				f.DefaultShareSpiky = r.BackfillShare
			}
		}
	}
}

func lanes(ctx context.Context, o Options) (Figures, error) {
	b := &lanesBench{options: o, seeds: laneSeeds, long: laneTime}
	bound := laneBound
	if o.Full {
		b.seeds, b.long, bound = laneSeedsFull, laneTimeFull, laneBoundFull
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	rdb, stop, err := clientFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	// Each simulation asks one by one, and all ask side by side: sent together,
	// their decisions cost half. In what order does not matter, since each waits for
	// its answer; one pipeline is packed while the other is under way.
	pipelines := redis.DefaultBlockingAutoPipelineOptions()
	pipelines.MaxConcurrentBatches, pipelines.Unordered = 2, true
	if b.rdb, err = rdb.AutoPipelineWithOptions(pipelines); err != nil {
		return nil, fmt.Errorf("pipeline the simulations: %w", err)
	}
	b.prefix = fmt.Sprintf("bench-%d:", time.Now().UnixNano())
	f, err := b.run(ctx)
	return f, errors.Join(err, removeKeys(context.WithoutCancel(ctx), rdb, b.prefix))
}

// lanesBench is one run. All its keys begin with prefix.
type lanesBench struct {
	options Options
	rdb     redis.UniversalClient
	prefix  string
	seeds   int
	long    time.Duration // of virtual time, with each seed

	mu   sync.Mutex
	done time.Duration // of virtual time, in all simulations
}

// run plays all simulations at once: each waits for Redis nearly all the time.
func (b *lanesBench) run(ctx context.Context) (Figures, error) {
	began := time.Now()
	modes := laneModes()
	tallies := make([]laneTally, len(modes)*len(laneLoads)*b.seeds)
	together, ctx := errgroup.WithContext(ctx)
	n := 0
	for _, mode := range modes {
		for _, load := range laneLoads {
			for seed := range b.seeds {
				tally, prefix := &tallies[n], fmt.Sprintf("%s%d:", b.prefix, n)
				n++
				together.Go(func() (err error) {
					sim, err := newLaneSim(b.rdb, prefix, mode, load.Demands(uint64(seed), b.long), b.long)
					if err == nil {
						*tally, err = sim.run(ctx, func(done time.Duration) { b.tell(done, len(tallies)) })
					}
					if err != nil {
						return fmt.Errorf("mode %s under the load %s: %w", mode.name, load.Name, err)
					}
					return nil
				})
			}
		}
	}
	if err := together.Wait(); err != nil {
		return nil, err
	}
	f := &LanesFigures{Bench: "lanes", Seeds: b.seeds, Hours: b.long.Hours()}
	for i := 0; i < len(tallies); i += b.seeds {
		var sum laneTally
		for _, t := range tallies[i : i+b.seeds] {
			sum.add(t)
		}
		f.Decisions += sum.decisions
		f.Runs = append(f.Runs, b.report(modes[i/b.seeds/len(laneLoads)], laneLoads[i/b.seeds%len(laneLoads)], sum))
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

func (b *lanesBench) report(mode laneMode, load traffic.Load, sum laneTally) LaneRun {
	r := LaneRun{
		Mode: mode.name, Load: load.Name, Calls: sum.calls, Refused: sum.refused,
		BackfillShare: round(float64(sum.units) / (laneLimit * b.long.Minutes() * float64(b.seeds))),
		LongestWait:   round(sum.longest.Seconds()),
	}
	if r.Calls > 0 {
		r.RefusalRatio = math.Round(1e6*float64(r.Refused)/float64(r.Calls)) / 1e6
	}
	return r
}

// tell says how far all simulations are when one of them has gone on.
func (b *lanesBench) tell(done time.Duration, simulations int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += done
	b.options.progress(float64(b.done)/float64(b.long)/float64(simulations), "%d simulations of %s", simulations, b.long)
}
