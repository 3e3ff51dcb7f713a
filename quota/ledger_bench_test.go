package quota_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

func BenchmarkTake(b *testing.B) {
	ctx := b.Context()
	server, err := localredis.Start(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: server.Addr}))
	b.Cleanup(func() { rdb.Close() })
	list, err := price.Load("gmail-2026-05")
	if err != nil {
		b.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: map[string]quota.Project{"p": {Lists: []*price.List{list}}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, lane := range []quota.Lane{quota.Interactive, quota.Backfill} {
		b.Run(string(lane), func(b *testing.B) {
			rdb.ConfigResetStat(ctx)
			i := 0
			for b.Loop() {
				_, err := ledger.Take(ctx, quota.Caller{Project: "p", User: fmt.Sprint(i % 20000), Lane: lane}, "gmail", 5)
				i++
				_ = err
			}
			info, err := rdb.Info(ctx, "commandstats").Result()
			if err != nil {
				b.Fatal(err)
			}
			if m := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+).*usec_per_call=([\d.]+)`).FindStringSubmatch(info); m != nil {
				var us float64
				fmt.Sscan(m[2], &us)
				b.ReportMetric(us, "redis-us/op")
			}
		})
	}
}
