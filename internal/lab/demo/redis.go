package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headroom/jobs"
)

// redisServer is the Redis of one run: an embedded one, or a guest's part of one
// that was there before.
type redisServer struct {
	url    string
	prefix string                      // of queue names and ledger keys
	clean  func(context.Context) error // removes what the run left in a borrowed one
	stop   func()                      // ends an embedded one
}

// startRedis starts an embedded Redis, or borrows the one at url, which is not
// spoken to yet.
func startRedis(url, run string) (*redisServer, error) {
	prefix := "demo-" + run + "-"
	if url == "" {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true) // without it, nothing would ever expire
		if err := m.Start(); err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		nothing := func(context.Context) error { return nil }
		return &redisServer{url: "redis://" + m.Addr() + "/0", prefix: prefix, clean: nothing, stop: m.Close}, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errNoRedisURL
	}
	clean := func(ctx context.Context) error {
		rdb := redis.NewClient(o)
		defer rdb.Close()
		return removeKeys(ctx, rdb, prefix)
	}
	return &redisServer{url: url, prefix: prefix, clean: clean, stop: func() {}}, nil
}

// CheckRedisURL reports what is wrong with the form of a Redis' URL. It does not
// connect.
func CheckRedisURL(url string) error {
	if _, err := redis.ParseURL(url); err != nil {
		return errNoRedisURL
	}
	return nil
}

// errNoRedisURL does not quote the URL, which may hold a password.
var errNoRedisURL = errors.New("not the URL of a Redis; its form is redis://USER:PASSWORD@HOST:PORT/DB")

// removeKeys deletes what a run left: its queues' keys, their names in Asynq's
// list of queues, and the ledger's windows.
func removeKeys(ctx context.Context, rdb *redis.Client, prefix string) error {
	for _, pattern := range []string{prefix + "*", jobs.AsynqKey(prefix+"*", "*")} {
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
	queues, err := rdb.SMembers(ctx, jobs.AsynqQueues).Result()
	if err != nil {
		return fmt.Errorf("remove the run's queues: %w", err)
	}
	for _, name := range queues {
		if strings.HasPrefix(name, prefix) {
			if err := rdb.SRem(ctx, jobs.AsynqQueues, name).Err(); err != nil {
				return fmt.Errorf("remove the run's queues: %w", err)
			}
		}
	}
	return nil
}
