package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/quota"
)

// minRedis is the oldest Redis that will do: Asynq uses ZRANGE BYSCORE.
var minRedis = [2]int{6, 2}

// connectTimeout bounds the first conversation with Redis.
const connectTimeout = 3 * time.Second

// clients are the connections of a process to one Redis. They differ in how
// long they insist.
type clients struct {
	// queue is for what must get through, such as Asynq's note that a task is
	// done: Asynq gives up such a write at the first error, so this client
	// outlasts a restart of Redis.
	queue *redis.Client
	// short is for what is tried again soon anyway, or what somebody waits for.
	short *redis.Client
	// ledger never repeats a command, since a repeated one would charge twice.
	ledger *redis.Client
}

// connect checks that there is a Redis that will do, and only then makes the
// clients. Its errors are one line with cause and next step.
func connect(ctx context.Context, url config.URL, conns int, log *zap.Logger) (*clients, error) {
	o, err := redis.ParseURL(url.Reveal())
	if err != nil {
		// The error of the parser may quote the password.
		return nil, fmt.Errorf("redis.url %s is not the URL of a Redis; its form is redis://USER:PASSWORD@HOST:PORT/DB", url)
	}
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ContextTimeoutEnabled = true
	o.DialTimeout = 2 * time.Second

	short := *o
	short.MaxRetries, short.DialerRetries = 2, 1
	short.Dialer = quota.FailoverDialer(redis.NewDialer(&short))
	queue := *o
	queue.MaxRetries, queue.MinRetryBackoff, queue.MaxRetryBackoff = 15, 100*time.Millisecond, 2*time.Second
	queue.DialerRetries = 1
	queue.Dialer = quota.FailoverDialer(provenDialer(o))
	queue.PoolSize = max(o.PoolSize, conns/2+10)
	ledger := quota.ClientOptions(o)
	ledger.DialerRetries = 1

	c := &clients{short: redis.NewClient(&short)}
	if err := check(ctx, c.short, url, log); err != nil {
		return nil, errors.Join(err, c.short.Close())
	}
	c.queue, c.ledger = redis.NewClient(&queue), redis.NewClient(ledger)
	c.queue.AddHook(outlastBusy{c.queue.Options()})
	return c, nil
}

// Close closes all clients.
func (c *clients) Close() error {
	return errors.Join(c.ledger.Close(), c.queue.Close(), c.short.Close())
}

// check asks Redis whether it is there, new enough, and fit for the ledger.
func check(ctx context.Context, rdb *redis.Client, url config.URL, log *zap.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no Redis at %s: %w", url, redisCause(err))
	}
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil && redisReply(err) == "" {
		return fmt.Errorf("no Redis at %s: %w", url, redisCause(err))
	}
	// The embedded Redis of demo and tests does not know the section.
	if v := redisVersion(info); v != "" && !newEnough(v) {
		return fmt.Errorf("the Redis at %s is version %s, Headroom needs %d.%d or later; upgrade it or set redis.url (HEADROOM_REDIS_URL) to another",
			url, v, minRedis[0], minRedis[1])
	}
	warnings, err := quota.Check(ctx, rdb)
	if errors.Is(err, quota.ErrUnavailable) {
		return fmt.Errorf("no Redis at %s: %w", url, redisCause(err))
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return err
}

// redisReply returns the text of an error that Redis itself answered, or "".
func redisReply(err error) string {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return reply.Error()
	}
	return ""
}

// redisCause says in few words why Redis did not answer, and what to do.
func redisCause(err error) error {
	reply := redisReply(err)
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case strings.HasPrefix(reply, "NOAUTH"), strings.HasPrefix(reply, "WRONGPASS"):
		return fmt.Errorf("it refuses the user or password; set them in redis.url (HEADROOM_REDIS_URL): %w", err)
	case strings.HasPrefix(reply, "NOPERM"):
		grant, _ := quota.MissingPermission(err, "USER")
		return fmt.Errorf("it knows the user of redis.url (HEADROOM_REDIS_URL), who lacks a permission; as an administrator run for it: %s (%w)", grant, err)
	case reply != "":
		return fmt.Errorf("it answers %w; set redis.url (HEADROOM_REDIS_URL) to another", err)
	case errors.As(err, &dns):
		return fmt.Errorf("no such host; set redis.url (HEADROOM_REDIS_URL): %w", err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		errno, _ := errors.AsType[syscall.Errno](err)
		return fmt.Errorf("%w; start one (redis-server) or set redis.url (HEADROOM_REDIS_URL)", errno)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer within %s; check address and network, or set redis.url (HEADROOM_REDIS_URL): %w", connectTimeout, err)
	}
	return fmt.Errorf("%w; set redis.url (HEADROOM_REDIS_URL)", err)
}

// redisVersion finds the version in what INFO says, "" where it says none.
func redisVersion(info string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return v
		}
	}
	return ""
}

func newEnough(version string) bool {
	var have [2]int
	for i, part := range strings.SplitN(version, ".", 3) {
		n, err := strconv.Atoi(part)
		if i < 2 && err == nil {
			have[i] = n
		}
	}
	return have[0] > minRedis[0] || have[0] == minRedis[0] && have[1] >= minRedis[1]
}

// redisLog receives what go-redis logs. The library has one logger for the
// whole process, which is set once; where it leads may change.
var redisLog struct {
	once sync.Once
	to   atomic.Pointer[zap.Logger]
}

// RouteRedisLog sends what go-redis would print on stderr to log, at level
// debug: whoever uses the client reports its errors already.
func RouteRedisLog(log *zap.Logger) {
	redisLog.to.Store(log.Named("redis"))
	redisLog.once.Do(func() { redis.SetLogger(redisLogger{}) })
}

type redisLogger struct{}

// Printf implements go-redis' logger.
func (redisLogger) Printf(_ context.Context, format string, v ...any) {
	if log := redisLog.to.Load(); log != nil {
		log.Debug(fmt.Sprintf(format, v...))
	}
}
