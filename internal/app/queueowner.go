package app

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
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

const (
	// ownerPeriod is how often a process says that its store's queues are in use,
	// and ownerLife after how long of silence they are not.
	ownerPeriod = 2 * time.Second
	ownerLife   = 6 * time.Second
)

//go:embed queueowner.lua
var queueOwnerSource string

var queueOwnerScript = redis.NewScript(queueOwnerSource)

// A queueOwner makes sure that the queues of an installation belong to one store.
// Workers drop tasks of jobs that their store does not know, so two stores on the
// same queues would take each other's. The store has an id, and the queues have that
// of their owner.
type queueOwner struct {
	redis *redis.Client
	cfg   config.Config
	store sqlite.Identity
	host  string
	log   *zap.Logger
}

// owner is what Redis knows of the queues' owner.
type owner struct {
	sqlite.Identity
	Host string
	Seen int64         // when one of its processes was last seen, on the clock of Redis; -1: never
	Age  time.Duration // since then
}

func newQueueOwner(ctx context.Context, rdb *redis.Client, cfg config.Config, s *sqlite.Store, log *zap.Logger) (*queueOwner, error) {
	identity, err := s.Identity(ctx)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // the stores then count as on different ones
	}
	return &queueOwner{redis: rdb, cfg: cfg, store: identity, host: host, log: log}, nil
}

// connectQueues is [connect] for a command that puts tasks on the queues of a store.
func connectQueues(ctx context.Context, cfg config.Config, s *sqlite.Store, log *zap.Logger) (*clients, error) {
	c, err := connect(ctx, cfg.Redis.URL, 1, log)
	if err != nil {
		return nil, err
	}
	q, err := newQueueOwner(ctx, c.short, cfg, s, log)
	if err == nil {
		err = q.claim(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// An ownedError says that the queues belong to another store.
type ownedError struct{ text string }

func (e *ownedError) Error() string { return e.text }

// claim makes the store the owner of the queues, or returns an [*ownedError]. An
// owner whose processes may have died a moment ago is watched until that is known.
func (q *queueOwner) claim(ctx context.Context, running bool) error {
	from := owner{}
	var first *owner
	for {
		now, err := q.write(ctx, running, from.Identity)
		if err != nil {
			return fmt.Errorf("ask which store the queues at %s belong to: %w", q.cfg.Redis.URL, redisCause(err))
		}
		if now == nil {
			return nil
		}
		if first == nil {
			first = now
		}
		alive := now.Seen >= 0 && now.Age < ownerLife
		switch {
		case alive && now.Seen != first.Seen:
			return q.refuse(*now, "and is running")
		case alive:
			select {
			case <-time.After(ownerPeriod / 8):
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if err := q.mayTake(ctx, *now); err != nil {
			return err
		}
		q.log.Warn("the queues belonged to another store file; this one takes them", zap.String("store", q.store.Path), zap.String("before", now.Path))
		from = *now
	}
}

// mayTake reports why the store may not take the queues of an owner that does not
// run: since there are tasks in them that would be lost.
func (q *queueOwner) mayTake(ctx context.Context, from owner) error {
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
		return fmt.Errorf("count the tasks of the queues at %s: %w", q.cfg.Redis.URL, redisCause(err))
	}
	if tasks > 0 {
		return q.refuse(from, fmt.Sprintf("and has %d tasks in them; if that store is gone, run: headroom store take-queues", tasks))
	}
	return nil
}

func (q *queueOwner) refuse(o owner, why string) error {
	place := o.Path
	if o.Host != q.host {
		place += " on " + o.Host
	}
	return &ownedError{fmt.Sprintf("the queues at %s belong to the store %s, not to the store %s: two stores would take each other's tasks; "+
		"give this one a redis.queue_prefix (HEADROOM_REDIS_QUEUE_PREFIX) of its own, or another redis.url. The other one has id %s %s",
		q.cfg.Redis.URL, place, q.store.Path, o.ID, why)}
}

// write makes the store the owner of queues that have none, are its own already, or
// belong to the store from. It returns any other owner.
func (q *queueOwner) write(ctx context.Context, running bool, from sqlite.Identity) (*owner, error) {
	mark := "0"
	if running {
		mark = "1"
	}
	s := q.store
	reply, err := queueOwnerScript.Run(ctx, q.redis, []string{queueKey(q.cfg, "store")},
		s.ID, s.Path, q.host, s.File, mark, from.ID, from.File).Slice()
	if err != nil || len(reply) == 1 {
		return nil, err
	}
	if len(reply) != 7 {
		return nil, fmt.Errorf("queueowner.lua answers %d values", len(reply))
	}
	text := func(i int) string { t, _ := reply[i].(string); return t }
	number := func(i int) int64 { n, _ := reply[i].(int64); return n }
	return &owner{
		Identity: sqlite.Identity{ID: text(1), Path: text(2), File: text(4)}, Host: text(3),
		Seen: number(5), Age: time.Duration(number(6)) * time.Millisecond,
	}, nil
}

// tasks counts what waits or runs in the queues of all lanes.
func (q *queueOwner) tasks(ctx context.Context) (n int64, err error) {
	var counts []*redis.IntCmd
	_, err = q.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, lane := range quota.Lanes {
			key := "asynq:{" + jobs.QueueName(q.cfg.Redis.QueuePrefix, string(lane)) + "}:"
			counts = append(counts, p.LLen(ctx, key+"pending"), p.LLen(ctx, key+"active"), p.ZCard(ctx, key+"scheduled"), p.ZCard(ctx, key+"retry"))
		}
		return nil
	})
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// Run says every few seconds that the queues are in use, until ctx ends. It fails
// when they belong to another store by then, as after a FLUSHALL; a Redis that does
// not answer is no reason to.
func (q *queueOwner) Run(ctx context.Context) error {
	tick := time.NewTicker(ownerPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerPeriod/2)
			defer cancel()
			// Another process of the store that runs says so again.
			if err := q.redis.HDel(bound, queueKey(q.cfg, "store"), "seen").Err(); err != nil {
				q.log.Debug("end of the process not noted in Redis", zap.Error(err))
			}
			return nil
		case <-tick.C:
		}
		now, err := q.write(ctx, true, sqlite.Identity{})
		switch {
		case err != nil:
			q.log.Debug("use of the queues not noted in Redis", zap.Error(err))
		case now != nil:
			return q.refuse(*now, "and has taken them meanwhile")
		}
	}
}

// TakeQueues makes the settings' store the owner of the queues although they hold
// tasks of another, unless a process of that runs.
func TakeQueues(ctx context.Context, cfg config.Config, log *zap.Logger) (err error) {
	s, err := OpenStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := connect(ctx, cfg.Redis.URL, 1, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	q, err := newQueueOwner(ctx, c.short, cfg, s, log)
	if err != nil {
		return err
	}
	err = q.claim(ctx, false)
	if _, owned := errors.AsType[*ownedError](err); !owned {
		return err
	}
	now, askErr := q.write(ctx, false, sqlite.Identity{})
	if askErr != nil || now == nil {
		return askErr
	}
	if now.Seen >= 0 && now.Age < ownerLife {
		return err
	}
	_, err = q.write(ctx, false, now.Identity)
	return err
}
