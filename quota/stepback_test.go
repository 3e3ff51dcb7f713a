package quota_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestWhatWasLearnedOutlivesAClockThatStepsBack sets the clock of Redis back by an
// hour after refusals: what they took away comes back as fast as otherwise, and
// further refusals still count.
func TestWhatWasLearnedOutlivesAClockThatStepsBack(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
		now := time.UnixMicro(1_790_000_000_000_000)
		ledger.SetNow(func() time.Time { return now })
		ann := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		take := func() quota.Charge {
			t.Helper()
			d, err := ledger.Take(t.Context(), ann, "gmail", 5)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(5 * time.Second)
			return d.Charge
		}
		// crowd refuses one of so many calls in flight, and returns how many may be from then on.
		crowd := func(n int) int64 {
			t.Helper()
			var places []quota.Permit
			for range n {
				d, err := ledger.Try(t.Context(), quota.Call{Caller: ann, API: "gmail"})
				if err != nil {
					t.Fatal(err)
				}
				places = append(places, d)
			}
			now = now.Add(time.Second)
			for i, d := range places {
				r := quota.Refusal{}
				if i == 0 {
					r.Scope = quota.ScopeConcurrency
				}
				if err := d.Release(t.Context(), outcome(0, r)); err != nil {
					t.Fatal(err)
				}
			}
			state, err := ledger.InFlight(t.Context(), "p", ann.User, "gmail")
			if err != nil {
				t.Fatal(err)
			}
			return state.Learned
		}
		if err := ledger.Answered(t.Context(), take(), quota.Refusal{Scope: quota.ScopeUser, Wait: time.Second}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
		take() // goes ahead of the others; the share grows from here on
		if got := crowd(6); got != 5 {
			t.Fatalf("%d calls learned, want 5", got)
		}
		now = now.Add(-time.Hour)
		if _, err := ledger.Peek(t.Context(), ann, "gmail"); err != nil { // sees the step
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
		for range 60 {
			take()
		}
		if peek, err := ledger.Peek(t.Context(), ann, "gmail"); err != nil || peek.User.Share > 0 && peek.User.Share < 1 {
			t.Errorf("five minutes after the step back the share is %v, %v, want all", peek.User.Share, err)
		}
		if got := crowd(4); got != 3 {
			t.Errorf("refused among 4 in flight, %d learned, want 3", got)
		}
		now = now.Add(-time.Hour)
		for _, want := range []int64{3, 4} {
			d, err := ledger.Try(t.Context(), quota.Call{Caller: ann, API: "gmail"})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Release(t.Context(), outcome(0, quota.Refusal{})); err != nil {
				t.Fatal(err)
			}
			if state, err := ledger.InFlight(t.Context(), "p", ann.User, "gmail"); err != nil || state.Learned != want {
				t.Errorf("%d calls learned, %v, want %d", state.Learned, err, want)
			}
			now = now.Add(11 * time.Minute) // it was calm for long enough to try one more
		}
	})
}
