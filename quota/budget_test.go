package quota_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/quota"
	"headroom/quota/price"
)

// dayRig is a ledger with a budget, on a clock that the test moves.
type dayRig struct {
	*quota.Ledger
	t    *testing.T
	now  time.Time
	reg  *prometheus.Registry
	logs *observer.ObservedLogs
}

// newDayRig starts at midnight of an ordinary day of Google's.
func newDayRig(t *testing.T, rdb *redis.Client, b price.Budget) *dayRig {
	t.Helper()
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	r := &dayRig{t: t, now: time.Date(2026, 11, 29, 0, 0, 0, 0, pacific), reg: prometheus.NewRegistry(), logs: logs}
	b.API = "gmail"
	r.Ledger, err = quota.NewLedger(quota.Options{
		Redis: rdb, KeyPrefix: ownPrefix(t), Fresh: true, Log: zap.New(core), Registerer: r.reg,
		Projects: map[string]quota.Project{"p": {
			Lists: []*price.List{gmailWith(t, 6000, 100_000)}, Budgets: []price.Budget{b},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.SetNow(func() time.Time { return r.now })
	return r
}

func (r *dayRig) take(lane quota.Lane, cost int64) error {
	_, err := r.Take(r.t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: lane}, "gmail", cost)
	return err
}

// spend takes units one call after the other until one is refused, and returns
// how many it got and the refusal.
func (r *dayRig) spend(lane quota.Lane, cost int64, calls int) (units int64, denied *quota.DeniedError) {
	r.t.Helper()
	for range calls {
		err := r.take(lane, cost)
		if errors.As(err, &denied) {
			return units, denied
		}
		if err != nil {
			r.t.Fatal(err)
		}
		units += cost
		r.now = r.now.Add(time.Second)
	}
	return units, nil
}

// TestBudgetIsPacedOverTheDay lets a backfill that always wants more have a
// quarter of the budget at midnight, and the rest evenly. Sync and people are
// not paced.
func TestBudgetIsPacedOverTheDay(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		r := newDayRig(t, rdb, price.Budget{Units: 8640, Ahead: 0.25})
		midnight := r.now
		got, denied := r.spend(quota.Backfill, 20, 200)
		if got < 2160-20 || got > 2160+20 {
			t.Errorf("%d units at midnight, want a quarter of 8,640", got)
		}
		if denied == nil || denied.Limit != price.ProjectDay || denied.Bound != quota.BoundPace || denied.RetryAfter > 10*time.Minute {
			t.Fatalf("refused with %+v, want the day's pace to ask for minutes", denied)
		}
		r.now = r.now.Add(denied.RetryAfter)
		if err := r.take(quota.Backfill, 20); err != nil {
			t.Errorf("at the moment that was named: %v", err)
		}
		r.now = r.now.Add(time.Second) // for the user's own pace
		if err := r.take(quota.Sync, 20); err != nil {
			t.Errorf("live sync is not paced: %v", err)
		}
		if err := r.take(quota.Interactive, 20); err != nil {
			t.Errorf("people are not bound: %v", err)
		}
		r.now = midnight.Add(12 * time.Hour)
		more, _ := r.spend(quota.Backfill, 20, 400)
		if total := got + 60 + more; total < 5400-20 || total > 5400+20 {
			t.Errorf("%d units by noon, want five eighths of 8,640", total)
		}
		// A call that costs more than the pace allows yet waits; it is not hopeless.
		if err := r.take(quota.Backfill, 3000); !errors.As(err, &denied) || denied.Bound != quota.BoundPace || denied.RetryAfter > 12*time.Hour {
			t.Errorf("a dear call at noon: %v", err)
		}
		r.now = midnight.Add(24*time.Hour - time.Minute)
		r.spend(quota.Backfill, 60, 60)
		if err := r.take(quota.Backfill, 100); !errors.As(err, &denied) || denied.Limit != price.ProjectDay || denied.Bound != quota.BoundCeiling {
			t.Errorf("past the budget: refused with %+v, want the day to be over first", denied)
		}
	})
}

func TestBudgetsEnd(t *testing.T) {
	for _, tt := range []struct {
		end    price.AtEnd
		pauses bool
		told   int
	}{
		{price.AtEndPause, true, 0},
		{price.AtEndAlert, false, 1},
		{price.AtEndGoOn, false, 0},
	} {
		t.Run(string(tt.end), func(t *testing.T) {
			r := newDayRig(t, newClient(t, realRedis.Addr), price.Budget{Units: 100, AtEnd: tt.end, Ahead: 0.5})
			r.now = r.now.Add(23*time.Hour + 50*time.Minute)
			got, denied := r.spend(quota.Backfill, 20, 10)
			if tt.pauses != (denied != nil) {
				t.Errorf("refused with %+v after %d units", denied, got)
			}
			want := 100.0
			if tt.pauses {
				want = 0
			}
			if over, err := testutil.GatherAndCount(r.reg, "headroom_quota_over_budget_units_total"); err != nil || (want > 0) != (over > 0) {
				t.Errorf("%d counters of units over budget, %v", over, err)
			}
			if n := r.logs.FilterMessageSnippet("the budget of the day is spent").Len(); n != tt.told {
				t.Errorf("told %d times, want %d", n, tt.told)
			}
			d, err := r.Peek(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail")
			if day := d.Usage[len(d.Usage)-1]; err != nil || day.Limit != price.ProjectDay || day.Units != 100 || day.Used != got {
				t.Errorf("the day is shown as %+v, %v", day, err)
			}
		})
	}
}

func TestWrongBudgets(t *testing.T) {
	for name, b := range map[string]price.Budget{
		"no units":            {API: "gmail"},
		"an unknown end":      {API: "gmail", Units: 1, AtEnd: "explode"},
		"hard without an end": {API: "gmail", Units: 1, AtEnd: price.AtEndAlert, Hard: true},
		"ahead of itself":     {API: "gmail", Units: 1, Ahead: 1.5},
	} {
		_, err := quota.NewLedger(quota.Options{Redis: newClient(t, realRedis.Addr), Projects: map[string]quota.Project{
			"p": {Lists: []*price.List{gmailWith(t, 6000, 100_000)}, Budgets: []price.Budget{b}},
		}})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
