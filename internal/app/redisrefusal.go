package app

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/config"
	"headroom/jobs"
	"headroom/quota"
)

// redisRefusals says in words what Redis says in one.
var redisRefusals = map[string]string{
	"READONLY":    "Redis only reads: it is a replica, or became one in a failover",
	"OOM":         "Redis is out of memory: raise its maxmemory or free some",
	"BUSY":        "Redis is busy with a script: wait for its end, or stop it with redis-cli SCRIPT KILL",
	"MISCONF":     "Redis cannot save its data and takes no writes: see to its disk",
	"LOADING":     "Redis is loading its data",
	"MASTERDOWN":  "Redis is a replica that has lost its primary",
	"NOREPLICAS":  "Redis has too few replicas and takes no writes",
	"CLUSTERDOWN": "the Redis cluster is down",
	"NOPERM":      "the user of redis.url lacks a permission at Redis",
	"NOAUTH":      "Redis asks for a password: set it in redis.url (HEADROOM_REDIS_URL)",
	"WRONGPASS":   "Redis refuses the user or password of redis.url (HEADROOM_REDIS_URL)",

	"max number of clients": "Redis serves no more clients: raise its maxclients",
}

var redisRefusalWord = regexp.MustCompile(`(?:^|[ :-])(` + strings.Join(slices.Sorted(maps.Keys(redisRefusals)), "|") + `) `)

// redisRefusal finds in an error's text why Redis refuses what it is asked for, ""
// if it is none of the reasons that pass.
func redisRefusal(text string) string {
	if found := redisRefusalWord.FindStringSubmatch(text); found != nil {
		return redisRefusals[found[1]]
	}
	return ""
}

// writeKeyLife is how long Redis keeps what a look at it wrote.
const writeKeyLife = time.Minute

// readyScript writes as tasks are moved and quota is counted: by a script.
var readyScript = redis.NewScript("return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])")

// redisWrites reports why Redis cannot be written to now. A Redis that only answers
// is not enough: no task moves and no quota is counted.
func redisWrites(ctx context.Context, rdb *redis.Client, cfg config.Config) error {
	err := readyScript.Run(ctx, rdb, []string{queueKey(cfg, "ready")}, time.Now().Unix(), int(writeKeyLife.Seconds())).Err()
	if reply := redisReply(err); reply != "" {
		if words := redisRefusal(reply); words != "" {
			return fmt.Errorf("%s: %w", words, err)
		}
	}
	return err
}

// queueKey is a key of ours beside those of Asynq for the queues of an installation.
func queueKey(cfg config.Config, name string) string {
	return "asynq:{" + jobs.QueueName(cfg.Redis.QueuePrefix, string(quota.Backfill)) + "}:headroom:" + name
}
