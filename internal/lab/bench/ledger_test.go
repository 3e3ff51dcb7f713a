package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// A short run of the whole benchmark: every figure is there and plausible, and
// nothing of it stays in Redis.
func TestLedger(t *testing.T) {
	rdb := newClient(t)
	var told []float64
	b := &ledgerBench{
		options: Options{Log: zap.NewNop(), Progress: func(done float64, _ string) { told = append(told, done) }},
		rdb:     rdb, prefix: t.Name() + ":", rounds: 2, rateTime: 30 * time.Millisecond,
	}
	figures, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := figures.(*LedgerFigures)
	if broken := f.Broken(); broken != "" {
		t.Error(broken)
	}
	if !strings.HasPrefix(f.Redis, "7.") && !strings.HasPrefix(f.Redis, "6.") && !strings.HasPrefix(f.Redis, "8.") {
		t.Errorf("redis_version is %q", f.Redis)
	}
	for _, us := range []float64{f.OursOne, f.OursThreeAt[10], f.OursThreeAt[3000], f.Call, f.RedisRate, f.PlainScript[10]} {
		if us <= f.ReturnOne || us > 10_000 {
			t.Errorf("a call took %v us, return 1 took %v", us, f.ReturnOne)
		}
	}
	if f.PlainScript[2800] < 5*f.PlainScript[100] {
		t.Errorf("the plain script takes %v us with 2,800 entries and %v with 100", f.PlainScript[2800], f.PlainScript[100])
	}
	if f.RoundTripsBeforeSend != 1 {
		t.Errorf("a call asked Redis %v times before it was sent", f.RoundTripsBeforeSend)
	}
	if f.OursThree != f.OursThreeAt[1000] || f.Growth != ratio(f.OursThreeAt[3000], f.OursThreeAt[10]) {
		t.Errorf("the figures do not agree: %+v", f)
	}
	if f.BytesPerUser < 300 || f.BytesPerUser > maxBytesPerUser {
		t.Errorf("a user's key takes %d bytes", f.BytesPerUser)
	}
	for _, rates := range []map[int]float64{f.DecisionsPerSecond.Coalesced, f.DecisionsPerSecond.Pool} {
		for _, callers := range rateCallers {
			if rates[callers] <= 0 {
				t.Errorf("no decisions per second of %d callers: %v", callers, rates)
			}
		}
	}
	// Who keeps a limit in every minute and who does not is no matter of luck: the
	// loads run in virtual time. A bucket as deep as the limit lets a full one out
	// at once, and the limit's rate after that. What a clock half a second ahead
	// forgets early matters when all was spent at once. The two counters believe
	// that what was spent at the end of a minute was spent evenly.
	want := map[string]map[string]float64{
		"ours":         {"burst": 0, "edge": 0, "on_off": 0, "smooth": 0},
		"redis_rate":   {"burst": 99.333, "edge": 99.667, "on_off": 99.667, "smooth": 99.667},
		"plain_skewed": {"burst": 50, "edge": 1.667, "on_off": 1.667, "smooth": 1},
		"two_counter":  {"burst": 74.333, "edge": 99.667, "on_off": 74.667, "smooth": 37.333},
	}
	if diff := cmp.Diff(want, f.OverAdmission); diff != "" {
		t.Errorf("over-admission in percent, - want + got:\n%s", diff)
	}
	if !slices.IsSorted(told) || len(told) == 0 {
		t.Errorf("progress went %v", told)
	}
	if err := removeKeys(t.Context(), rdb, b.prefix); err != nil {
		t.Fatal(err)
	}
	if left, err := rdb.Keys(t.Context(), t.Name()+"*").Result(); err != nil || len(left) > 0 {
		t.Errorf("keys that stayed: %v (%v)", left, err)
	}
}

// What judges look for by name.
func TestLedgerFields(t *testing.T) {
	raw, err := json.Marshal(&LedgerFigures{})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"ours_one_us", "ours_three_us", "redis_rate_us", "plain_script_us", "return_1_us",
		"call_us", "call_over_redis_rate", "round_trips_before_send", "three_over_redis_rate", "plain_over_three_at_2800", "growth", "bytes_per_user", "decisions_per_second",
		"coalesced_over_pool_at_64", "over_admission", "targets_met", "targets_missed"} {
		if !strings.Contains(string(raw), `"`+field+`":`) {
			t.Errorf("no field %s in %s", field, raw)
		}
	}
}

func TestLedgerJudgement(t *testing.T) {
	good := func() *LedgerFigures {
		return &LedgerFigures{
			OursThreeAt: map[int]float64{10: 10, 100: 10, 1000: 10, 3000: 10}, RedisRate: 7, Call: 18, RoundTripsBeforeSend: 1,
			PlainScript: map[int]float64{2800: 1000}, BytesPerUser: 500,
			DecisionsPerSecond: DecisionRates{Coalesced: map[int]float64{64: 50_000}, Pool: map[int]float64{64: 20_000}},
			OverAdmission:      map[string]map[string]float64{"ours": {"smooth": 0, "burst": 0, "on_off": 0, "edge": 0}},
		}
	}
	for _, test := range []struct {
		name   string
		change func(*LedgerFigures)
		missed string // what the only missed aim begins with
		broken string
	}{
		{name: "all is well", change: func(*LedgerFigures) {}},
		{name: "slower than redis_rate", change: func(f *LedgerFigures) { f.RedisRate, f.Call = 6, 16 }, missed: "three_over_redis_rate is 1.667, aim at most 1.6"},
		{name: "a call that costs more", change: func(f *LedgerFigures) { f.Call = 22 }, missed: "call_over_redis_rate is 3.143, aim at most 3"},
		{name: "two questions before a call", change: func(f *LedgerFigures) { f.RoundTripsBeforeSend = 2 }, missed: "round_trips_before_send is 2, aim 1"},
		{name: "a fast plain script", change: func(f *LedgerFigures) { f.PlainScript[2800] = 500 }, missed: "plain_over_three_at_2800 is 50, aim at least 80"},
		{name: "slower with more entries", change: func(f *LedgerFigures) { f.OursThreeAt[10] = 7 }, missed: "growth is 1.429, aim at most 1.3"},
		{name: "large keys", change: func(f *LedgerFigures) { f.BytesPerUser = 601 }, missed: "bytes_per_user is 601, aim at most 600"},
		{name: "a fast pool", change: func(f *LedgerFigures) { f.DecisionsPerSecond.Pool[64] = 30_000 }, missed: "coalesced_over_pool_at_64 is 1.667, aim at least 2"},
		{name: "over-admission", change: func(f *LedgerFigures) { f.OverAdmission["ours"]["edge"] = 3.5 },
			broken: "the ledger admitted 3.5 % over its limit under the load edge"},
		{name: "a load that was left out", change: func(f *LedgerFigures) { delete(f.OverAdmission["ours"], "burst") },
			broken: "the ledger was not measured under the load burst"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good()
			test.change(f)
			f.judge()
			checkJudgement(t, f, f.Targets, test.missed, test.broken)
		})
	}
}
