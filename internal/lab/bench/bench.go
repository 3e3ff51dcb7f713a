// Package bench measures what Headroom promises, on real parts: a real
// redis-server, the fake Google with its own meter, real workers. Each benchmark
// prints figures that others can run again, and says itself whether the run
// broke a promise.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
	"headroom/quota"
)

// Options configures a benchmark. Log is required.
type Options struct {
	Redis string // URL of a Redis; a redis-server of the benchmark's own if empty
	Log   *zap.Logger
	Full  bool // measure for longer, where a benchmark can: lanes

	// Progress is called now and then with how far the benchmark is, from 0 to 1, and
	// what it is doing.
	Progress func(done float64, doing string)
}

func (o Options) progress(done float64, format string, args ...any) {
	if o.Progress != nil {
		o.Progress(done, fmt.Sprintf(format, args...))
	}
}

// Figures are what a benchmark measured; they are printed as one JSON object.
type Figures interface {
	// Broken says which promise the run broke, or "".
	Broken() string
}

// Benchmark is one entry of [All].
type Benchmark struct {
	Name  string
	About string
	Takes string // about how long
	Run   func(context.Context, Options) (Figures, error)
}

// All lists the benchmarks.
var All = []Benchmark{
	{"requeue", "a slice that the quota refuses goes back to the queue, and nothing is lost by it", "2 min", requeue},
	{"ledger", "a decision costs little whatever the window holds, and no minute exceeds its limit", "1 min", ledger},
	{"utilization", "a backfill uses what its lane allows, Google refuses nothing, and the guard is why", "2 min", utilization},
	{"backfill", "a backfill beside interactive calls takes hardly longer than the quota makes it, and fetches nothing twice", "2 min", backfill},
	{"estimate", "what is said of a backfill before it starts, and at half of it, is what it comes to", "3 min", estimate},
	{"costs", "mail takes as long as each price list makes it, where a backfill may use all of a limit", "2 min", costs},
	{"kills", "workers and Redis are killed again and again, and backfills lose nothing and hardly fetch anything twice", "2 min", kills},
	{"calendars", "500 calendars of 100 accounts stay in step beside mail, a backfill and interactive calls, within both APIs' limits", "2 min", calendars},
	{"schedule", "10,000 accounts run every hour, spread, once, by whoever is there, and once after an outage", "1 min", schedule},
	{"lanes", "a backfill takes what interactive calls leave of a limit, and hardly any is refused", "2 min", lanes},
	{"fairness", "a tenant with many mailboxes does not hold up small ones that come later", "3 min", fairness},
}

// Find returns the benchmark of a name.
func Find(name string) (Benchmark, error) {
	i := slices.IndexFunc(All, func(b Benchmark) bool { return b.Name == name })
	if i < 0 {
		names := make([]string, len(All))
		for i, b := range All {
			names[i] = b.Name
		}
		return Benchmark{}, fmt.Errorf("unknown benchmark %q; there are %s", name, strings.Join(names, ", "))
	}
	return All[i], nil
}

// redisFor returns the URL of the Redis to measure on, and what ends it.
func redisFor(ctx context.Context, o Options) (url string, stop func(), err error) {
	redisconn.RouteLog(o.Log)
	if o.Redis != "" {
		return o.Redis, func() {}, nil
	}
	server, err := localredis.Start(ctx)
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Stop, nil
}

// clientFor returns a ledger's client of the Redis to measure on, and what ends
// both.
func clientFor(ctx context.Context, o Options) (rdb *redis.Client, stop func(), err error) {
	url, stopRedis, err := redisFor(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		stopRedis()
		return nil, nil, err
	}
	rdb = redis.NewClient(quota.ClientOptions(options))
	return rdb, func() { rdb.Close(); stopRedis() }, nil
}
