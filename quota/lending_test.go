package quota_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestLendingFollowsDemand watches the ceiling of lane backfill in mode adaptive.
func TestLendingFollowsDemand(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledgers, now := clocked(t, rdb, quota.Project{
			Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}, Mode: quota.ModeAdaptive,
		}, 2)
		ceiling := func(lane quota.Lane) int64 {
			t.Helper()
			d, err := ledgers[1].Peek(t.Context(), caller("ann@example.com", lane), "gmail")
			if err != nil {
				t.Fatal(err)
			}
			return d.Usage[1].Ceiling
		}
		spend := func(units int64) {
			t.Helper()
			if _, err := ledgers[0].Take(t.Context(), caller("ann@example.com", quota.Interactive), "gmail", units); err != nil {
				t.Fatal(err)
			}
		}
		if got := ceiling(quota.Backfill); got != 5400 {
			t.Errorf("nobody asks for anything, and the ceiling is %d, want the most of 5400", got)
		}
		spend(100)
		if got := ceiling(quota.Backfill); got != 5400 {
			t.Errorf("people asked for little, and the ceiling is %d, want 5400", got)
		}
		spend(900)
		if got := ceiling(quota.Backfill); got != 4500 {
			t.Errorf("people asked for 1,000 units, and the ceiling is %d at once, want 6000-1500", got)
		}
		if got, whole := ceiling(quota.Sync), 5700.0; float64(got) > whole*4500/5400 || float64(got) < whole*4500/5400-1 {
			t.Errorf("lane sync's ceiling is %d, want it to shrink in proportion", got)
		}
		if got := ceiling(quota.Interactive); got != 6000 {
			t.Errorf("people's own ceiling is %d, want all", got)
		}
		spend(2000)
		if got := ceiling(quota.Backfill); got != 3000 {
			t.Errorf("people asked for very much, and the ceiling is %d, want the floor of 3000", got)
		}
		last := int64(3000)
		for range 15 {
			*now = now.Add(time.Minute)
			got := ceiling(quota.Backfill)
			if got < last {
				t.Errorf("nobody asks, and the ceiling falls from %d to %d", last, got)
			}
			last = got
		}
		if last < 5000 {
			t.Errorf("after a quarter of an hour without a call the ceiling is %d, want more than 5000", last)
		}
	})
}
