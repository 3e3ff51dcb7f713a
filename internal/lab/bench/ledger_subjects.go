package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

const (
	costUnits = 5 // of a call
	costUsers = 20
	// rateBurst is the limit of redis_rate, units a minute: never reached.
	rateBurst = 1_000_000
)

// newLedger makes a ledger on keys of its own, under limits that all calls fit.
func (b *ledgerBench) newLedger(name string, plain bool) (*quota.Ledger, error) {
	list, err := listWith(maxLimit, maxLimit)
	if err != nil {
		return nil, err
	}
	return quota.NewLedger(quota.Options{
		Redis: b.rdb, KeyPrefix: b.prefix + name + ":", Fresh: true, Plain: plain,
		Projects: map[string]quota.Project{benchProject: {
			Lists:   []*price.List{list},
			Budgets: []price.Budget{{API: list.API, Units: maxLimit}},
		}},
	})
}

// ours is the ledger with so many calls in the window of each user. Below 1,000
// every round has users of its own, so that the round's calls do not add to a
// multiple of them.
func (b *ledgerBench) ours(lane quota.Lane, entries int) (subject, error) {
	users, calls := costUsers, costCalls
	if entries < 100 {
		users = 50
	}
	name := fmt.Sprintf("ours-%s-%d", lane, entries)
	measured, err := b.newLedger(name, true)
	if err != nil {
		return subject{}, err
	}
	filling, err := b.newLedger(name, false)
	if err != nil {
		return subject{}, err
	}
	caller := func(round, n int) quota.Caller {
		user := n % users
		if entries < 1000 {
			user += round * users
		}
		return quota.Caller{Project: benchProject, User: ledgerUser(user), Lane: lane}
	}
	return subject{
		calls: calls,
		prepare: func(ctx context.Context, round int) error {
			now, err := measured.Peek(ctx, caller(round, 0), "gmail")
			if err != nil {
				return err
			}
			// At least one each, so that every round finds the bucket of the moment open.
			missing := max(1, entries-callsIn(now))
			return together(ctx, 128, users*missing, func(ctx context.Context, n int) error {
				_, err := filling.Take(ctx, caller(round, n), "gmail", costUnits)
				return err
			})
		},
		call: func(ctx context.Context, round, n int) error {
			_, err := measured.Take(ctx, caller(round, n), "gmail", costUnits)
			return err
		},
	}, nil
}

// callsIn is how many calls of costUnits a user's window holds.
func callsIn(d quota.Decision) int {
	for _, usage := range d.Usage {
		if usage.Limit == price.UserMinute {
			return int(usage.Used / costUnits)
		}
	}
	return 0
}

func (b *ledgerBench) redisRate(entries int) subject {
	limiter, limit := redis_rate.NewLimiter(b.rdb), redis_rate.PerMinute(rateBurst)
	call := func(ctx context.Context, _, n int) error {
		answer, err := limiter.AllowN(ctx, b.prefix+ledgerUser(n%costUsers), limit, costUnits)
		if err == nil && answer.Allowed == 0 {
			err = errors.New("redis_rate refused a call under a limit that it cannot have reached")
		}
		return err
	}
	return subject{
		calls: costCalls, call: call,
		prepare: func(ctx context.Context, round int) error {
			if round > 0 {
				return nil
			}
			return together(ctx, costCallers, entries*costUsers/10, func(ctx context.Context, n int) error { return call(ctx, 0, n) })
		},
	}
}

// plain holds the window at so many entries: it counts by the clock of its
// caller, which goes on by one entry's time with every call.
func (b *ledgerBench) plain(entries int) subject {
	const users = 4
	calls := min(costCalls, max(30, 50_000/entries))
	step := rivalWindow / time.Duration(entries)
	start := time.Now()
	key := func(user int) string { return fmt.Sprintf("%splain-%d:%s", b.prefix, entries, ledgerUser(user)) }
	at := func(place int) time.Time { return start.Add(time.Duration(place) * step) }
	return subject{
		calls: calls,
		prepare: func(ctx context.Context, round int) error {
			if err := plainScript.Load(ctx, b.rdb).Err(); err != nil {
				return fmt.Errorf("load the plain script: %w", err)
			}
			for user := range users {
				pipe := b.rdb.Pipeline()
				pipe.Del(ctx, key(user))
				for n := range entries {
					pipe.ZAdd(ctx, key(user), redis.Z{
						Score:  float64(at(n - entries).UnixMilli()),
						Member: fmt.Sprintf("%d:%s", costUnits, plainID(-n)),
					})
				}
				if _, err := pipe.Exec(ctx); err != nil {
					return fmt.Errorf("fill %s: %w", key(user), err)
				}
			}
			return nil
		},
		call: func(ctx context.Context, _, n int) error {
			args := plainArgs(at(n/users), maxLimit, costUnits, plainID(n))
			ok, err := plainScript.Run(ctx, b.rdb, []string{key(n % users)}, args...).Int()
			if err == nil && ok == 0 {
				err = errors.New("the plain script refused a call under a limit that it cannot have reached")
			}
			return err
		},
	}
}

func (b *ledgerBench) returnOne() subject {
	return subject{
		calls:   costCalls,
		prepare: func(ctx context.Context, _ int) error { return returnOneScript.Load(ctx, b.rdb).Err() },
		call: func(ctx context.Context, _, _ int) error {
			return returnOneScript.Run(ctx, b.rdb, nil).Err()
		},
	}
}
