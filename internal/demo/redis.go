package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// redisServer is the Redis of one run: an embedded one, or a guest's part of one
// that was there before.
type redisServer struct {
	url    string
	prefix string // of queue names and ledger keys
	close  func(context.Context) error
}

// startRedis starts an embedded Redis, or borrows the one at url. What the run
// leaves in a borrowed one is removed by close.
func startRedis(_ context.Context, url, run string) (*redisServer, error) {
	prefix := "demo-" + run + "-"
	if url == "" {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true) // without it, nothing would ever expire
		if err := m.Start(); err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		return &redisServer{url: "redis://" + m.Addr() + "/0", prefix: prefix, close: func(context.Context) error {
			m.Close()
			return nil
		}}, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("--redis: not the URL of a Redis; its form is redis://USER:PASSWORD@HOST:PORT/DB")
	}
	return &redisServer{url: url, prefix: prefix, close: func(ctx context.Context) error {
		rdb := redis.NewClient(o)
		defer rdb.Close()
		return removeKeys(ctx, rdb, prefix)
	}}, nil
}

// removeKeys deletes what a run left: its queues' keys, their names in Asynq's
// list of queues, and the ledger's windows.
func removeKeys(ctx context.Context, rdb *redis.Client, prefix string) error {
	for _, pattern := range []string{prefix + "*", "asynq:{" + prefix + "*"} {
		scan := rdb.Scan(ctx, 0, pattern, 1000).Iterator()
		for scan.Next(ctx) {
			if err := rdb.Del(ctx, scan.Val()).Err(); err != nil {
				return fmt.Errorf("remove the run's keys: %w", err)
			}
		}
		if err := scan.Err(); err != nil {
			return fmt.Errorf("remove the run's keys: %w", err)
		}
	}
	queues, err := rdb.SMembers(ctx, "asynq:queues").Result()
	if err != nil {
		return fmt.Errorf("remove the run's queues: %w", err)
	}
	for _, name := range queues {
		if strings.HasPrefix(name, prefix) {
			if err := rdb.SRem(ctx, "asynq:queues", name).Err(); err != nil {
				return fmt.Errorf("remove the run's queues: %w", err)
			}
		}
	}
	return nil
}
