package bench

import (
	"testing"

	"go.uber.org/zap"

	"headroom/internal/lab/traffic"
)

// Small backfills beside interactive calls: a whole process, and the fake's own account.
func TestCrawl(t *testing.T) {
	f := &BackfillFigures{DeniedBy: map[string]int64{}}
	progress := 0.0
	c := crawl{
		siteSettings: siteSettings{prices: "gmail-2026-05", meter: "sliding", scale: 20, limit: 3000, redisURL: realRedis.URL()},
		mailboxes:    2, messages: 150, figures: f, progress: func(done float64) { progress = done },
	}
	if err := c.measure(t.Context(), Options{Log: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	f.judge()
	if broken := f.Broken(); broken != "" || f.Stored != 300 || progress != 1 {
		t.Errorf("broken %q, %d messages stored, progress %v, denied by %v", broken, f.Stored, progress, f.DeniedBy)
	}
	for _, r := range f.Crawls {
		// A get of 20 units each, a page of ids, the profile, and little else.
		if r.Units < 3006 || r.Units > 3020 || r.Interactive <= 0 || r.Interactive%traffic.ReadCost != 0 {
			t.Errorf("%s: %d units beside %d of interactive calls", r.Account, r.Units, r.Interactive)
		}
		// 3,006 units at 2,400 a minute, twenty times faster: 3.76 s, and interactive calls.
		if r.Bound < 3.75 || r.Seconds < 0.9*r.Bound {
			t.Errorf("%s took %v s of %v s at least", r.Account, r.Seconds, r.Bound)
		}
	}
}

func TestBackfillJudgement(t *testing.T) {
	good := func() *BackfillFigures {
		return &BackfillFigures{Messages: 20, Calls: 5, Crawls: []CrawlReport{{Stored: 10, Ratio: 1.02}, {Stored: 10, Ratio: 1.04}}}
	}
	for _, test := range []struct {
		name           string
		change         func(*BackfillFigures)
		missed, broken string
	}{
		{name: "all is well", change: func(*BackfillFigures) {}},
		{name: "slow", change: func(f *BackfillFigures) { f.Crawls[0].Ratio = 1.2 }, missed: "ratio is 1.2, aim at most 1.1"},
		{name: "refused", change: func(f *BackfillFigures) { f.Refused = 1 }, broken: "Google refused 1 calls"},
		{name: "denied", change: func(f *BackfillFigures) { f.Denied = 2 }, broken: "2 interactive calls were denied"},
		{name: "fetched twice", change: func(f *BackfillFigures) { f.Refetch = 0.01 }, broken: "0.01 of the messages were fetched again"},
		{name: "no interactive calls", change: func(f *BackfillFigures) { f.Calls = 0 }, broken: "no interactive calls were made"},
		{name: "a message missing", change: func(f *BackfillFigures) { f.Crawls[1].Stored = 9 }, broken: "19 of 20 messages were stored"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good()
			test.change(f)
			f.judge()
			checkJudgement(t, f, f.Targets, test.missed, test.broken)
		})
	}
	if broken := (&BackfillFigures{}).Broken(); broken != "nothing was measured" {
		t.Errorf("an empty run is broken by %q", broken)
	}
}
