package bench

import (
	"testing"

	"go.uber.org/zap"

	"headroom/jobs"
)

// Small mailboxes of all kinds, by the dearest price list: what is said before is
// what the fake comes to. Times are a matter of the machine.
func TestPricing(t *testing.T) {
	f := &EstimateFigures{}
	p := pricing{
		siteSettings: siteSettings{prices: "gmail-2026-10", meter: "sliding", scale: 20, limit: 60_000, redisURL: realRedis.URL()},
		mailboxes:    pricedMailboxes(10), figures: f, progress: func(float64) {},
	}
	if err := p.measure(t.Context(), Options{Log: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	f.judge()
	if broken := f.Broken(); broken != "" || len(f.Runs) != 5 || f.UnitsError > 0.02 || f.Asking > 15 {
		t.Errorf("broken %q, units off by %v, asking cost %d: %+v", broken, f.UnitsError, f.Asking, f.Runs)
	}
	for _, r := range f.Runs {
		if r.Messages != r.Listed || r.Listed < 20 || r.Known > 0 != (r.Mailbox == "stored") {
			t.Errorf("mailbox %s: %d messages said, %d listed, %d known", r.Mailbox, r.Messages, r.Listed, r.Known)
		}
	}
}

func TestEstimateJudgement(t *testing.T) {
	good := func() *EstimateFigures {
		r := PricedReport{Mailbox: "m", Prices: "p", State: jobs.Completed, Said: 100, Units: 98, Asking: 9, SaidTime: 10, Seconds: 10.5, HalfETA: 5, HalfLeft: 5.2}
		return &EstimateFigures{Runs: []PricedReport{r, r}}
	}
	for _, test := range []struct {
		name           string
		change         func(*EstimateFigures)
		missed, broken string
	}{
		{name: "all is well", change: func(*EstimateFigures) {}},
		{name: "too few units", change: func(f *EstimateFigures) { f.Runs[1].Said = 80 }, missed: "worst_error_ratio is 0.184, aim at most 0.1"},
		{name: "too many units", change: func(f *EstimateFigures) { f.Runs[0].Units = 50 }, missed: "worst_error_ratio is 1, aim at most 0.1"},
		{name: "nothing spent", change: func(f *EstimateFigures) { f.Runs[0].Units = 0 }, missed: "worst_error_ratio is 1, aim at most 0.1"},
		{name: "no ETA", change: func(f *EstimateFigures) { f.Runs[0].HalfETA = 0 }, missed: "eta_error_ratio_at_half is 1, aim at most 0.2"},
		{name: "refused", change: func(f *EstimateFigures) { f.Refused = 1 }, broken: "Google refused 1 calls"},
		{name: "not completed", change: func(f *EstimateFigures) { f.Runs[1].State = jobs.Failed }, broken: "the backfill of mailbox m with p is failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good()
			test.change(f)
			f.judge()
			checkJudgement(t, f, f.Targets, test.missed, test.broken)
		})
	}
	if broken := (&EstimateFigures{}).Broken(); broken != "nothing was measured" {
		t.Errorf("an empty run is broken by %q", broken)
	}
}
