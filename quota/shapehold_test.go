package quota_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestCoolDownBindsEveryShape tells of cool-downs by processes whose keys have one
// shape, and asks by processes whose keys have another: one that runs beside them,
// and one that starts when they have gone.
func TestCoolDownBindsEveryShape(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		now := time.UnixMicro(1_790_000_000_000_000)
		prefix := ownPrefix(t)
		shaped := func(extra string) *quota.Ledger {
			list := gmailWith(t, 6000, 100_000)
			if extra != "" { // a window more in the user's key is another shape
				list.Limits = maps.Clone(list.Limits)
				list.Limits[extra] = price.Limit{Units: 6000, Per: "user", Period: 10 * time.Second}
			}
			ledger, err := quota.NewLedger(quota.Options{
				Redis: rdb, KeyPrefix: prefix, Fresh: true,
				Projects: map[string]quota.Project{"p": {Lists: []*price.List{list}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ledger.SetNow(func() time.Time { return now })
			return ledger
		}
		take := func(l *quota.Ledger, user string) error {
			_, err := l.Take(t.Context(), quota.Caller{Project: "p", User: user, Lane: quota.Interactive}, "gmail", 5)
			return err
		}
		closed := func(when string, l *quota.Ledger, user string, until time.Time) {
			t.Helper()
			var denied *quota.DeniedError
			if err := take(l, user); !errors.As(err, &denied) || denied.Bound != quota.BoundHold || !denied.At.Equal(until) {
				t.Errorf("%s: got %v, want a hold until %s", when, err, until)
			}
		}
		open := func(when string, l *quota.Ledger, user string) {
			t.Helper()
			if err := take(l, user); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		refuse := func(l *quota.Ledger, user string, scope quota.Scope, wait time.Duration) time.Time {
			t.Helper()
			charge := quota.Charge{Caller: quota.Caller{Project: "p", User: user, Lane: quota.Interactive}, API: "gmail", Units: 5, At: now}
			if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: scope, Wait: wait}); err != nil {
				t.Fatal(err)
			}
			return now.Add(wait)
		}

		first, second := shaped(""), shaped("user-burst")
		for range 2 { // until each has seen that there are two
			open("first shape", first, "ann@example.com")
			open("second shape", second, "ann@example.com")
			now = now.Add(time.Second)
		}
		open("first shape", first, "ann@example.com")
		open("second shape", second, "ann@example.com")
		end := refuse(first, "ann@example.com", quota.ScopeBandwidth, 3*time.Hour)
		closed("the shape that told", first, "ann@example.com", end)
		closed("the other shape's next decision", second, "ann@example.com", end)
		open("another user", second, "ben@example.com")
		if until := refuse(second, "ann@example.com", quota.ScopeUser, time.Minute); !until.Before(end) {
			t.Fatal("the later answer is to name the earlier moment")
		}
		closed("after an answer that names an earlier moment", first, "ann@example.com", end)
		closed("after it, in the shape that was told", second, "ann@example.com", end)

		now = now.Add(time.Hour) // the first shape has gone, and a third is there
		closed("the other shape, an hour later", second, "ann@example.com", end)
		third := shaped("user-spike")
		closed("a shape that came later", third, "ann@example.com", end)
		now = end.Add(-time.Microsecond)
		closed("a microsecond before the end", third, "ann@example.com", end)
		now = end
		open("at the end", third, "ann@example.com")
		peek, err := third.Peek(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail")
		if err != nil || peek.User.Share < 0.45 || peek.User.Share > 0.55 {
			t.Errorf("the refused share in a shape that came later: %v, %v, want a half", peek.User.Share, err)
		}

		now = now.Add(time.Hour)
		end = refuse(second, "ann@example.com", quota.ScopeProject, time.Minute)
		now = now.Add(time.Second)
		closed("another user under the project's cool-down", third, "ben@example.com", end)
	})
}
