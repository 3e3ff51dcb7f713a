package quota_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// clocked returns n ledgers that share keys and a clock, as processes would.
func clocked(t *testing.T, rdb *redis.Client, project quota.Project, n int) (ledgers []*quota.Ledger, now *time.Time) {
	t.Helper()
	prefix, at := ownPrefix(t), time.Date(2026, 11, 29, 20, 0, 0, 300e6, time.UTC)
	for range n {
		l, err := quota.NewLedger(quota.Options{
			Redis: rdb, Projects: map[string]quota.Project{"p": project}, KeyPrefix: prefix, Fresh: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		l.SetNow(func() time.Time { return at })
		ledgers = append(ledgers, l)
	}
	return ledgers, &at
}

func caller(user string, lane quota.Lane) quota.Caller {
	return quota.Caller{Project: "p", User: user, Lane: lane}
}

// take reports how long a call of 20 units must wait, and which bound refused it.
func take(t *testing.T, l *quota.Ledger, user string, lane quota.Lane) (quota.Charge, time.Duration, quota.Bound) {
	t.Helper()
	d, err := l.Take(t.Context(), caller(user, lane), "gmail", 20)
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		return quota.Charge{}, denied.RetryAfter, denied.Bound
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.Charge, 0, ""
}

func share(t *testing.T, l *quota.Ledger, user string) float64 {
	t.Helper()
	d, err := l.Peek(t.Context(), caller(user, quota.Interactive), "gmail")
	if err != nil {
		t.Fatal(err)
	}
	return math.Round(100*d.User.Share) / 100
}

func TestRefusalClosesTheUserToAllAndLowersWhatItMayUse(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledgers, now := clocked(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 2)
		one, other := ledgers[0], ledgers[1]
		charge, _, _ := take(t, one, "ann@example.com", quota.Backfill)
		late, _, _ := take(t, one, "ann@example.com", quota.Interactive)
		answer := func(c quota.Charge, scope quota.Scope, wait time.Duration) {
			t.Helper()
			if err := one.Answered(t.Context(), c, quota.Refusal{Scope: scope, Wait: wait}); err != nil {
				t.Fatal(err)
			}
		}
		answer(charge, quota.ScopeUser, time.Minute)
		answer(late, quota.ScopeUser, time.Second) // in flight with the first: shortens and lowers nothing
		for _, lane := range quota.Lanes {
			if _, wait, bound := take(t, other, "Ann@example.com", lane); bound != quota.BoundHold || wait != time.Minute {
				t.Errorf("lane %s of another process: refused by %q for %s, want a minute's hold", lane, bound, wait)
			}
			if _, wait, _ := take(t, other, "bob@example.com", quota.Interactive); wait != 0 {
				t.Errorf("another user waits for %s", wait)
			}
		}
		if got := share(t, other, "ann@example.com"); got != 0.5 {
			t.Errorf("a refused user may use %v of its limits, want half", got)
		}

		*now = now.Add(time.Minute)
		probe, wait, _ := take(t, other, "ann@example.com", quota.Backfill)
		if wait != 0 {
			t.Fatalf("after the cool-down no call goes ahead, but waits for %s", wait)
		}
		for _, lane := range quota.Lanes {
			if _, wait, bound := take(t, one, "ann@example.com", lane); bound != quota.BoundHold || wait > 2*time.Second {
				t.Errorf("beside the probe, lane %s: refused by %q for %s, want up to 2 s", lane, bound, wait)
			}
		}
		answer(probe, quota.ScopeUser, 65*time.Second)
		if _, wait, _ := take(t, other, "ann@example.com", quota.Interactive); wait != 65*time.Second {
			t.Errorf("the probe was refused, and the next call waits for %s, want 65 s", wait)
		}
		if got := share(t, one, "ann@example.com"); got != 0.25 {
			t.Errorf("refused twice, a user may use %v of its limits, want a quarter", got)
		}

		*now = now.Add(65 * time.Second)
		if _, wait, _ := take(t, one, "ann@example.com", quota.Backfill); wait != 0 {
			t.Fatalf("after the second cool-down no call goes ahead, but waits for %s", wait)
		}
		*now = now.Add(2 * time.Second)
		for _, want := range []float64{0.25, 0.75, 1} {
			if got := share(t, one, "ann@example.com"); math.Abs(got-want) > 0.02 {
				t.Errorf("the share grew to %v, want %v", got, want)
			}
			*now = now.Add(time.Minute)
		}
		if _, wait, _ := take(t, one, "ann@example.com", quota.Backfill); wait != 0 {
			t.Errorf("all is well again, but a call waits for %s", wait)
		}
	})
}

// TestLoweredShareBinds fills what a lowered ceiling leaves.
func TestLoweredShareBinds(t *testing.T) {
	t.Parallel()
	ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
	l := ledgers[0]
	charge, _, _ := take(t, l, "ann@example.com", quota.Backfill)
	if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeBandwidth, Wait: 3 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(3 * time.Hour)
	spent := int64(0)
	var perMinute []int64
	for end := now.Add(4 * time.Minute); now.Before(end); {
		if minute := int(4 - end.Sub(*now).Minutes()); minute >= len(perMinute) {
			perMinute = append(perMinute, 0)
		}
		charge, wait, _ := take(t, l, "ann@example.com", quota.Backfill)
		*now = now.Add(wait)
		spent += charge.Units
		perMinute[len(perMinute)-1] += charge.Units
	}
	// From a half of 4,800 to all of it in a minute.
	if perMinute[0] < 2500 || perMinute[0] > 3900 || perMinute[3] < 4500 || perMinute[3] > 5000 {
		t.Errorf("spent %v units in the minutes after a cool-down, want it to grow from about 3,600 to 4,800", perMinute)
	}
}

// TestThreeHoursAreThreeHours asks again and again in a cool-down, at times after
// idle minutes, from two processes.
func TestThreeHoursAreThreeHours(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledgers, now := clocked(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 2)
		charge, _, _ := take(t, ledgers[0], "ann@example.com", quota.Backfill)
		if err := ledgers[0].Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeBandwidth, Wait: 3 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		until := now.Add(3 * time.Hour)
		pauses := []time.Duration{time.Second, 30 * time.Second, 7 * time.Minute}
		for i := 0; now.Before(until); i++ {
			lane := quota.Lanes[i%3]
			if _, wait, bound := take(t, ledgers[i%2], "ann@example.com", lane); bound != quota.BoundHold || wait != until.Sub(*now) {
				t.Fatalf("%s before the end, lane %s: refused by %q for %s", until.Sub(*now), lane, bound, wait)
			}
			if _, wait, _ := take(t, ledgers[i%2], "bob@example.com", lane); wait != 0 {
				t.Fatalf("another user waits for %s", wait)
			}
			// The last question comes a millisecond before the end.
			if next := now.Add(pauses[i%3]); next.After(until) && now.Before(until.Add(-time.Millisecond)) {
				*now = until.Add(-time.Millisecond)
			} else {
				*now = next
			}
		}
		*now = until
		ahead := 0
		for i := range 6 {
			if _, wait, _ := take(t, ledgers[i%2], "ann@example.com", quota.Lanes[i%3]); wait == 0 {
				ahead++
			}
		}
		if ahead != 1 {
			t.Errorf("%d calls go ahead at the end, want one", ahead)
		}
	})
}

func TestRefusalOfAProjectClosesAllItsUsers(t *testing.T) {
	t.Parallel()
	for _, scope := range []quota.Scope{quota.ScopeProject, quota.ScopeDay} {
		ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
		l := ledgers[0]
		charge, _, _ := take(t, l, "ann@example.com", quota.Backfill)
		if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: scope, Wait: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if _, wait, bound := take(t, l, "bob@example.com", quota.Interactive); bound != quota.BoundHold || wait != time.Hour {
			t.Errorf("scope %s: another user is refused by %q for %s, want an hour's hold", scope, bound, wait)
		}
		*now = now.Add(time.Hour)
		if _, wait, _ := take(t, l, "bob@example.com", quota.Interactive); wait != 0 {
			t.Errorf("scope %s: afterwards the first call waits for %s", scope, wait)
		}
		if _, wait, _ := take(t, l, "cid@example.com", quota.Interactive); wait == 0 {
			t.Errorf("scope %s: afterwards two calls go ahead at once", scope)
		}
	}
}

// TestACoolDownOutlivesItsCaller: whoever asked Google may be gone by the time that
// it has refused.
func TestACoolDownOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	ledgers, _ := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 2)
	charge, _, _ := take(t, ledgers[0], "ann@example.com", quota.Backfill)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := ledgers[0].Answered(gone, charge, quota.Refusal{Scope: quota.ScopeUser, Wait: time.Hour}); err != nil {
		t.Error(err)
	}
	if _, wait, bound := take(t, ledgers[1], "ann@example.com", quota.Interactive); bound != quota.BoundHold || wait != time.Hour {
		t.Errorf("refused by %q for %s, want an hour's hold", bound, wait)
	}
}

func TestAnswersThatTeachNothing(t *testing.T) {
	t.Parallel()
	ledgers, _ := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
	charge, _, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive)
	for _, scope := range []quota.Scope{quota.ScopeNone, quota.ScopeConcurrency} {
		if err := ledgers[0].Answered(t.Context(), charge, quota.Refusal{Scope: scope, Wait: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if _, wait, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive); wait != 0 {
		t.Errorf("the next call waits for %s", wait)
	}
}

// TestCoolDownOutlivesIdleMinutes looks at when Redis would forget a long hold,
// also after calls that were refused by it.
func TestCoolDownOutlivesIdleMinutes(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		l := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
		charge, _, _ := take(t, l, "ann@example.com", quota.Backfill)
		if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeBandwidth, Wait: 3 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		key := l.Keys(caller("ann@example.com", quota.Backfill), "gmail")[1]
		for range 3 {
			if _, wait, bound := take(t, l, "ann@example.com", quota.Interactive); bound != quota.BoundHold || wait < 2*time.Hour {
				t.Errorf("refused by %q for %s, want a hold of three hours", bound, wait)
			}
			if ttl := rdb.TTL(t.Context(), key).Val(); ttl < 3*time.Hour {
				t.Errorf("Redis forgets the cool-down after %s, before its end", ttl)
			}
		}
	})
}
