package bench

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// A few accounts for two intervals.
func TestCalendarsRun(t *testing.T) {
	t.Parallel()
	c := calendarsRun{
		siteSettings: siteSettings{prices: "gmail-2026-05", scale: 20, redisURL: realRedis.URL(), every: 2 * time.Second},
		accounts:     4, calendars: 3, events: 5, mail: 3, backfill: 20, rounds: 1,
	}
	f, err := c.measure(t.Context(), Options{Log: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel))})
	if err != nil {
		t.Fatal(err)
	}
	f.Late = 0 // a busy machine's
	if broken := f.Broken(); broken != "" || f.Synced != 12 || f.ListCalls < 2*16 || f.BackfillDone != 20 {
		t.Errorf("%+v: %s", f, broken)
	}
}
