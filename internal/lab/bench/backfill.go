package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/traffic"
	"headroom/jobs"
	"headroom/quota"
)

// What backfill is made of: mailboxes of such a size that a backfill goes on for
// six windows, and each of its users makes fifty interactive calls a minute.
const (
	crawlPrices    = "gmail-2026-05"
	crawlScale     = 10
	crawlMailboxes = 3
	crawlMessages  = 1500
	crawlBound     = 4 * time.Minute
	maxCrawlRatio  = 1.10
)

var crawlLoad = traffic.Moderate

// BackfillFigures are what backfill measured: how much longer than it must a
// backfill takes beside interactive calls.
type BackfillFigures struct {
	Bench string `json:"bench"`

	// Ratio is the time from a job's start to its end over the least that it can
	// take: the units that it and the users spent, at the lane's ceiling, which both
	// fill. It is the worst of the mailboxes' under the three meters.
	Ratio   float64 `json:"ratio"`
	Refused int64   `json:"refused_by_google"`
	Denied  int64   `json:"interactive_denied"`
	// DeniedBy counts the denied calls by the limit and what of it bound.
	DeniedBy map[string]int64 `json:"interactive_denied_by"`
	Refetch  float64          `json:"refetched_ratio"` // of messages, how many were fetched again
	Calls    int64            `json:"interactive_calls"`
	Messages int64            `json:"messages"`
	Stored   int64            `json:"stored"`
	Crawls   []CrawlReport    `json:"crawls"`

	Targets
	Seconds float64 `json:"seconds"`
}

// CrawlReport is what became of the backfill of one mailbox.
type CrawlReport struct {
	Meter       string  `json:"meter"`
	Account     string  `json:"account"`
	Stored      int64   `json:"stored"`
	Units       int64   `json:"units"`             // of the backfill
	Interactive int64   `json:"interactive_units"` // meanwhile
	Bound       float64 `json:"bound_seconds"`
	Seconds     float64 `json:"seconds"`
	Ratio       float64 `json:"ratio"`
}

// Broken implements [Figures].
func (f *BackfillFigures) Broken() string {
	switch {
	case len(f.Crawls) == 0:
		return "nothing was measured"
	case f.Stored != f.Messages:
		return fmt.Sprintf("%d of %d messages were stored", f.Stored, f.Messages)
	case f.Refused > 0:
		return fmt.Sprintf("Google refused %d calls", f.Refused)
	case f.Denied > 0:
		return fmt.Sprintf("%d interactive calls were denied", f.Denied)
	case f.Calls == 0:
		return "no interactive calls were made"
	case f.Refetch > 0:
		return fmt.Sprintf("%v of the messages were fetched again", f.Refetch)
	}
	return ""
}

func (f *BackfillFigures) judge() {
	for _, c := range f.Crawls {
		f.Ratio = max(f.Ratio, c.Ratio)
		f.Stored += c.Stored
	}
	f.require(f.Ratio <= maxCrawlRatio, "ratio is %v, aim at most %v", f.Ratio, maxCrawlRatio)
	f.conclude()
}

func backfill(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, crawlBound)
	defer cancel()
	began := time.Now()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	f := &BackfillFigures{Bench: "backfill", DeniedBy: map[string]int64{}}
	// One after the other: together they would measure the machine.
	for i, meter := range meters {
		c := crawl{
			siteSettings: siteSettings{prices: crawlPrices, meter: meter, scale: crawlScale, redisURL: redisURL},
			mailboxes:    crawlMailboxes, messages: crawlMessages, figures: f,
			progress: func(done float64) {
				o.progress((float64(i)+done)/float64(len(meters)), "%d mailboxes under the meter %s, %.0f %% stored", crawlMailboxes, meter, 100*done)
			},
		}
		if err := c.measure(ctx, o); err != nil {
			return nil, fmt.Errorf("backfills under the meter %s: %w", meter, err)
		}
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

// meters are the ways in which the fake may count.
var meters = []string{meter.Fixed, meter.Sliding, meter.Bucket}

// A crawl runs backfills of some mailboxes at once, under one meter.
type crawl struct {
	siteSettings
	mailboxes, messages int
	figures             *BackfillFigures // to add to
	progress            func(done float64)
}

func (c crawl) measure(ctx context.Context, o Options) error {
	accounts, fill := mailboxes(c.mailboxes, c.messages)
	return c.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		users, stop := s.traffic(), make(chan struct{})
		var done []jobs.Job
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return users.Play(ctx, stop, crawlLoad, listOfMessages, accounts) })
		group.Go(func() (err error) {
			defer close(stop)
			ids, err := s.startAll(ctx, accounts)
			if err != nil {
				return err
			}
			done, err = s.untilEnded(ctx, ids, func(_ time.Time, all []jobs.Job) {
				c.progress(float64(storedOf(all)) / float64(c.mailboxes*c.messages))
			})
			return err
		})
		if err := group.Wait(); err != nil {
			return err
		}
		c.report(done, users, s.Fake.Meter())
		return nil
	})
}

// report adds what became of the backfills to the figures.
func (c crawl) report(done []jobs.Job, users *traffic.Traffic, meter meter.Report) {
	f := c.figures
	f.Messages += int64(c.mailboxes * c.messages)
	f.Refused += meter.Refused()
	for why, n := range users.DeniedBy() {
		f.Denied += n
		f.DeniedBy[why] += n
	}
	f.Refetch = round(max(f.Refetch, float64(meter.Refetched())/float64(c.mailboxes*c.messages)))
	for _, job := range done {
		user := meter.User(job.Account)
		calls, all := users.Spent(job.Account, time.Time{}, time.Now())
		_, units := users.Spent(job.Account, job.CreatedAt, job.FinishedAt)
		f.Calls += calls
		r := CrawlReport{Meter: c.meter, Account: job.Account, Stored: job.Progress.Stored,
			Units: user.UnitsAdmitted - all, Interactive: units}
		perSecond := float64(user.Limit) * quota.ModeDefault.Lanes()[quota.Backfill].Ceiling / 60 * float64(c.scale)
		bound, seconds := float64(r.Units+r.Interactive)/perSecond, job.FinishedAt.Sub(job.CreatedAt).Seconds()
		r.Bound, r.Seconds, r.Ratio = round(bound), round(seconds), round(seconds/bound)
		f.Crawls = append(f.Crawls, r)
	}
}
