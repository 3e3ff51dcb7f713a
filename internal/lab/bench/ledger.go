package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

const (
	benchProject = "bench"
	ledgerBound  = 10 * time.Minute
	maxLimit     = 1<<31 - 1 // units: so many that all calls are admitted
)

// What the ledger aims at, compared with its rivals on the same server in the
// same minute.
const (
	maxThreeOverRedisRate = 1.6
	maxCallOverRedisRate  = 3.0
	minPlainOverThree     = 80
	maxGrowth             = 1.3
	maxBytesPerUser       = 600
	minCoalescedOverPool  = 2
)

// LedgerFigures are what ledger measured. Times are microseconds that Redis
// spent on a call by its own account (INFO commandstats), the least of the
// rounds, each the mean of hundreds of calls.
type LedgerFigures struct {
	Bench  string `json:"bench"`
	Redis  string `json:"redis_version"`
	Rounds int    `json:"rounds"`

	// OursOne is the cheapest call of the ledger: a person's, without pace or
	// budget. Even that checks two windows in two keys, the user's minute and the
	// project's.
	OursOne float64 `json:"ours_one_us"`
	// OursThree checks and charges a backfill's call: user-minute, project-minute
	// and project-day, with ceilings, pace and hold, at 1,000 calls in the user's
	// window; and by that number.
	OursThree   float64         `json:"ours_three_us"`
	OursThreeAt map[int]float64 `json:"ours_three_us_by_entries"`
	// RedisRate is AllowN of redis_rate on one key, after 1,000 calls.
	RedisRate float64 `json:"redis_rate_us"`
	// PlainScript is the sorted set scored by the client's clock, by the entries
	// in it.
	PlainScript map[int]float64 `json:"plain_script_us"`
	ReturnOne   float64         `json:"return_1_us"`

	// Call is all that an admitted call of lane backfill through a transport costs
	// Redis: its slot and its units, and its release with the bytes that came.
	Call float64 `json:"call_us"`
	// RoundTripsBeforeSend is how often such a call asks Redis before it is sent.
	RoundTripsBeforeSend float64 `json:"round_trips_before_send"`

	ThreeOverRedisRate float64 `json:"three_over_redis_rate"`
	CallOverRedisRate  float64 `json:"call_over_redis_rate"`
	// PlainOverThree has the plain script at 2,800 entries over ours at 3,000.
	PlainOverThree float64 `json:"plain_over_three_at_2800"`
	Growth         float64 `json:"growth"`         // of ours, from 10 entries to 3,000
	BytesPerUser   int64   `json:"bytes_per_user"` // MEMORY USAGE of a user's key with 3,000 calls in it

	DecisionsPerSecond DecisionRates `json:"decisions_per_second"`
	CoalescedOverPool  float64       `json:"coalesced_over_pool_at_64"`

	// OverAdmission is by how many percent the fullest minute exceeded the limit,
	// by rival and load, in virtual time.
	OverAdmission map[string]map[string]float64 `json:"over_admission"`

	Targets
	Seconds float64 `json:"seconds"`
}

// DecisionRates are decisions per second by how many callers ask at once.
type DecisionRates struct {
	Coalesced map[int]float64 `json:"coalesced"`
	Pool      map[int]float64 `json:"pool"` // each decision by itself, over a pool of connections
}

// Targets says which of a benchmark's aims the run reached. They are ratios that
// a busy machine can miss; a promise is what [Figures.Broken] speaks of.
type Targets struct {
	Met    bool     `json:"targets_met"`
	Missed []string `json:"targets_missed"`
}

// require notes an aim that was missed.
func (t *Targets) require(met bool, format string, args ...any) {
	if !met {
		t.Missed = append(t.Missed, fmt.Sprintf(format, args...))
	}
}

func (t *Targets) conclude() {
	t.Met = len(t.Missed) == 0
	if t.Met {
		t.Missed = []string{}
	}
}

// Broken implements [Figures].
func (f *LedgerFigures) Broken() string {
	for _, load := range slices.Sorted(maps.Keys(loads)) {
		over, measured := f.OverAdmission["ours"][load]
		if !measured {
			return fmt.Sprintf("the ledger was not measured under the load %s", load)
		}
		if over > 0 {
			return fmt.Sprintf("the ledger admitted %.1f %% over its limit under the load %s", over, load)
		}
	}
	return ""
}

func (f *LedgerFigures) judge() {
	f.OursThree = f.OursThreeAt[1000]
	f.ThreeOverRedisRate = ratio(f.OursThree, f.RedisRate)
	f.CallOverRedisRate = ratio(f.Call, f.RedisRate)
	f.PlainOverThree = ratio(f.PlainScript[2800], f.OursThreeAt[3000])
	f.Growth = ratio(f.OursThreeAt[3000], f.OursThreeAt[10])
	f.CoalescedOverPool = ratio(f.DecisionsPerSecond.Coalesced[64], f.DecisionsPerSecond.Pool[64])
	f.require(f.ThreeOverRedisRate <= maxThreeOverRedisRate, "three_over_redis_rate is %v, aim at most %v", f.ThreeOverRedisRate, maxThreeOverRedisRate)
	f.require(f.CallOverRedisRate <= maxCallOverRedisRate, "call_over_redis_rate is %v, aim at most %v", f.CallOverRedisRate, maxCallOverRedisRate)
	f.require(f.RoundTripsBeforeSend == 1, "round_trips_before_send is %v, aim 1", f.RoundTripsBeforeSend)
	f.require(f.PlainOverThree >= minPlainOverThree, "plain_over_three_at_2800 is %v, aim at least %v", f.PlainOverThree, minPlainOverThree)
	f.require(f.Growth <= maxGrowth, "growth is %v, aim at most %v", f.Growth, maxGrowth)
	f.require(f.BytesPerUser <= maxBytesPerUser, "bytes_per_user is %v, aim at most %v", f.BytesPerUser, maxBytesPerUser)
	f.require(f.CoalescedOverPool >= minCoalescedOverPool, "coalesced_over_pool_at_64 is %v, aim at least %v", f.CoalescedOverPool, minCoalescedOverPool)
	f.conclude()
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round(a / b)
}

func ledger(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerBound)
	defer cancel()
	rdb, stop, err := clientFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	b := &ledgerBench{
		options: o, rdb: rdb, prefix: fmt.Sprintf("bench-%d:", time.Now().UnixNano()),
		rounds: costRounds, rateTime: rateTime,
	}
	f, err := b.run(ctx)
	// The keys of a Redis that is not ours must not stay, whatever happened.
	return f, errors.Join(err, removeKeys(context.WithoutCancel(ctx), rdb, b.prefix))
}

// ledgerBench is one run. All its keys begin with prefix.
type ledgerBench struct {
	options  Options
	rdb      *redis.Client
	prefix   string
	rounds   int           // of timing each kind of call
	rateTime time.Duration // of one measurement of decisions per second
}

func (b *ledgerBench) run(ctx context.Context) (Figures, error) {
	began := time.Now()
	info, err := b.rdb.Info(ctx, "server").Result()
	if err != nil {
		return nil, fmt.Errorf("ask Redis what it is: %w", err)
	}
	f := &LedgerFigures{Bench: "ledger", Redis: "unknown", Rounds: b.rounds}
	if version := regexp.MustCompile(`redis_version:(\S+)`).FindStringSubmatch(info); version != nil {
		f.Redis = version[1]
	}
	if err := b.costs(ctx, f); err != nil {
		return nil, err
	}
	if err := b.rates(ctx, f); err != nil {
		return nil, err
	}
	if err := b.strictness(ctx, f); err != nil {
		return nil, err
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

// strictness runs every load against every rival, on keys of its own.
func (b *ledgerBench) strictness(ctx context.Context, f *LedgerFigures) error {
	f.OverAdmission = map[string]map[string]float64{}
	names := slices.Sorted(maps.Keys(loads))
	for i, load := range names {
		b.options.progress(0.8+0.2*float64(i)/float64(len(names)), "over-admission under the load %s", load)
		prefix := b.prefix + load + ":"
		ours, err := oursRival(b.rdb, prefix, loadLimit, loadCost)
		if err != nil {
			return err
		}
		redisRate, stop, err := redisRateRival(loadLimit, loadCost)
		if err != nil {
			return err
		}
		waves := loads[load]()
		for _, r := range []rival{ours, redisRate,
			plainRival(b.rdb, prefix+"plain", loadLimit, loadCost),
			twoCounterRival(b.rdb, prefix+"two-counter:", loadLimit, loadCost),
		} {
			over, err := overAdmission(ctx, r, waves)
			if err != nil {
				stop()
				return fmt.Errorf("over-admission under the load %s: %w", load, err)
			}
			if f.OverAdmission[r.name] == nil {
				f.OverAdmission[r.name] = map[string]float64{}
			}
			f.OverAdmission[r.name][load] = over
		}
		stop()
	}
	return nil
}

// removeKeys removes all keys that begin with prefix.
func removeKeys(ctx context.Context, rdb redis.UniversalClient, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	keys := rdb.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	var found []string
	for keys.Next(ctx) {
		found = append(found, keys.Val())
	}
	err := keys.Err()
	for batch := range slices.Chunk(found, 1000) {
		err = errors.Join(err, rdb.Unlink(ctx, batch...).Err())
	}
	if err != nil {
		return fmt.Errorf("remove the keys %s*: %w", prefix, err)
	}
	return nil
}

// listWith is the price list of the benchmarks with other limits, in units a
// minute.
func listWith(user, project int64) (*price.List, error) {
	list, err := price.Load("gmail-2026-05")
	if err == nil {
		list, err = list.WithLimit(price.UserMinute, user)
	}
	if err == nil {
		list, err = list.WithLimit(price.ProjectMinute, project)
	}
	return list, err
}

func ledgerUser(n int) string { return fmt.Sprintf("user-%04d@example.com", n) }

// admitted tells a refusal of the ledger from its other errors.
func admitted(err error) (bool, error) {
	if _, ok := errors.AsType[*quota.DeniedError](err); ok {
		return false, nil
	}
	return err == nil, err
}
