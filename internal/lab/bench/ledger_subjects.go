package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
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

// throughTransport is the subject of whole calls: through a transport, from before
// they are sent to the end of their answers.
type throughTransport struct {
	subject
	sent, roundTrips *atomic.Int64 // calls, and what they asked Redis before they were sent
}

// beforeSend is how often a call asked Redis before it was sent.
func (m throughTransport) beforeSend() float64 {
	return ratio(float64(m.roundTrips.Load()), float64(m.sent.Load()))
}

// through has calls of lane backfill made through a transport, with so many calls in
// the window of each user.
func (b *ledgerBench) through(entries int) (throughTransport, error) {
	m := throughTransport{sent: new(atomic.Int64), roundTrips: new(atomic.Int64)}
	counted := redis.NewClient(quota.ClientOptions(b.rdb.Options()))
	counted.AddHook(roundTripHook{})
	s, err := b.ours(quota.Backfill, entries)
	if err != nil {
		return m, err
	}
	whole := *b
	whole.rdb = counted
	limiter, err := whole.newLedger(fmt.Sprintf("ours-%s-%d", quota.Backfill, entries), true)
	if err != nil {
		return m, err
	}
	transport := &quota.Transport{Limiter: limiter, Base: answering(func(r *http.Request) {
		m.sent.Add(1)
		m.roundTrips.Add(asked(r.Context()).Load())
	})}
	m.subject = subject{calls: s.calls, scripts: 2, prepare: s.prepare, call: func(ctx context.Context, round, n int) error {
		c := quota.Caller{Project: benchProject, User: ledgerUser(n % costUsers), Lane: quota.Backfill}
		ctx = context.WithValue(quota.WithCaller(ctx, c), askedKey{}, new(atomic.Int64))
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gmail.bench/gmail/v1/users/me/messages/1?format=raw", nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close())
	}}
	return m, nil
}

// answering is a Google that answers every request with some bytes.
type answering func(*http.Request)

// RoundTrip implements [http.RoundTripper].
func (sent answering) RoundTrip(r *http.Request) (*http.Response, error) {
	sent(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat("mail ", 200)))}, nil
}

// asked counts what a call has asked Redis.
func asked(ctx context.Context) *atomic.Int64 {
	if n, ok := ctx.Value(askedKey{}).(*atomic.Int64); ok {
		return n
	}
	return new(atomic.Int64)
}

type askedKey struct{}

// roundTripHook counts what a client sends, by the calls that ask for it.
type roundTripHook struct{}

func (roundTripHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (roundTripHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		count(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (roundTripHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		count(ctx, cmds[0])
		return next(ctx, cmds)
	}
}

// count counts a round trip that begins with a command. What a new connection says
// first is no call's.
func count(ctx context.Context, cmd redis.Cmder) {
	if name := cmd.Name(); name != "hello" && name != "client" {
		asked(ctx).Add(1)
	}
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
