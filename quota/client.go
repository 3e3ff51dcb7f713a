package quota

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// How long the ledger's client bothers with a Redis that does not answer.
const (
	dialTimeout  = 2 * time.Second
	replyTimeout = 2 * time.Second
	poolTimeout  = 3 * time.Second // for a free connection
)

// ClientOptions adapts the options of a Redis client for a ledger: it never
// retries a command, since a retry would charge twice, and it gives up soon. Its
// connections are those of [FailoverDialer].
func ClientOptions(o *redis.Options) *redis.Options {
	own := *o
	own.MaxRetries = -1
	own.DialTimeout, own.ReadTimeout, own.WriteTimeout, own.PoolTimeout = dialTimeout, replyTimeout, replyTimeout, poolTimeout
	own.ContextTimeoutEnabled = true
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(&own)
	}
	own.Dialer = FailoverDialer(dial)
	return &own
}

// ClusterOptions is [ClientOptions] for a cluster. Its client follows no
// redirection by itself either, since it would repeat commands whose answer was
// lost in the same loop; the ledger repeats what was redirected.
func ClusterOptions(o *redis.ClusterOptions) *redis.ClusterOptions {
	own := *o
	own.MaxRedirects, own.MaxRetries = -1, -1
	own.DialTimeout, own.ReadTimeout, own.WriteTimeout, own.PoolTimeout = dialTimeout, replyTimeout, replyTimeout, poolTimeout
	own.ContextTimeoutEnabled = true
	return &own
}

// noRetries refuses a client that repeats commands by itself.
func noRetries(rdb redis.UniversalClient) error {
	retries := 0
	switch c := rdb.(type) {
	case *redis.Client:
		retries = c.Options().MaxRetries
	case *redis.ClusterClient:
		retries = max(c.Options().MaxRedirects, c.Options().MaxRetries)
	}
	if retries > 0 {
		return errors.New("quota: the Redis client retries by itself, which would charge twice; make it with quota.ClientOptions or quota.ClusterOptions")
	}
	return nil
}
