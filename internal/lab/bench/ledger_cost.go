package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"golang.org/x/sync/errgroup"

	"headroom/quota"
)

const (
	costRounds  = 25
	costCallers = 8   // that ask at once, so that the server has something to do
	costBatches = 3   // of calls of each kind in a round
	costCalls   = 100 // in a batch; of those that take long, fewer
)

var (
	oursEntries  = []int{10, 100, 1000, 3000}
	plainEntries = []int{10, 100, 1000, 2800}
)

// A subject is one script whose calls are timed.
type subject struct {
	calls   int // in a batch
	scripts int // that a call runs
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
	var one, call, rate, nothing float64
	ours, plain := map[int]*float64{}, map[int]*float64{}
	add := func(s subject, best *float64) {
		s.best, s.scripts = best, max(1, s.scripts)
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
	through, err := b.through(1000)
	if err != nil {
		return nil, nil, err
	}
	add(through.subject, &call)
	add(b.redisRate(1000), &rate)
	for _, n := range plainEntries {
		plain[n] = new(float64)
		add(b.plain(n), plain[n])
	}
	add(b.returnOne(), &nothing)
	return list, func(f *LedgerFigures) {
		f.Call, f.RoundTripsBeforeSend = round(call), through.beforeSend()
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

// time runs a round of a subject and returns what Redis says that a call took,
// in the batch in which the machine disturbed least.
func (b *ledgerBench) time(ctx context.Context, s subject, round int) (float64, error) {
	if err := s.prepare(ctx, round); err != nil {
		return 0, err
	}
	least := math.Inf(1)
	for batch := range costBatches {
		calls, us, err := b.scriptTime(ctx)
		if err != nil {
			return 0, err
		}
		err = together(ctx, costCallers, s.calls, func(ctx context.Context, n int) error {
			return s.call(ctx, round, batch*s.calls+n)
		})
		if err != nil {
			return 0, err
		}
		callsAfter, usAfter, err := b.scriptTime(ctx)
		if err != nil {
			return 0, err
		}
		if made := callsAfter - calls; made != int64(s.calls*s.scripts) {
			return 0, fmt.Errorf("redis ran %d scripts while %d were measured: measure on one that nobody else uses", made, s.calls)
		}
		least = min(least, float64(usAfter-us)/float64(s.calls))
	}
	return least, nil
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
