package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/quota"
)

const (
	rateRounds = 5
	rateTime   = 300 * time.Millisecond // of one measurement
	rateUsers  = 1000
)

var rateCallers = []int{1, 16, 64, 256}

// rates measures how many decisions a process gets from one Redis: together, as
// the ledger sends them, and each by itself over a pool of connections. The best
// of the rounds counts.
func (b *ledgerBench) rates(ctx context.Context, f *LedgerFigures) error {
	f.DecisionsPerSecond = DecisionRates{Coalesced: map[int]float64{}, Pool: map[int]float64{}}
	coalesced, err := b.newLedger("rate", false)
	if err != nil {
		return err
	}
	pool, err := b.newLedger("rate", true)
	if err != nil {
		return err
	}
	for round := range rateRounds {
		for i, callers := range rateCallers {
			b.options.progress(0.4+0.4*(float64(round)+float64(i)/float64(len(rateCallers)))/rateRounds,
				"decisions per second, %d callers, round %d of %d", callers, round+1, rateRounds)
			for _, m := range []struct {
				ledger *quota.Ledger
				best   map[int]float64
			}{{pool, f.DecisionsPerSecond.Pool}, {coalesced, f.DecisionsPerSecond.Coalesced}} {
				rate, err := decisionRate(ctx, m.ledger, callers, b.rateTime)
				if err != nil {
					return fmt.Errorf("%d callers at once: %w", callers, err)
				}
				m.best[callers] = max(m.best[callers], rate)
			}
		}
	}
	return nil
}

// decisionRate lets so many callers ask for so long, each again as soon as it has
// its answer.
func decisionRate(ctx context.Context, ledger *quota.Ledger, callers int, long time.Duration) (float64, error) {
	var made atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for first := range callers {
		group.Go(func() error {
			for user := first; time.Since(began) < long; user += callers {
				c := quota.Caller{Project: benchProject, User: ledgerUser(user % rateUsers), Lane: quota.Backfill}
				if _, err := ledger.Take(ctx, c, "gmail", costUnits); err != nil {
					return err
				}
				made.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return round(float64(made.Load()) / time.Since(began).Seconds()), nil
}
