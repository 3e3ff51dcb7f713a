package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"headroom/internal/lab/fakegoogle/meter"
)

const utilizationBound = 8 * time.Minute

// minUtilization is the share of its ceiling that a backfill should use.
const minUtilization = 0.93

// UtilizationFigures are what utilization measured: how much of what its lane
// allows a backfill uses, and what the guard is for. Calls take a random time to the
// fake Google, which counts arrivals.
type UtilizationFigures struct {
	Bench string `json:"bench"`

	// Least is the least of the backlogs' utilizations: units that the fake
	// admitted, over the lane's ceiling in the time from the job's start to its end.
	Least    float64         `json:"least_utilization"`
	Refused  int64           `json:"refused_by_google"`
	Backlogs []BacklogReport `json:"backlogs"`

	// With the ceiling at the whole limit, nothing but the guard keeps calls that
	// were slow from meeting a full window. Without it, a unit counts for as
	// little longer than a minute as the ledger's keys can tell.
	RefusedWithGuard    int64           `json:"refused_with_guard"`
	RefusedWithoutGuard int64           `json:"refused_without_guard"`
	Guard               []BacklogReport `json:"guard"`

	Targets
	Seconds float64 `json:"seconds"`
}

// BacklogReport is what became of one backlog.
type BacklogReport struct {
	Prices      string  `json:"prices"`
	Cost        int64   `json:"cost"` // of a message
	Meter       string  `json:"meter"`
	Scale       int     `json:"scale"`
	JitterMS    float64 `json:"jitter_ms"` // median, in quota time
	Guard       bool    `json:"guard"`
	Limit       int64   `json:"limit"`   // units per user and minute
	Ceiling     float64 `json:"ceiling"` // share of it
	Accounts    int     `json:"accounts"`
	Messages    int64   `json:"messages"`
	Stored      int64   `json:"stored"`
	Units       int64   `json:"units"`       // that the fake admitted
	Utilization float64 `json:"utilization"` // the least of the accounts'
	Most        int64   `json:"most_in_window"`
	Refused     int64   `json:"refused"`
	Seconds     float64 `json:"seconds"`
}

// The backlogs, all at once: three prices under every meter. The limits are such
// that the prices are what matters and not the machine: some 13 to 24 calls a
// second each.
func utilizationBacklogs() []backlog {
	var all []backlog
	for _, list := range []backlog{
		{prices: "gmail-legacy", cost: 5, limit: 900, messages: 850},
		{prices: "gmail-2026-05", cost: 20, limit: 2400, messages: 560},
		{prices: "gmail-2026-10", cost: 60, limit: 6000, messages: 465},
	} {
		for _, meter := range meter.Algorithms() {
			b := list
			b.meter, b.scale, b.jitter, b.guard, b.ceiling, b.accounts = meter, 10, 80*time.Millisecond, true, 0.8, 1
			all = append(all, b)
		}
	}
	return all
}

// guardBacklogs fill all of the limit. They run at half the others' speed, since
// a machine that delays a call by more than the guard is no better than a network
// that does; slower still, and their waits for a full window would go through the
// queue, which leaves the window less than full.
func guardBacklogs() []backlog {
	var all []backlog
	for _, meter := range []string{"fixed", "sliding"} {
		for _, guard := range []bool{true, false} {
			all = append(all, backlog{
				prices: "gmail-2026-05", cost: 20, limit: 3000, messages: 500, accounts: 2,
				meter: meter, scale: 5, jitter: 40 * time.Millisecond, guard: guard, ceiling: 1,
			})
		}
	}
	return all
}

// Broken implements [Figures].
func (f *UtilizationFigures) Broken() string {
	for _, b := range append(f.Backlogs, f.Guard...) {
		if b.Stored != b.Messages {
			return fmt.Sprintf("%d of %d messages were stored with %s and the meter %s", b.Stored, b.Messages, b.Prices, b.Meter)
		}
	}
	switch {
	case len(f.Backlogs) == 0 || len(f.Guard) == 0:
		return "nothing was measured"
	case f.Refused > 0:
		return fmt.Sprintf("Google refused %d calls", f.Refused)
	case f.RefusedWithGuard > 0:
		return fmt.Sprintf("Google refused %d calls in spite of the guard", f.RefusedWithGuard)
	}
	return ""
}

func (f *UtilizationFigures) judge() {
	f.Least = math.Inf(1)
	for _, b := range f.Backlogs {
		f.Least = min(f.Least, b.Utilization)
		f.Refused += b.Refused
	}
	for _, b := range f.Guard {
		if b.Guard {
			f.RefusedWithGuard += b.Refused
		} else {
			f.RefusedWithoutGuard += b.Refused
		}
	}
	f.require(f.Least >= minUtilization, "least_utilization is %v, aim at least %v", f.Least, minUtilization)
	f.require(f.RefusedWithoutGuard > 0, "refused_without_guard is 0: the run did not show what the guard is for")
	f.conclude()
}

func utilization(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, utilizationBound)
	defer cancel()
	began := time.Now()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	f := &UtilizationFigures{Bench: "utilization"}
	first, second := utilizationBacklogs(), guardBacklogs()
	p := newShare(o, len(first)+len(second))
	if f.Backlogs, err = runBacklogs(ctx, o, redisURL, p, first); err != nil {
		return nil, err
	}
	if f.Guard, err = runBacklogs(ctx, o, redisURL, p, second); err != nil {
		return nil, err
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

// runBacklogs runs backlogs side by side. They start one after the other, since
// assembling a process is the only thing that keeps the machine busy.
func runBacklogs(ctx context.Context, o Options, redisURL string, p *share, all []backlog) ([]BacklogReport, error) {
	reports := make([]BacklogReport, len(all))
	starting := semaphore.NewWeighted(1)
	group, ctx := errgroup.WithContext(ctx)
	for i, b := range all {
		progress := p.of(b)
		group.Go(func() error {
			report, err := b.measure(ctx, o, redisURL, starting, progress)
			if err != nil {
				return fmt.Errorf("backlog with %s and the meter %s: %w", b.prices, b.meter, err)
			}
			reports[i] = report
			return nil
		})
	}
	return reports, group.Wait()
}
