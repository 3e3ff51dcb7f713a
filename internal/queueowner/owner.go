// Package queueowner makes sure that the queues of an installation belong to one
// store. Workers drop tasks of jobs that their store does not know, so two stores on
// the same queues would take each other's. The store has an id, and Redis holds the
// id of the queues' owner.
package queueowner

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

const (
	// period is how often a process marks its store's queues as in use. After life
	// without a mark they count as unused.
	period = 2 * time.Second
	life   = 6 * time.Second
)

//go:embed claim.lua
var claimSource string

var claimScript = redis.NewScript(claimSource)

// Options configures an [Owner]. All fields are required.
type Options struct {
	Redis  *redis.Client
	URL    config.URL // of Redis, for errors
	Prefix string     // of the queues
	Store  *sqlite.Store
	Log    *zap.Logger
}

// An Owner claims the queues for one store. Make it with [New].
type Owner struct {
	Options
	store sqlite.Identity
	host  string
}

// holder is the store that owns the queues, as Redis knows it.
type holder struct {
	sqlite.Identity
	Host string
	Seen int64         // when one of its processes was last seen, on the clock of Redis; -1: never
	Age  time.Duration // since then
}

// New reads the identity of the store. It asks Redis nothing.
func New(ctx context.Context, o Options) (*Owner, error) {
	identity, err := o.Store.Identity(ctx)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // the stores then count as on different ones
	}
	return &Owner{Options: o, store: identity, host: host}, nil
}

// Key is a key of ours beside those of Asynq for the queues with a prefix.
func Key(prefix, name string) string {
	return jobs.AsynqKey(jobs.QueueName(prefix, string(quota.Backfill)), "headroom:"+name)
}

// An ownedError reports that the queues belong to another store.
type ownedError struct{ text string }

func (e *ownedError) Error() string { return e.text }

// Claim makes the store the owner of the queues, for a process that is running or for
// a single command. The error names the owner and what to do if that is another store.
// If the owner's processes may have died a moment ago, Claim waits until that is known.
func (q *Owner) Claim(ctx context.Context, running bool) error {
	from := holder{}
	var first *holder
	for {
		now, err := q.write(ctx, running, from.Identity)
		if err != nil {
			return fmt.Errorf("ask which store the queues at %s belong to: %w", q.URL, redisconn.Cause(err))
		}
		if now == nil {
			return nil
		}
		if first == nil {
			first = now
		}
		alive := now.Seen >= 0 && now.Age < life
		switch {
		case alive && now.Seen != first.Seen:
			return q.refuse(*now, "and is running")
		case alive:
			select {
			case <-time.After(period / 8):
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if err := q.mayTake(ctx, *now); err != nil {
			return err
		}
		q.Log.Warn("the queues belonged to another store file; this one takes them", zap.String("store", q.store.Path), zap.String("before", now.Path))
		from = *now
	}
}

// mayTake reports why the store may not take the queues of an owner that does not
// run: since there are tasks in them that would be lost.
func (q *Owner) mayTake(ctx context.Context, from holder) error {
	if from.ID == q.store.ID { // it was moved, or comes from a backup
		return nil
	}
	if from.Host == q.host && q.host != "" {
		if _, err := os.Stat(from.Path); from.Path == q.store.Path || errors.Is(err, os.ErrNotExist) {
			return nil // it was deleted
		}
	}
	tasks, err := q.tasks(ctx)
	if err != nil {
		return fmt.Errorf("count the tasks of the queues at %s: %w", q.URL, redisconn.Cause(err))
	}
	if tasks > 0 {
		return q.refuse(from, fmt.Sprintf("and has %d tasks in them; if that store is gone, run: headroom store take-queues", tasks))
	}
	return nil
}

func (q *Owner) refuse(o holder, why string) error {
	place := o.Path
	if o.Host != q.host {
		place += " on " + o.Host
	}
	return &ownedError{fmt.Sprintf("the queues at %s belong to the store %s, not to the store %s: two stores would take each other's tasks; "+
		"give this one a redis.queue_prefix (HEADROOM_REDIS_QUEUE_PREFIX) of its own, or another redis.url. The other one has id %s %s",
		q.URL, place, q.store.Path, o.ID, why)}
}

// write makes the store the owner of queues that have none, are its own already, or
// belong to the store from. It returns any other owner.
func (q *Owner) write(ctx context.Context, running bool, from sqlite.Identity) (*holder, error) {
	mark := "0"
	if running {
		mark = "1"
	}
	s := q.store
	reply, err := claimScript.Run(ctx, q.Redis, []string{Key(q.Prefix, "store")},
		s.ID, s.Path, q.host, s.File, mark, from.ID, from.File).Slice()
	if err != nil || len(reply) == 1 {
		return nil, err
	}
	if len(reply) != 7 {
		return nil, fmt.Errorf("claim.lua answers %d values", len(reply))
	}
	text := func(i int) string { t, _ := reply[i].(string); return t }
	number := func(i int) int64 { n, _ := reply[i].(int64); return n }
	return &holder{
		Identity: sqlite.Identity{ID: text(1), Path: text(2), File: text(4)}, Host: text(3),
		Seen: number(5), Age: time.Duration(number(6)) * time.Millisecond,
	}, nil
}

// tasks counts what waits or runs in the queues of all lanes.
func (q *Owner) tasks(ctx context.Context) (n int64, err error) {
	var counts []*redis.IntCmd
	_, err = q.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, lane := range quota.Lanes {
			key := func(state string) string { return jobs.AsynqKey(jobs.QueueName(q.Prefix, string(lane)), state) }
			counts = append(counts, p.LLen(ctx, key("pending")), p.LLen(ctx, key("active")), p.ZCard(ctx, key("scheduled")), p.ZCard(ctx, key("retry")))
		}
		return nil
	})
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// Run marks the queues as in use every few seconds, until ctx ends. It fails if they
// belong to another store by then, as after a FLUSHALL, but not if Redis does not
// answer.
func (q *Owner) Run(ctx context.Context) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), period/2)
			defer cancel()
			// Another running process of the store sets the mark again.
			if err := q.Redis.HDel(bound, Key(q.Prefix, "store"), "seen").Err(); err != nil {
				q.Log.Debug("end of the process not noted in Redis", zap.Error(err))
			}
			return nil
		case <-tick.C:
		}
		now, err := q.write(ctx, true, sqlite.Identity{})
		switch {
		case err != nil:
			q.Log.Debug("use of the queues not noted in Redis", zap.Error(err))
		case now != nil:
			return q.refuse(*now, "and has taken them meanwhile")
		}
	}
}

// Take makes the store the owner of the queues although they hold tasks of another
// store, unless a process of that one runs.
func (q *Owner) Take(ctx context.Context) error {
	err := q.Claim(ctx, false)
	if _, owned := errors.AsType[*ownedError](err); !owned {
		return err
	}
	now, askErr := q.write(ctx, false, sqlite.Identity{})
	if askErr != nil || now == nil {
		return askErr
	}
	if now.Seen >= 0 && now.Age < life {
		return err
	}
	_, err = q.write(ctx, false, now.Identity)
	return err
}
