// Package redisconn connects a process to Redis: clients for the queue, for short
// commands and for the ledger, the check that a Redis is fit to be used, and the
// reasons in plain words why one refuses. It knows none of the data in Redis.
package redisconn

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

// oldest is the oldest Redis that will do: Asynq uses ZRANGE BYSCORE.
var oldest = [2]int{6, 2}

// Timeout bounds a conversation with Redis that a user waits for.
const Timeout = 3 * time.Second

// Clients are a process' connections to one Redis. They differ in how long they
// insist. None dials before it is used.
type Clients struct {
	// Queue is for what must get through, such as Asynq's note that a task is
	// done: Asynq gives up such a write at the first error, so this client
	// outlasts a restart of Redis.
	Queue *redis.Client
	// Short is for commands that are repeated soon anyway, or that a user waits for.
	Short *redis.Client
	// Ledger never repeats a command, since a repeated one would charge twice.
	Ledger *redis.Client

	url config.URL
}

// New makes the clients of a process with conns workers. It contacts nothing: call
// [Clients.Check] before anything is written.
func New(url config.URL, conns int) (*Clients, error) {
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

	c := &Clients{Short: redis.NewClient(&short), Queue: redis.NewClient(&queue), Ledger: redis.NewClient(ledger), url: url}
	c.Queue.AddHook(outlastBusy{c.Queue.Options()})
	return c, nil
}

// Close closes all clients.
func (c *Clients) Close() error {
	return errors.Join(c.Ledger.Close(), c.Queue.Close(), c.Short.Close())
}

// Ping asks Redis whether it is there now.
func (c *Clients) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := c.Short.Ping(ctx).Err(); err != nil {
		return c.missing(err)
	}
	return nil
}

func (c *Clients) missing(err error) error {
	return fmt.Errorf("no Redis at %s: %w", c.url, Cause(err))
}

// Check asks Redis whether it is there, new enough, and fit for the ledger. Its
// errors are one line with cause and next step; what Redis does not tell about
// itself goes to the log.
func (c *Clients) Check(ctx context.Context, log *zap.Logger) error {
	if err := c.Ping(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	info, err := c.Short.Info(ctx, "server").Result()
	if err != nil && reply(err) == "" {
		return c.missing(err)
	}
	// The embedded Redis of demo and tests does not know the section.
	if v := versionIn(info); v != "" && !newEnough(v) {
		return fmt.Errorf("the Redis at %s is version %s, Headroom needs %d.%d or later; upgrade it or set redis.url (HEADROOM_REDIS_URL) to another",
			c.url, v, oldest[0], oldest[1])
	}
	warnings, err := quota.Check(ctx, c.Short)
	if errors.Is(err, quota.ErrUnavailable) {
		return c.missing(err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return err
}

// reply returns the text of an error that Redis itself answered, or "".
func reply(err error) string {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return answer.Error()
	}
	return ""
}

// Cause explains in few words why Redis did not answer, and gives the next step.
func Cause(err error) error {
	answer := reply(err)
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case strings.HasPrefix(answer, "NOAUTH"), strings.HasPrefix(answer, "WRONGPASS"):
		return fmt.Errorf("it refuses the user or password; set them in redis.url (HEADROOM_REDIS_URL): %w", err)
	case strings.HasPrefix(answer, "NOPERM"):
		grant, _ := quota.MissingPermission(err, "USER")
		return fmt.Errorf("it knows the user of redis.url (HEADROOM_REDIS_URL), who lacks a permission; as an administrator run for it: %s (%w)", grant, err)
	case answer != "":
		return fmt.Errorf("it answers %w; set redis.url (HEADROOM_REDIS_URL) to another", err)
	case errors.As(err, &dns):
		return fmt.Errorf("no such host; set redis.url (HEADROOM_REDIS_URL): %w", err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		errno, _ := errors.AsType[syscall.Errno](err)
		return fmt.Errorf("%w; start one (redis-server) or set redis.url (HEADROOM_REDIS_URL)", errno)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer within %s; check address and network, or set redis.url (HEADROOM_REDIS_URL): %w", Timeout, err)
	}
	return fmt.Errorf("%w; set redis.url (HEADROOM_REDIS_URL)", err)
}

// versionIn finds the version in the answer to INFO; "" if it has none.
func versionIn(info string) string {
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
	return have[0] > oldest[0] || have[0] == oldest[0] && have[1] >= oldest[1]
}

// redisLog receives what go-redis logs. The library has one logger for the
// whole process, which is set once; where it leads may change.
var redisLog struct {
	once sync.Once
	to   atomic.Pointer[zap.Logger]
}

// RouteLog sends what go-redis would print on stderr to log, at level
// debug: whoever uses the client reports its errors already.
func RouteLog(log *zap.Logger) {
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
