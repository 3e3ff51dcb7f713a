package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
	"headroom/quota"
)

// A backlog is a backfill of some mailboxes by a worker process against a fake
// Google of its own.
type backlog struct {
	prices   string
	cost     int64 // of a message, by prices
	meter    string
	scale    int
	jitter   time.Duration // median on the way to Google, in quota time
	limit    int64         // units per user and minute
	ceiling  float64       // of the lane
	accounts int
	messages int // in each
	guard    bool
}

// measure works the backlog off and asks the fake what it saw. Assembling happens
// under starting. progress is called with how many messages are stored.
func (b backlog) measure(ctx context.Context, o Options, redisURL string, starting *semaphore.Weighted, progress func(stored int64)) (report BacklogReport, err error) {
	if err := starting.Acquire(ctx, 1); err != nil {
		return BacklogReport{}, err
	}
	release := sync.OnceFunc(func() { starting.Release(1) })
	defer release()
	set := siteSettings{prices: b.prices, meter: b.meter, scale: b.scale, jitter: b.jitter / time.Duration(b.scale),
		limit: b.limit, ceiling: &b.ceiling, redisURL: redisURL}
	if !b.guard {
		set.ledger = quota.WithoutGuard
	}
	accounts, fill := mailboxes(b.accounts, b.messages)
	err = set.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		ids, err := s.startAll(ctx, accounts)
		if err != nil {
			return err
		}
		release()
		done, err := s.untilEnded(ctx, ids, func(_ time.Time, all []jobs.Job) { progress(storedOf(all)) })
		if err != nil {
			return err
		}
		report = b.report(done, s.Fake.Meter())
		return nil
	})
	return report, err
}

func (b backlog) report(done []jobs.Job, meter meter.Report) BacklogReport {
	r := BacklogReport{
		Prices: b.prices, Cost: b.cost, Meter: b.meter, Scale: b.scale, Guard: b.guard,
		JitterMS: round(b.jitter.Seconds() * 1000), Limit: b.limit, Ceiling: b.ceiling,
		Accounts: b.accounts, Messages: int64(b.accounts * b.messages),
		Refused: meter.Refused(), Utilization: math.Inf(1),
	}
	for _, job := range done {
		user := meter.User(job.Account)
		r.Stored += job.Progress.Stored
		r.Units += user.UnitsAdmitted
		r.Most = max(r.Most, user.MostInWindow)
		seconds := job.FinishedAt.Sub(job.CreatedAt).Seconds()
		allowed := float64(b.limit) * b.ceiling / 60 * float64(b.scale) * seconds
		r.Utilization = min(r.Utilization, round(float64(user.UnitsAdmitted)/allowed))
		r.Seconds = max(r.Seconds, round(seconds))
	}
	return r
}

// A share sums up the progress of backlogs that run side by side.
type share struct {
	options Options

	mu    sync.Mutex
	parts []float64
	taken int
}

func newShare(o Options, parts int) *share { return &share{options: o, parts: make([]float64, parts)} }

// of returns where one backlog reports its progress.
func (p *share) of(b backlog) func(stored int64) {
	return p.part(b.accounts*b.messages, fmt.Sprintf("backlogs at %g of the limit, %s and the meter %s", b.ceiling, b.prices, b.meter))
}

// part returns where one of those that run side by side reports its progress. It is
// not safe for concurrent use; what it returns is.
func (p *share) part(messages int, what string) func(stored int64) {
	part := p.taken
	p.taken++
	return func(stored int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.parts[part] = float64(stored) / float64(messages)
		sum := 0.0
		for _, v := range p.parts {
			sum += v
		}
		p.options.progress(sum/float64(len(p.parts)), "%s: %d of %d stored", what, stored, messages)
	}
}
