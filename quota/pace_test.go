package quota_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestPaceAfterADayOfPeople lets people use all of a limit for a day: what the
// background owes for its pace stays bounded, and it goes on soon after.
func TestPaceAfterADayOfPeople(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
		now := time.UnixMicro(1_790_000_000_000_000)
		ledger.SetNow(func() time.Time { return now })
		people := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		for range 24 * 60 {
			if _, err := ledger.Take(t.Context(), people, "gmail", 6000); err != nil {
				t.Fatal(err)
			}
			now = now.Add(62 * time.Second)
		}
		backfill := people
		backfill.Lane = quota.Backfill
		_, err := ledger.Take(t.Context(), backfill, "gmail", 20)
		var denied *quota.DeniedError
		if err != nil && (!errors.As(err, &denied) || denied.RetryAfter > 62*time.Second) {
			t.Errorf("after the day: got %v, want a wait of a window at most", err)
		}
	})
}
