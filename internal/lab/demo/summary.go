package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
)

// Summary is the outcome of a demo. Google is the fake; its figures come from its own
// meter and exact log.
type Summary struct {
	Messages    int   `json:"messages"`
	Stored      int64 `json:"stored"`
	Identical   int   `json:"identical"` // the stored blob's SHA-256 is that of the bytes in the input
	ParseFailed int64 `json:"parse_failed"`
	Failed      int64 `json:"failed"` // messages given up

	RefusedByGoogle  int64 `json:"refused_by_google"`
	OverLimitWindows int   `json:"over_limit_windows"` // accounts and projects whose most in any window exceeded the limit
	DeniedByQuota    int64 `json:"denied_by_quota"`    // backfill calls that the ledger let wait
	Requeued         int64 `json:"requeued"`           // slices that went back to the queue for it

	InteractiveCalls     int     `json:"interactive_calls"`
	InteractiveUnits     int64   `json:"interactive_units"`
	InteractiveDenied    int     `json:"interactive_denied"`
	InteractiveWaitP50MS float64 `json:"interactive_wait_p50_ms"`
	InteractiveWaitP99MS float64 `json:"interactive_wait_p99_ms"`

	// BackfillUtilization is backfill units over ceiling minus interactive units,
	// per account from its first slice to its end, the least of them. Nil: no
	// account had work for a whole window, so that it is unknown.
	BackfillUtilization *float64 `json:"backfill_utilization"`

	Prices  string  `json:"prices"`
	Meter   string  `json:"meter"`
	Scale   int     `json:"scale"`
	Seconds float64 `json:"seconds"`
	Folder  string  `json:"folder,omitempty"` // of the store, when it was kept

	enough bool // an account's mail cost more than fits into a window, so the quota must have made it wait
}

// What a run on a machine of its own reaches. Missing it breaks no promise: how
// fast the machine is, and what else it does, has a part in these figures.
const (
	AimWaitP99MS   = 250  // of interactive calls, at most
	AimUtilization = 0.90 // of the backfill, at least
)

// Slow returns the aims that were missed.
func (s Summary) Slow() []string {
	var missed []string
	if s.InteractiveWaitP99MS > AimWaitP99MS {
		missed = append(missed, fmt.Sprintf("one in a hundred interactive calls waited for %.0f ms or more, the aim is %d", s.InteractiveWaitP99MS, AimWaitP99MS))
	}
	if u := s.BackfillUtilization; u != nil && *u < AimUtilization {
		missed = append(missed, fmt.Sprintf("the backfill used %.1f %% of its share, the aim is %.0f", 100**u, 100*AimUtilization))
	}
	return missed
}

// Broken returns the promise that the run broke, or "". It is about what the run did,
// not about how fast the machine is: see [Summary.Slow].
func (s Summary) Broken() string {
	switch {
	case s.Stored != int64(s.Messages) || s.Identical != s.Messages:
		return fmt.Sprintf("of %d messages %d were stored and %d are identical", s.Messages, s.Stored, s.Identical)
	case s.RefusedByGoogle > 0 || s.OverLimitWindows > 0:
		return fmt.Sprintf("Google refused %d calls, %d limits were exceeded", s.RefusedByGoogle, s.OverLimitWindows)
	case s.InteractiveDenied > 0:
		return fmt.Sprintf("%d interactive calls were denied", s.InteractiveDenied)
	case s.InteractiveCalls < minCalls:
		return fmt.Sprintf("%d interactive calls were made, fewer than the %d that a verdict needs", s.InteractiveCalls, minCalls)
	case s.enough && s.DeniedByQuota == 0:
		return fmt.Sprintf("the quota never made the backfill wait, so the run has shown nothing; where the machine is too slow for --scale %d, choose a lower one", s.Scale)
	}
	return ""
}

// judge compares what was stored with what was dealt, and asks the fake's meter.
func (d *demo) judge(ctx context.Context) (Summary, error) {
	report, figures := d.rig.Fake.Meter(), d.users.Figures()
	s := Summary{
		Messages: len(d.dealt), RefusedByGoogle: report.Refused(), OverLimitWindows: report.OverLimit(),
		InteractiveCalls: figures.Calls, InteractiveUnits: figures.Units, InteractiveDenied: figures.Denied,
		InteractiveWaitP50MS: milliseconds(figures.WaitP50.Seconds()), InteractiveWaitP99MS: milliseconds(figures.WaitP99.Seconds()),
		Prices: d.opts.Prices, Meter: d.opts.Meter, Scale: d.opts.Scale,
	}
	if d.opts.Keep {
		s.Folder = d.rig.Folder
	}
	for _, m := range d.dealt {
		same, err := d.identical(ctx, m)
		if err != nil {
			return s, err
		}
		if same {
			s.Identical++
		}
	}
	ceiling := float64(d.list.Limits[price.UserMinute].Units) * quota.ModeDefault.Lanes()[quota.Backfill].Ceiling
	for _, j := range d.jobs {
		s.Stored += j.Progress.Stored
		s.ParseFailed += j.Progress.ParseFailed
		s.Failed += j.Progress.Failed
		s.Requeued += j.Requeued
		_, all := d.users.Spent(j.Account, time.Time{}, time.Now())
		_, between := d.users.Spent(j.Account, j.StartedAt, j.FinishedAt)
		spent := report.User(j.Account).UnitsAdmitted - all
		s.enough = s.enough || float64(spent) > ceiling
		u := utilization(spent, between, ceiling, j.FinishedAt.Sub(j.StartedAt), d.opts.Scale)
		if u != nil && (s.BackfillUtilization == nil || *u < *s.BackfillUtilization) {
			s.BackfillUtilization = u
		}
	}
	denied, err := d.denied()
	s.DeniedByQuota = denied
	return s, err
}

// utilization is what a backfill spent over what its ceiling, in units a minute,
// and interactive calls left it in a span of quota time that runs scale times faster.
// It is nil for a span shorter than a window, where start and end would be most
// of the figure.
func utilization(spent, interactive int64, ceiling float64, span time.Duration, scale int) *float64 {
	windows := span.Minutes() * float64(scale)
	room := ceiling*windows - float64(interactive)
	if windows < 1 || room <= 0 {
		return nil
	}
	u := math.Round(1000*float64(spent)/room) / 1000
	return &u
}

func milliseconds(seconds float64) float64 { return math.Round(seconds*1e5) / 100 }

// identical reports whether a message's blob holds the bytes of the input.
func (d *demo) identical(ctx context.Context, m dealtMessage) (bool, error) {
	row, err := d.process.Store().Message(ctx, m.account, m.id)
	if errors.Is(err, jobs.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	blob, err := d.process.Blobs().Open(ctx, row.SHA256)
	if err != nil {
		return false, err
	}
	defer blob.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, blob); err != nil {
		return false, fmt.Errorf("read message %s of %s: %w", m.id, m.account, err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == m.sha256, nil
}

// denied reads off the process' own metrics how often the ledger let the
// backfill wait.
func (d *demo) denied() (int64, error) {
	families, err := d.registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("read the metrics: %w", err)
	}
	var n float64
	for _, family := range families {
		if family.GetName() != "headroom_quota_decisions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["lane"] == string(quota.Backfill) && labels["outcome"] == "denied" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return int64(n), nil
}
