package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"headroom/internal/control/progress"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/rig"
	"headroom/jobs"
)

const (
	pricedScale      = 10
	pricedBound      = 6 * time.Minute
	maxEstimateError = 0.10
	maxETAError      = 0.20
)

// EstimateFigures are what estimate measured: how far the estimates before a
// backfill, and at half of it, were from the outcome.
type EstimateFigures struct {
	Bench string `json:"bench"`

	// UnitsError is the error of the estimated units, as a share of those that the
	// fake admitted; ETAError the error of the time left that was shown at half of
	// the work, as a share of the time that it still took; TimeError the error of the
	// estimated time. Each is the worst of all runs.
	UnitsError float64 `json:"worst_error_ratio"`
	ETAError   float64 `json:"eta_error_ratio_at_half"`
	TimeError  float64 `json:"time_error_ratio"`

	Refused int64          `json:"refused_by_google"`
	Asking  int64          `json:"asking_units_max"` // most that one estimate spent
	Runs    []PricedReport `json:"runs"`

	Targets
	Seconds float64 `json:"seconds"`
}

// PricedReport is the estimate of one backfill, and its outcome.
type PricedReport struct {
	Prices    string     `json:"prices"`
	Mailbox   string     `json:"mailbox"`
	State     jobs.State `json:"state"`
	Messages  int64      `json:"messages_said"`
	Known     int64      `json:"known_said"`
	Listed    int64      `json:"messages"`
	Said      int64      `json:"units_said"`
	Units     int64      `json:"units"`
	Asking    int64      `json:"asking_units"`
	Error     float64    `json:"error_ratio"`
	SaidTime  float64    `json:"seconds_said"`
	Seconds   float64    `json:"seconds"`
	TimeError float64    `json:"time_error_ratio"`
	HalfETA   float64    `json:"eta_at_half_seconds"`
	HalfLeft  float64    `json:"left_at_half_seconds"`
	ETAError  float64    `json:"eta_error_ratio_at_half"`
}

// Broken implements [Figures].
func (f *EstimateFigures) Broken() string {
	if len(f.Runs) == 0 {
		return "nothing was measured"
	}
	for _, r := range f.Runs {
		if r.State != jobs.Completed {
			return fmt.Sprintf("the backfill of mailbox %s with %s is %s", r.Mailbox, r.Prices, r.State)
		}
	}
	if f.Refused > 0 {
		return fmt.Sprintf("Google refused %d calls", f.Refused)
	}
	return ""
}

func (f *EstimateFigures) judge() {
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Error = off(float64(r.Said), float64(r.Units))
		r.TimeError = off(r.SaidTime, r.Seconds)
		r.ETAError = off(r.HalfETA, r.HalfLeft)
		f.UnitsError, f.ETAError = max(f.UnitsError, r.Error), max(f.ETAError, r.ETAError)
		f.TimeError, f.Asking = max(f.TimeError, r.TimeError), max(f.Asking, r.Asking)
	}
	f.require(f.UnitsError <= maxEstimateError, "worst_error_ratio is %v, aim at most %v", f.UnitsError, maxEstimateError)
	f.require(f.ETAError <= maxETAError, "eta_error_ratio_at_half is %v, aim at most %v", f.ETAError, maxETAError)
	f.conclude()
}

// off is the error of an estimate, as a share of the outcome.
func off(estimated, outcome float64) float64 {
	if outcome <= 0 {
		return 1
	}
	return round(math.Abs(estimated-outcome) / outcome)
}

func estimate(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, pricedBound)
	defer cancel()
	began := time.Now()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	f := &EstimateFigures{Bench: "estimate"}
	lists := pricedLists
	for i, list := range lists {
		p := pricing{
			siteSettings: siteSettings{prices: list.prices, meter: meter.Sliding, scale: pricedScale,
				limit: list.limit, redisURL: redisURL},
			mailboxes: pricedMailboxes(1), figures: f,
			progress: func(done float64) {
				o.progress((float64(i)+done)/float64(len(lists)), "mailboxes with %s, %.0f %% done", list.prices, 100*done)
			},
		}
		if err := p.measure(ctx, o); err != nil {
			return nil, fmt.Errorf("estimates with %s: %w", list.prices, err)
		}
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

// pricedLists are Gmail's price lists, with limits such that the prices are what
// matters and not the machine.
var pricedLists = []struct {
	prices string
	limit  int64
}{{"gmail-legacy", 720}, {"gmail-2026-05", 2400}, {"gmail-2026-10", 6000}}

// A pricing is the estimates and backfills of some mailboxes by one price list.
type pricing struct {
	siteSettings
	mailboxes []pricedMailbox
	figures   *EstimateFigures // to add to
	progress  func(done float64)
}

func (p pricing) measure(ctx context.Context, o Options) error {
	fill := func(fake *fakegoogle.Server) error {
		for _, m := range p.mailboxes {
			if err := m.fill(fake); err != nil {
				return err
			}
		}
		return nil
	}
	return p.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		if err := p.storeBefore(ctx, s); err != nil {
			return err
		}
		reports := make([]PricedReport, len(p.mailboxes))
		before := make([]int64, len(p.mailboxes))
		for i, m := range p.mailboxes {
			e, err := s.process.Control().Estimate(ctx, m.email(), m.filter, 0)
			if err != nil {
				return err
			}
			own := e.Own()
			reports[i] = PricedReport{Prices: p.prices, Mailbox: m.name, Messages: e.Messages.Value, Known: e.Known.Value,
				Said: own.Units.Value, SaidTime: round(own.Seconds), Asking: e.Spent}
			before[i] = s.Fake.Meter().User(m.email()).UnitsAdmitted
		}
		return p.follow(ctx, s, reports, before)
	})
}

// storeBefore backfills what the mailboxes have stored before they are measured.
func (p pricing) storeBefore(ctx context.Context, s *site) error {
	var ids []string
	for _, m := range p.mailboxes {
		job, err := s.start(ctx, m.email(), m.before)
		if err != nil {
			return err
		}
		ids = append(ids, job.ID)
	}
	_, err := s.untilEnded(ctx, ids, func(time.Time, []jobs.Job) {})
	return err
}

// follow runs the backfills and records their outcome.
func (p pricing) follow(ctx context.Context, s *site, reports []PricedReport, before []int64) error {
	var ids []string
	for _, m := range p.mailboxes {
		job, err := s.start(ctx, m.email(), m.filter)
		if err != nil {
			return err
		}
		ids = append(ids, job.ID)
	}
	looks := make([]halfway, len(ids))
	for i := range looks {
		looks[i].speed = s.process.Control().Speed(rig.Project)
	}
	all, err := s.untilEnded(ctx, ids, func(at time.Time, all []jobs.Job) {
		sum := 0.0
		for i, j := range all {
			looks[i].look(at, j)
			if j.State.Terminal() && reports[i].Units == 0 {
				reports[i].Units = s.Fake.Meter().User(j.Account).UnitsAdmitted - before[i]
			}
			sum += looks[i].done
		}
		p.progress(sum / float64(len(all)))
	})
	if err != nil {
		return err
	}
	for i, j := range all {
		r, half := &reports[i], looks[i]
		r.State, r.Listed = j.State, j.Progress.Listed
		r.Seconds = round(j.FinishedAt.Sub(j.CreatedAt).Seconds())
		r.HalfETA, r.HalfLeft = round(half.left.Seconds()), round(j.FinishedAt.Sub(half.at).Seconds())
	}
	p.figures.Runs = append(p.figures.Runs, reports...)
	p.figures.Refused += s.Fake.Meter().Refused()
	return nil
}

// halfway is the time left that is shown of a job when half of its work is done.
type halfway struct {
	speed progress.Speed
	done  float64 // share of the work
	at    time.Time
	left  time.Duration
}

func (h *halfway) look(at time.Time, j jobs.Job) {
	h.speed.Look(at, j)
	done, left := h.speed.Work(j)
	if done+left > 0 && j.Checkpoint.Listed {
		h.done = done / (done + left)
	}
	if h.at.IsZero() && h.done >= 0.5 {
		h.at = at
		h.left, _ = h.speed.ETA(j)
	}
}
