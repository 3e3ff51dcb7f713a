package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
)

const (
	costsMessages = 3000
	costsBound    = 5 * time.Minute
	minCostsUsed  = 0.90
)

// CostsFigures are what costs measured: how long mail takes by each price list,
// where a backfill may use all of a user's limit.
type CostsFigures struct {
	Bench   string        `json:"bench"`
	Refused int64         `json:"refused_by_google"`
	Over    int           `json:"over_limit_windows"`
	Lists   []CostsReport `json:"lists"`

	Targets
	Seconds float64 `json:"seconds"`
}

// CostsReport is how long the mail takes by one price list. Minutes are of quota time,
// from the first call to the last.
type CostsReport struct {
	Prices   string      `json:"prices"`
	Format   jobs.Format `json:"format"`
	Scale    int         `json:"scale"`
	Messages int64       `json:"messages"`
	Brought  int64       `json:"brought"` // stored, or with metadata-first their metadata
	Units    int64       `json:"units"`   // that the fake admitted
	Limit    int64       `json:"limit"`   // of a user's minute
	Minutes  float64     `json:"quota_minutes"`
	Least    float64     `json:"least_minutes"` // that it must take, by prices and limit
	Most     float64     `json:"most_minutes"`  // that it should
	Used     float64     `json:"used"`          // units over what the limit allows in that time
	Refused  int64       `json:"refused"`
	Seconds  float64     `json:"seconds"`
}

// Broken implements [Figures].
func (f *CostsFigures) Broken() string {
	if len(f.Lists) == 0 {
		return "nothing was measured"
	}
	for _, r := range f.Lists {
		name := r.Prices + " " + string(r.Format)
		switch {
		case r.Brought != r.Messages:
			return fmt.Sprintf("%s: %d of %d messages came", name, r.Brought, r.Messages)
		case r.Minutes < r.Least:
			return fmt.Sprintf("%s took %v quota minutes, where prices and limit make it at least %v", name, r.Minutes, r.Least)
		}
	}
	if f.Refused > 0 || f.Over > 0 {
		return fmt.Sprintf("Google refused %d calls, %d limits were exceeded", f.Refused, f.Over)
	}
	return ""
}

func (f *CostsFigures) judge() {
	for _, r := range f.Lists {
		name := r.Prices + " " + string(r.Format)
		f.Refused += r.Refused
		f.require(r.Minutes <= r.Most, "%s took %v quota minutes, aim at most %v", name, r.Minutes, r.Most)
		f.require(r.Used >= minCostsUsed || r.Most < 2, "%s used %v of the limit, aim at least %v", name, r.Used, minCostsUsed)
	}
	f.conclude()
}

// costsRuns are the price lists, the rows side by side and each row one after the
// other, with such scales that all takes a minute and a half. Quota time may not run
// so fast that the machine's own delays exceed what the ledger's guard covers.
var costsRuns = [][]costsRun{
	{ // a window of 15,000 units holds nearly all of it
		{prices: "gmail-legacy", scale: 2, least: 0, most: 75.0 / 60},
		// Message by message it would take ten minutes; whole threads make it less.
		{prices: "gmail-2026-10", scale: 10, format: jobs.FormatMetadataFirst, least: 7, most: 11},
	},
	{{prices: "gmail-2026-05", scale: 10, least: 9, most: 11}},
	{{prices: "gmail-2026-10", scale: 20, least: 29, most: 33}},
}

// A costsRun is a backfill by a price list, or with metadata-first its first pass.
type costsRun struct {
	prices      string
	scale       int
	limit       int64 // units per user and minute; the list's if zero
	format      jobs.Format
	messages    int
	least, most float64 // minutes
}

func costs(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, costsBound)
	defer cancel()
	began := time.Now()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	f := &CostsFigures{Bench: "costs"}
	p := newShare(o, len(slices.Concat(costsRuns...)))
	starting := semaphore.NewWeighted(1) // assembling a process keeps the machine busy
	group, all := errgroup.WithContext(ctx)
	for _, row := range costsRuns {
		progress := make([]func(int64), len(row))
		for i, run := range row {
			progress[i] = p.part(costsMessages, fmt.Sprintf("all of the limit, %s %s", run.prices, cmp.Or(run.format, jobs.FormatRaw)))
		}
		group.Go(func() error {
			for i, run := range row {
				run.messages = costsMessages
				report, over, err := run.measure(all, o, starting, redisURL, progress[i])
				if err != nil {
					return fmt.Errorf("mail with %s: %w", run.prices, err)
				}
				p.mu.Lock()
				f.Lists, f.Over = append(f.Lists, report), f.Over+over
				p.mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(f.Lists, func(a, b CostsReport) int {
		return cmp.Or(-strings.Compare(a.Prices, b.Prices), -strings.Compare(string(a.Format), string(b.Format)))
	})
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

const costsUser = "ann@example.com"

func (c costsRun) measure(ctx context.Context, o Options, starting *semaphore.Weighted, redisURL string, progress func(int64)) (r CostsReport, over int, err error) {
	if err := starting.Acquire(ctx, 1); err != nil {
		return r, 0, err
	}
	release := sync.OnceFunc(func() { starting.Release(1) })
	defer release()
	all := 1.0
	set := siteSettings{prices: c.prices, meter: meter.Sliding, scale: c.scale, limit: c.limit, ceiling: &all, redisURL: redisURL}
	fill := func(fake *fakegoogle.Server) error {
		return fake.Load(costsUser, fmt.Sprintf("generate:%d", c.messages))
	}
	err = set.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		job, err := s.start(ctx, costsUser, jobs.Filter{Format: c.format})
		if err != nil {
			return err
		}
		release()
		if job, err = c.untilFetched(ctx, s, job.ID, progress); err != nil {
			return err
		}
		over = s.Fake.Meter().OverLimit()
		r = c.report(s.Fake, job)
		return nil
	})
	return r, over, err
}

// fetched is how many messages of those that are measured a job has fetched.
func (c costsRun) fetched(j jobs.Job) int64 {
	if c.format == jobs.FormatMetadataFirst {
		return max(j.Progress.Noted, j.Progress.Stored)
	}
	return j.Progress.Stored
}

// untilFetched waits until the job has ended or has fetched all that is measured.
func (c costsRun) untilFetched(ctx context.Context, s *site, id string, progress func(int64)) (jobs.Job, error) {
	var last jobs.Job
	enough, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := s.untilEnded(enough, []string{id}, func(_ time.Time, all []jobs.Job) {
		last = all[0]
		progress(c.fetched(last))
		if c.format == jobs.FormatMetadataFirst && c.fetched(last) == int64(c.messages) {
			cancel()
		}
	})
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return last, err
}

// report sums up the calls that fetched what is measured.
func (c costsRun) report(fake *fakegoogle.Server, job jobs.Job) CostsReport {
	user := fake.Meter().User(costsUser)
	r := CostsReport{
		Prices: c.prices, Format: cmp.Or(c.format, jobs.FormatRaw), Scale: c.scale, Messages: int64(c.messages),
		Brought: c.fetched(job), Limit: user.Limit, Least: c.least, Most: round(c.most), Refused: user.Refused,
	}
	var first, last time.Time
	for call := range fake.Select(meter.Filter{User: costsUser}) {
		if c.format == jobs.FormatMetadataFirst && call.Format == string(jobs.FormatRaw) { // of the second pass
			break
		}
		if first.IsZero() {
			first = call.At
		}
		last = call.At
		r.Units += call.Units
	}
	seconds := last.Sub(first).Seconds()
	minutes := seconds * float64(c.scale) / 60
	r.Seconds, r.Minutes = round(seconds), round(minutes)
	r.Used = round(float64(r.Units) / (float64(r.Limit) * minutes))
	return r
}
