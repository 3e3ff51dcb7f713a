package quota_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// A unit leaves the window a guard later than Google forgets it, at the end of
// the bucket that it was charged in; without the guard, within a quarter second.
func TestHowLongAUnitCounts(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*quota.Options)
		holds  time.Duration
	}{
		{"with the guard", func(*quota.Options) {}, 61*time.Second + 900*time.Millisecond},
		{"without", quota.WithoutGuard, 60*time.Second + 150*time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
				o := quota.Options{
					Redis: rdb, KeyPrefix: t.Name() + ":", Fresh: true,
					Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 100, 1000)}}},
				}
				test.change(&o)
				ledger, err := quota.NewLedger(o)
				if err != nil {
					t.Fatal(err)
				}
				now := time.Unix(1_790_000_000, 100_000_000) // a tenth into a bucket of either width
				quota.Simulate(ledger, func() time.Time { return now })
				ctx, caller := context.Background(), quota.Caller{Project: "p", User: "u", Lane: quota.Interactive}
				if _, err := ledger.Take(ctx, caller, "gmail", 100); err != nil {
					t.Fatal(err)
				}
				_, err = ledger.Take(ctx, caller, "gmail", 1)
				denied, ok := errors.AsType[*quota.DeniedError](err)
				if !ok || denied.RetryAfter != test.holds {
					t.Fatalf("the next unit: %v, want a refusal for %s", err, test.holds)
				}
				now = now.Add(denied.RetryAfter)
				if _, err := ledger.Take(ctx, caller, "gmail", 1); err != nil {
					t.Errorf("at the moment that the refusal named: %v", err)
				}
			})
		})
	}
}

// The pace is the same whatever the buckets are.
func TestPaceWithoutGuard(t *testing.T) {
	o := quota.Options{
		Redis: newClient(t, realRedis.Addr), KeyPrefix: t.Name() + ":", Fresh: true,
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 100_000)}}},
	}
	quota.WithoutGuard(&o)
	ledger, err := quota.NewLedger(o)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_790_000_000, 0)
	now := start
	quota.Simulate(ledger, func() time.Time { return now })
	caller, granted := quota.Caller{Project: "p", User: "u", Lane: quota.Backfill}, 0
	for now.Before(start.Add(20 * time.Second)) {
		_, err := ledger.Take(t.Context(), caller, "gmail", 20)
		if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
			now = now.Add(denied.RetryAfter)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		granted += 20
	}
	// 1.05 of 4,800 units a minute for 20 s, and what 1.25 s may make up for.
	if want := 1680; granted < want || granted > want+125 {
		t.Errorf("granted %d units in 20 s, want %d to %d", granted, want, want+125)
	}
}
