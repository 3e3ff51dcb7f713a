package quota_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestBurstWindow adds a window of ten seconds to a price list.
func TestBurstWindow(t *testing.T) {
	list, err := price.Parse([]byte(`
name: bursts
api: gmail
date: 2026-11-29
sources:
  docs: {url: "an operator's experience", date: 2026-11-29}
limits:
  user-minute: {units: 4000, per: user, period: 60s, verified: true}
  user-burst: {units: 1000, per: user, period: 10s, verified: false}
  project-minute: {units: 100000, per: project, period: 60s, verified: true}
costs:
  gmail.users.messages.get: {units: 20, verified: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{list}}, 1)
		now := time.UnixMicro(1_790_000_000_300_000)
		ledger.SetNow(func() time.Time { return now })
		take := func(cost int64) error {
			_, err := ledger.Take(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail", cost)
			return err
		}
		if err := take(1000); err != nil {
			t.Fatal(err)
		}
		var denied *quota.DeniedError
		// Ten seconds, the guard, and the rest of the bucket.
		if err := take(20); !errors.As(err, &denied) || denied.Limit != "user-burst" || denied.RetryAfter != 11_700*time.Millisecond {
			t.Errorf("after a burst: got %v", err)
		}
		for range 3 {
			now = now.Add(12 * time.Second)
			if err := take(1000); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(12 * time.Second)
		if err := take(1000); !errors.As(err, &denied) || denied.Limit != price.UserMinute {
			t.Errorf("after a minute of bursts: got %v, want the minute to bind", err)
		}
	})
}

// TestManyWindows keeps more windows in a key than the common call reads at once.
func TestManyWindows(t *testing.T) {
	list := gmailWith(t, 6000, 100_000)
	list.Limits = maps.Clone(list.Limits)
	for i, name := range []string{"user-a", "user-b", "user-c", "user-d"} {
		list.Limits[name] = price.Limit{Units: int64(100 * (i + 1)), Per: "user", Period: time.Duration(i+1) * 10 * time.Second}
	}
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{list}}, 1)
		now := time.UnixMicro(1_790_000_000_000_000)
		ledger.SetNow(func() time.Time { return now })
		for second := range 60 {
			d, err := ledger.Take(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail", 5)
			if err != nil {
				t.Fatalf("second %d: %v", second, err)
			}
			for _, u := range d.Usage {
				want := int64(5 * (second + 1))
				if n := int64(strings.Index("abcd", u.Limit[len("user-"):]) + 1); n > 0 {
					want = min(want, 5*(10*n+2)) // its seconds, the guard, and the bucket that is open
				}
				if u.Used != want {
					t.Fatalf("second %d: %s has used %d, want %d", second, u.Limit, u.Used, want)
				}
			}
			now = now.Add(time.Second)
		}
	})
}
