package bench

import (
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"headroom/jobs"
)

// Some mail with all of the limit, brought whole and metadata first: figures are by
// the fake's own log.
func TestCostsRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		format jobs.Format
		units  int64
	}{
		{"raw", "", 120*60 + 6},
		{"metadata first", jobs.FormatMetadataFirst, 120*20 + 6}, // or less, by whole threads
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := costsRun{prices: "gmail-2026-10", scale: 20, limit: 60_000, format: test.format, messages: 120}
			r, over, err := c.measure(t.Context(), Options{Log: zap.NewNop()}, semaphore.NewWeighted(1), realRedis.URL(), func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			if r.Brought != 120 || r.Units < test.units*8/10 || r.Units > test.units+60 || r.Limit != 60_000 || r.Refused != 0 || over != 0 {
				t.Errorf("%+v, %d over the limit; want 120 messages for some %d units", r, over, test.units)
			}
			minutes := r.Seconds * 20 / 60 // minutes themselves are rounded too coarsely here
			if used := float64(r.Units) / 60_000 / minutes; r.Minutes <= 0 || r.Used < 0.99*used || r.Used > 1.01*used {
				t.Errorf("%+v, want used to be units over what the minutes allow", r)
			}
		})
	}
}

func TestCostsJudgement(t *testing.T) {
	for _, test := range []struct {
		name           string
		change         func(*CostsFigures)
		missed, broken string
	}{
		{name: "all is well", change: func(*CostsFigures) {}},
		{name: "slow", change: func(f *CostsFigures) { f.Lists[0].Minutes = 12 }, missed: "a raw took 12 quota minutes, aim at most 11"},
		{name: "faster than can be", change: func(f *CostsFigures) { f.Lists[0].Minutes = 8 }, broken: "a raw took 8 quota minutes, where prices and limit make it at least 9"},
		{name: "little used", change: func(f *CostsFigures) { f.Lists[1].Used = 0.8 }, missed: "b raw used 0.8 of the limit, aim at least 0.9"},
		{name: "little used of one window", change: func(f *CostsFigures) { f.Lists[2].Used = 0.8 }},
		{name: "refused", change: func(f *CostsFigures) { f.Lists[1].Refused = 3 }, broken: "Google refused 3 calls, 0 limits were exceeded"},
		{name: "over the limit", change: func(f *CostsFigures) { f.Over = 1 }, broken: "Google refused 0 calls, 1 limits were exceeded"},
		{name: "a message missing", change: func(f *CostsFigures) { f.Lists[1].Brought = 9 }, broken: "b raw: 9 of 10 messages came"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &CostsFigures{}
			for _, name := range []string{"a", "b"} {
				f.Lists = append(f.Lists, CostsReport{Prices: name, Format: "raw", Messages: 10, Brought: 10, Minutes: 10, Least: 9, Most: 11, Used: 0.95})
			}
			f.Lists = append(f.Lists, CostsReport{Prices: "c", Format: "raw", Messages: 10, Brought: 10, Minutes: 1, Most: 1.25, Used: 0.95})
			test.change(f)
			f.judge()
			checkJudgement(t, f, f.Targets, test.missed, test.broken)
		})
	}
	if broken := (&CostsFigures{}).Broken(); broken != "nothing was measured" {
		t.Errorf("an empty run is broken by %q", broken)
	}
}
