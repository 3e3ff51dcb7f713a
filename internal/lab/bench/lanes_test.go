package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"headroom/internal/lab/traffic"
	"headroom/quota"
)

// A short run of the whole benchmark: every mode meets every load, and nothing of
// it stays in Redis. Ten minutes hold few bursts, so that what is promised of hours
// holds only roughly.
func TestLanes(t *testing.T) {
	rdb := newClient(t)
	var progress []float64
	b := &lanesBench{
		options: Options{Log: zap.NewNop(), Progress: func(done float64, _ string) { progress = append(progress, done) }},
		rdb:     rdb, prefix: t.Name() + ":", seeds: 1, long: 10 * time.Minute,
	}
	figures, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := figures.(*LanesFigures)
	shares := map[string]map[string]float64{}
	calls := map[string]int64{}
	for _, r := range f.Runs {
		if shares[r.Mode] == nil {
			shares[r.Mode] = map[string]float64{}
		}
		shares[r.Mode][r.Load] = r.BackfillShare
		if calls[r.Load] == 0 {
			calls[r.Load] = r.Calls
		}
		if r.Calls != calls[r.Load] {
			t.Errorf("mode %s meets %d calls of the load %s, another one %d", r.Mode, r.Calls, r.Load, calls[r.Load])
		}
		if (r.Refused > 0) != (r.RefusalRatio > 0) || (r.Refused > 0) != (r.LongestWait > 0) {
			t.Errorf("refusals do not agree: %+v", r)
		}
		if r.RefusalRatio > 0.1 || r.LongestWait > 62 {
			t.Errorf("interactive calls are refused: %+v", r)
		}
	}
	if len(f.Runs) != 16 || f.Decisions < 30_000 {
		t.Errorf("%d runs with %d decisions", len(f.Runs), f.Decisions)
	}
	if !(calls["light"] > 20 && calls["moderate"] > 5*calls["light"] && calls["heavy"] > 3*calls["moderate"] && calls["spiky"] > 100) {
		t.Errorf("interactive calls: %v", calls)
	}
	for _, load := range laneLoads {
		none, fixed, plain, adaptive := shares["none"][load.Name], shares["guaranteed"][load.Name], shares["default"][load.Name], shares["adaptive"][load.Name]
		if none != 0 || !(0.2 < fixed && fixed < plain && plain < 0.82) {
			t.Errorf("shares under the load %s: none %v, guaranteed %v, default %v", load.Name, none, fixed, plain)
		}
		if adaptive <= fixed || adaptive > 0.92 {
			t.Errorf("share of adaptive under the load %s: %v", load.Name, adaptive)
		}
	}
	if f.DefaultShareLight != shares["default"]["light"] || f.DefaultShareSpiky != shares["default"]["spiky"] ||
		f.AdaptiveShareLight != shares["adaptive"]["light"] || f.DefaultShareLight < minDefaultShareLight {
		t.Errorf("the figures do not agree: %+v", f)
	}
	if f.GuaranteedRefusals != 0 || f.NoBackfillRefusals != 0 {
		t.Errorf("%d refusals with a guarantee, %d without a backfill", f.GuaranteedRefusals, f.NoBackfillRefusals)
	}
	if !slices.IsSorted(progress) || len(progress) == 0 || progress[len(progress)-1] != 1 {
		t.Errorf("progress went %v", progress)
	}
	if err := removeKeys(t.Context(), rdb, b.prefix); err != nil {
		t.Fatal(err)
	}
	if left, err := rdb.Keys(t.Context(), t.Name()+"*").Result(); err != nil || len(left) > 0 {
		t.Errorf("keys that stayed: %v (%v)", left, err)
	}
}

// A call that meets a full window waits exactly until the ledger said, also
// beyond the end of the load, and counts as refused once.
func TestLaneWaits(t *testing.T) {
	var demands []traffic.Demand
	for range laneLimit / traffic.ReadCost {
		demands = append(demands, traffic.Demand{At: 0, Cost: traffic.ReadCost})
	}
	demands = append(demands, traffic.Demand{At: 10 * time.Second, Cost: traffic.ReadCost}, traffic.Demand{At: 11 * time.Second, Cost: traffic.SendCost})
	for _, test := range []struct {
		name  string
		mode  laneMode
		units int64 // of the backfill
	}{
		{name: "interactive calls alone", mode: withoutBackfill},
		// It comes after those who ask at the same moment, and is not let in before
		// the load ends.
		{name: "with a backfill", mode: laneMode{"default", quota.ModeDefault, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim, err := newLaneSim(newClient(t), t.Name()+":", test.mode, demands, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			var done time.Duration
			got, err := sim.run(t.Context(), func(d time.Duration) { done += d })
			if err != nil {
				t.Fatal(err)
			}
			got.decisions = 0
			// All of the first second leaves the window when it is 61 s old.
			want := laneTally{units: test.units, calls: int64(len(demands)), refused: 2, longest: 52 * time.Second}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(laneTally{})); diff != "" {
				t.Errorf("- want + got:\n%s", diff)
			}
			if done != time.Minute {
				t.Errorf("progress %s, want all of a minute", done)
			}
		})
	}
}

// What judges look for by name.
func TestLanesFields(t *testing.T) {
	raw, err := json.Marshal(&LanesFigures{Runs: []LaneRun{{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"default_share_light", "default_share_spiky", "default_refusal_ratio_max", "default_longest_wait_s_max",
		"guaranteed_refusals", "adaptive_share_light", "no_backfill_refusals", "runs",
		"mode", "load", "backfill_share", "refusal_ratio", "longest_wait_s"} {
		if !strings.Contains(string(raw), `"`+field+`":`) {
			t.Errorf("no field %s in %s", field, raw)
		}
	}
}

func TestLanesJudgement(t *testing.T) {
	const light, spiky = 0, 3 // among the loads
	for _, test := range []struct {
		name   string
		change func(runs map[string][]LaneRun)
		broken string
	}{
		{name: "all is well", change: func(map[string][]LaneRun) {}},
		{"a load that was left out", func(r map[string][]LaneRun) { r["none"] = r["none"][1:] }, "15 of 16 modes and loads were measured"},
		{"a small share", func(r map[string][]LaneRun) { r["default"][light].BackfillShare = 0.749 },
			"default_share_light is 0.749, at least 0.75 is promised"},
		{"a small share between bursts", func(r map[string][]LaneRun) { r["default"][spiky].BackfillShare = 0.71 },
			"default_share_spiky is 0.71, at least 0.72 is promised"},
		{"refusals", func(r map[string][]LaneRun) { r["default"][1].RefusalRatio = 0.0021 },
			"default_refusal_ratio_max is 0.0021, at most 0.002 is promised"},
		{"refusals that a guarantee does not prevent", func(r map[string][]LaneRun) { r["guaranteed"][2].Refused = 3 },
			"guaranteed_refusals is 3, as many as no_backfill_refusals are promised: 0"},
		{"refusals by the limit itself", func(r map[string][]LaneRun) { r["guaranteed"][2].Refused, r["none"][2].Refused = 3, 3 }, ""},
		{"a ceiling that never gives way", func(r map[string][]LaneRun) { r["adaptive"][light].BackfillShare = 0.8 },
			"adaptive_share_light is 0.8, at least 0.85 is promised"},
		{"refusals where none are ruled out", func(r map[string][]LaneRun) { r["adaptive"][spiky].Refused = 9 }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs := map[string][]LaneRun{}
			for _, mode := range laneModes() {
				for _, load := range laneLoads {
					share := map[string]float64{"none": 0, "guaranteed": 0.45, "default": 0.76, "adaptive": 0.86}[mode.name]
					runs[mode.name] = append(runs[mode.name], LaneRun{Mode: mode.name, Load: load.Name, BackfillShare: share})
				}
			}
			test.change(runs)
			f := &LanesFigures{}
			for _, mode := range laneModes() {
				f.Runs = append(f.Runs, runs[mode.name]...)
			}
			f.judge()
			if got := f.Broken(); got != test.broken {
				t.Errorf("broken: %q, want %q", got, test.broken)
			}
		})
	}
}
