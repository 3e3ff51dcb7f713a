package bench

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// rivalWindow is what all rivals are to keep a limit in.
const rivalWindow = time.Minute

//go:embed rivals_plain.lua
var plainSource string

//go:embed rivals_two_counter.lua
var twoCounterSource string

var (
	plainScript      = redis.NewScript(plainSource)
	twoCounterScript = redis.NewScript(twoCounterSource)
	returnOneScript  = redis.NewScript("return 1")
)

// A rival is one way to keep a limit in a minute, run by virtual time.
type rival struct {
	name string
	// admit decides on a call that client makes at a moment.
	admit func(ctx context.Context, at time.Time, client int) (bool, error)
}

// plainSkew is how far the clocks of the two clients of the plain script are
// apart; it counts by theirs.
const plainSkew = 500 * time.Millisecond

// plainID names a call, as long as a UUID is.
func plainID(n int) string { return fmt.Sprintf("%036x", n) }

func plainArgs(at time.Time, limit, cost int64, id string) []any {
	return []any{at.UnixMilli(), rivalWindow.Milliseconds(), limit, cost, id}
}

func plainRival(rdb redis.Scripter, key string, limit, cost int64) rival {
	calls := 0
	return rival{"plain_skewed", func(ctx context.Context, at time.Time, client int) (bool, error) {
		calls++
		at = at.Add(time.Duration(client) * plainSkew)
		n, err := plainScript.Run(ctx, rdb, []string{key}, plainArgs(at, limit, cost, plainID(calls))...).Int()
		return n == 1, err
	}}
}

func twoCounterRival(rdb redis.Scripter, key string, limit, cost int64) rival {
	return rival{"two_counter", func(ctx context.Context, at time.Time, _ int) (bool, error) {
		window := at.UnixMilli() / rivalWindow.Milliseconds()
		keys := []string{key + strconv.FormatInt(window, 10), key + strconv.FormatInt(window-1, 10)}
		n, err := twoCounterScript.Run(ctx, rdb, keys, at.UnixMilli(), rivalWindow.Milliseconds(), limit, cost).Int()
		return n == 1, err
	}}
}

// redisRateRival is the library itself. Its script reads the clock of Redis, so
// it runs on an embedded one, whose clock can be set.
func redisRateRival(limit, cost int64) (r rival, stop func(), err error) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		return rival{}, nil, fmt.Errorf("embedded Redis: %w", err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	limiter, perMinute := redis_rate.NewLimiter(rdb), redis_rate.PerMinute(int(limit))
	stop = func() {
		rdb.Close()
		server.Close()
	}
	return rival{"redis_rate", func(ctx context.Context, at time.Time, _ int) (bool, error) {
		server.SetTime(at)
		answer, err := limiter.AllowN(ctx, "over-admission", perMinute, int(cost))
		if err != nil {
			return false, err
		}
		return answer.Allowed > 0, nil
	}}, stop, nil
}

// oursRival is the ledger, in the lane that may fill all of the limit.
func oursRival(rdb redis.UniversalClient, prefix string, limit, cost int64) (rival, error) {
	list, err := listWith(limit, maxLimit)
	if err != nil {
		return rival{}, err
	}
	ledger, err := quota.NewLedger(quota.Options{
		Redis: rdb, KeyPrefix: prefix, Fresh: true, Plain: true,
		Projects: map[string]quota.Project{benchProject: {Lists: []*price.List{list}}},
	})
	if err != nil {
		return rival{}, err
	}
	var now time.Time
	quota.Simulate(ledger, func() time.Time { return now })
	caller := quota.Caller{Project: benchProject, User: ledgerUser(0), Lane: quota.Interactive}
	return rival{"ours", func(ctx context.Context, at time.Time, _ int) (bool, error) {
		now = at
		_, err := ledger.Take(ctx, caller, list.API, cost)
		return admitted(err)
	}}, nil
}
