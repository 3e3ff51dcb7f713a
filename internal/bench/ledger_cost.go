package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"headroom/quota"
)

const (
	costRounds  = 25
	costCallers = 8   // that ask at once, so that the server has something to do
	costCalls   = 300 // of each kind in a round; of those that take long, fewer
	costUnits   = 5
	costUsers   = 20
	// rateBurst is the limit of redis_rate, units a minute: never reached.
	rateBurst = 1_000_000
)

var (
	oursEntries  = []int{10, 100, 1000, 3000}
	plainEntries = []int{10, 100, 1000, 2800}
)

// A subject is one script whose calls are timed.
type subject struct {
	calls int
	// prepare makes what the calls of a round find.
	prepare func(ctx context.Context, round int) error
	// call makes the n-th call of a round. It is called by several goroutines.
	call func(ctx context.Context, round, n int) error
	best *float64
}

// costs times all subjects in turn, round after round, so that whatever else the
// machine does falls on all alike.
func (b *ledgerBench) costs(ctx context.Context, f *LedgerFigures) error {
	subjects, keep, err := b.subjects()
	if err != nil {
		return err
	}
	for round := range b.rounds {
		b.options.progress(0.4*float64(round)/float64(b.rounds), "cost of a call, round %d of %d", round+1, b.rounds)
		for _, s := range subjects {
			us, err := b.time(ctx, s, round)
			if err != nil {
				return err
			}
			if round == 0 || us < *s.best {
				*s.best = us
			}
		}
	}
	keep(f)
	f.BytesPerUser, err = b.bytesPerUser(ctx)
	return err
}

// subjects lists what is timed, and returns what puts the best times into the
// figures.
func (b *ledgerBench) subjects() (list []subject, keep func(*LedgerFigures), err error) {
	var one, rate, nothing float64
	ours, plain := map[int]*float64{}, map[int]*float64{}
	add := func(s subject, best *float64) {
		s.best = best
		list = append(list, s)
	}
	s, err := b.ours(quota.Interactive, 1000)
	if err != nil {
		return nil, nil, err
	}
	add(s, &one)
	for _, n := range oursEntries {
		if s, err = b.ours(quota.Backfill, n); err != nil {
			return nil, nil, err
		}
		ours[n] = new(float64)
		add(s, ours[n])
	}
	add(b.redisRate(1000), &rate)
	for _, n := range plainEntries {
		plain[n] = new(float64)
		add(b.plain(n), plain[n])
	}
	add(b.returnOne(), &nothing)
	return list, func(f *LedgerFigures) {
		f.OursOne, f.RedisRate, f.ReturnOne = round(one), round(rate), round(nothing)
		f.OursThreeAt, f.PlainScript = map[int]float64{}, map[int]float64{}
		for n, us := range ours {
			f.OursThreeAt[n] = round(*us)
		}
		for n, us := range plain {
			f.PlainScript[n] = round(*us)
		}
	}, nil
}

// time runs a round of a subject and returns what Redis says that a call took.
func (b *ledgerBench) time(ctx context.Context, s subject, round int) (float64, error) {
	if err := s.prepare(ctx, round); err != nil {
		return 0, err
	}
	calls, us, err := b.scriptTime(ctx)
	if err != nil {
		return 0, err
	}
	if err := together(ctx, costCallers, s.calls, func(ctx context.Context, n int) error { return s.call(ctx, round, n) }); err != nil {
		return 0, err
	}
	callsAfter, usAfter, err := b.scriptTime(ctx)
	if err != nil {
		return 0, err
	}
	if made := callsAfter - calls; made != int64(s.calls) {
		return 0, fmt.Errorf("redis ran %d scripts while %d were measured: measure on one that nobody else uses", made, s.calls)
	}
	return float64(usAfter-us) / float64(s.calls), nil
}

var evalshaStats = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)

// scriptTime returns how many scripts Redis has run, and for how long in all.
func (b *ledgerBench) scriptTime(ctx context.Context) (calls, us int64, err error) {
	info, err := b.rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, 0, fmt.Errorf("ask Redis for its commandstats: %w", err)
	}
	found := evalshaStats.FindStringSubmatch(info)
	if found == nil {
		return 0, 0, nil // none yet
	}
	calls, err = strconv.ParseInt(found[1], 10, 64)
	us, err2 := strconv.ParseInt(found[2], 10, 64)
	return calls, us, errors.Join(err, err2)
}

// together shares n calls among so many goroutines.
func together(ctx context.Context, callers, n int, call func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for from := range callers {
		group.Go(func() error {
			for i := from; i < n; i += callers {
				if err := call(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// newLedger makes a ledger on keys of its own, under limits that all calls fit.
func (b *ledgerBench) newLedger(name string, plain bool) (*quota.Ledger, error) {
	list, err := listWith(maxLimit, maxLimit)
	if err != nil {
		return nil, err
	}
	return quota.NewLedger(quota.Options{
		Redis: b.rdb, KeyPrefix: b.prefix + name + ":", Fresh: true, Plain: plain,
		Projects: map[string]quota.Project{benchProject: {
			Lists:   []*quota.PriceList{list},
			Budgets: []quota.Budget{{API: list.API, Units: maxLimit}},
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
		if usage.Limit == quota.LimitUserMinute {
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
	calls := min(costCalls, max(50, 100_000/entries))
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

// bytesPerUser is what a user's key takes with the most calls in its window.
func (b *ledgerBench) bytesPerUser(ctx context.Context) (int64, error) {
	pattern := fmt.Sprintf("%sours-%s-%d:*:user:*", b.prefix, quota.Backfill, oursEntries[len(oursEntries)-1])
	keys := b.rdb.Scan(ctx, 0, pattern, 1000).Iterator()
	var most int64
	for keys.Next(ctx) {
		bytes, err := b.rdb.MemoryUsage(ctx, keys.Val()).Result()
		if err != nil {
			return 0, fmt.Errorf("memory of %s: %w", keys.Val(), err)
		}
		most = max(most, bytes)
	}
	if err := keys.Err(); err != nil {
		return 0, fmt.Errorf("find the users' keys: %w", err)
	}
	if most == 0 {
		return 0, fmt.Errorf("no key %s: the users' windows are gone", pattern)
	}
	return most, nil
}
