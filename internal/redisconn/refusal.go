package redisconn

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusals explains the words with which Redis refuses a command.
var refusals = map[string]string{
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

var refusalWord = regexp.MustCompile(`(?:^|[ :-])(` + strings.Join(slices.Sorted(maps.Keys(refusals)), "|") + `) `)

// Refusal finds in an error's text why Redis refuses commands, and explains it in plain
// words; "" if the text is about something else.
func Refusal(text string) string {
	if found := refusalWord.FindStringSubmatch(text); found != nil {
		return refusals[found[1]]
	}
	return ""
}

// writeKeyLife is how long Redis keeps the key that [Clients.Writable] writes.
const writeKeyLife = time.Minute

// writeScript writes as tasks are moved and quota is counted: by a script.
var writeScript = redis.NewScript("return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])")

// Writable reports why Redis takes no writes now, by writing key. A Redis that only
// answers is not enough: no task moves and no quota is counted.
func (c *Clients) Writable(ctx context.Context, key string) error {
	err := writeScript.Run(ctx, c.Short, []string{key}, time.Now().Unix(), int(writeKeyLife.Seconds())).Err()
	if words := Refusal(reply(err)); words != "" {
		return fmt.Errorf("%s: %w", words, err)
	}
	return err
}
