package quota_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// TestTwoShapesSideBySide runs processes with an old and a new layout of keys on
// one project, as while a new version is rolled out: neither sees the other's
// windows, and together they stay within the limit.
func TestTwoShapesSideBySide(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		now, step := int64(1_790_000_000_000_000), int64(100_000)
		if strings.HasSuffix(t.Name(), "embedded") { // which is slow
			step = 600_000
		}
		clock := func() time.Time { return time.UnixMicro(now) }
		shaped := func(burst bool) *quota.Ledger {
			list := gmailWith(t, 6000, 8000)
			if burst { // a window more in the user's key is another shape
				limits := maps.Clone(list.Limits)
				limits["user-burst"] = price.Limit{Units: 6000, Per: "user", Period: 10 * time.Second}
				list.Limits = limits
			}
			project := quota.Project{Lists: []*price.List{list}}
			ledger, err := quota.NewLedger(quota.Options{Redis: rdb, KeyPrefix: t.Name(), Projects: map[string]quota.Project{"p": project}})
			if err != nil {
				t.Fatal(err)
			}
			ledger.SetNow(clock)
			return ledger
		}
		type grant struct{ at, units int64 }
		var all []grant
		spendFor := func(seconds int64, ledgers ...*quota.Ledger) (units [2]int64) {
			for end := now + seconds*1e6; now < end; now += step {
				for i, l := range ledgers {
					for _, lane := range quota.Lanes {
						d, err := l.Take(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: lane}, "gmail", 20)
						var denied *quota.DeniedError
						if err != nil && !errors.As(err, &denied) {
							t.Fatal(err)
						}
						if err == nil {
							all = append(all, grant{now, d.Charge.Units})
							units[i] += d.Charge.Units
						}
					}
				}
			}
			return units
		}
		oldShape, newShape := shaped(false), shaped(true)
		spendFor(130, oldShape)
		both := spendFor(190, oldShape, newShape)
		after := spendFor(130, newShape)
		for i := range all {
			var sum int64
			for j := i; j >= 0 && all[j].at > all[i].at-60e6; j-- {
				sum += all[j].units
			}
			if sum > 6000 {
				t.Fatalf("%d units in 60 s, limit 6000", sum)
			}
		}
		if both[0] == 0 || both[1] == 0 {
			t.Errorf("side by side they spent %v units: one of them starved", both)
		}
		if after[0] < 5000 {
			t.Errorf("alone, the new shape spent %d units in 130 s", after[0])
		}
	})
}

func TestUsersDifferInAllButTheCaseOfASCII(t *testing.T) {
	ledger := newLedger(t, newClient(t, "127.0.0.1:1"), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 8000)}}, 1)
	keys := func(user string) string {
		return strings.Join(ledger.Keys(quota.Caller{Project: "p", User: user, Lane: quota.Sync}, "gmail"), " ")
	}
	if keys("Kim@Example.COM") != keys("kim@example.com") {
		t.Error("one user has two windows: Google does not tell capitals apart")
	}
	if keys("\u212Aim@example.com") == keys("kim@example.com") {
		t.Error("two users share a window: the Kelvin sign is no k")
	}
}

// TestDayBudget spends a day's budget: background lanes wait for midnight Pacific
// Time, people only if the budget is hard.
func TestDayBudget(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		pacific, err := time.LoadLocation("America/Los_Angeles")
		if err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			start time.Time
			hard  bool
		}{
			"an ordinary day":      {start: time.Date(2026, 11, 29, 22, 0, 0, 0, pacific)},
			"a day of 23 hours":    {start: time.Date(2026, 3, 8, 1, 0, 0, 0, pacific)},
			"a day of 25 hours":    {start: time.Date(2026, 11, 1, 0, 30, 0, 0, pacific)},
			"people are bound too": {start: time.Date(2026, 11, 29, 12, 0, 0, 0, pacific), hard: true},
		} {
			t.Run(name, func(t *testing.T) {
				now := test.start
				ledger, err := quota.NewLedger(quota.Options{Redis: rdb, KeyPrefix: t.Name(), Fresh: true, Projects: map[string]quota.Project{"p": {
					Lists:   []*price.List{gmailWith(t, 6000, 100_000)},
					Budgets: []price.Budget{{API: "gmail", Units: 100, Hard: test.hard}},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				ledger.SetNow(func() time.Time { return now })
				take := func(lane quota.Lane, cost int64) error {
					_, err := ledger.Take(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: lane}, "gmail", cost)
					return err
				}
				for range 5 {
					if err := take(quota.Backfill, 20); err != nil {
						t.Fatal(err)
					}
					now = now.Add(time.Second)
				}
				var denied *quota.DeniedError
				midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, pacific)
				if err := take(quota.Backfill, 20); !errors.As(err, &denied) || denied.Limit != price.ProjectDay || !denied.At.Equal(midnight) || denied.Used != 100 {
					t.Errorf("past the budget: got %+v, %v, want to wait until %s", denied, err, midnight)
				}
				err = take(quota.Interactive, 20)
				if test.hard != errors.As(err, &denied) || !test.hard && err != nil {
					t.Errorf("people, hard %t: got %v", test.hard, err)
				}
				now = midnight.Add(-time.Microsecond)
				if err := take(quota.Backfill, 20); !errors.As(err, &denied) || denied.RetryAfter != time.Microsecond {
					t.Errorf("a microsecond before midnight: got %v", err)
				}
				now = midnight
				if err := take(quota.Backfill, 20); err != nil {
					t.Errorf("at midnight: %v", err)
				}
				peek, err := ledger.Peek(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill}, "gmail")
				if day := peek.Usage[len(peek.Usage)-1]; err != nil || day.Limit != price.ProjectDay || day.Used != 20 {
					t.Errorf("in the new day: %+v, %v, want 20 units used", day, err)
				}
				now = midnight.Add(-time.Hour) // the clock steps back into a day that is over
				for range 4 {
					if err := take(quota.Backfill, 20); err != nil {
						t.Errorf("in the new day's budget: %v", err)
					}
					now = now.Add(time.Second)
				}
				if err := take(quota.Backfill, 20); !errors.As(err, &denied) || denied.Limit != price.ProjectDay {
					t.Errorf("a clock that steps back freed units: got %v", err)
				}
			})
		}
	})
}

// TestHoldKeepsItsLength closes a user's limits for three hours. Refused calls,
// idle minutes and shorter holds change nothing, and no other user is slowed.
func TestHoldKeepsItsLength(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
		now := time.UnixMicro(1_790_000_000_000_000)
		ledger.SetNow(func() time.Time { return now })
		ann := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		ben := quota.Caller{Project: "p", User: "ben@example.com", Lane: quota.Interactive}
		end := now.Add(3 * time.Hour)
		if till, err := ledger.HoldUser(t.Context(), "p", ann.User, "gmail", 3*time.Hour); err != nil || !till.Equal(end) {
			t.Fatalf("HoldUser = %s, %v, want %s", till, err, end)
		}
		if till, err := ledger.HoldUser(t.Context(), "p", ann.User, "gmail", time.Minute); err != nil || !till.Equal(end) {
			t.Errorf("a shorter hold: %s, %v, want the longer one to stay", till, err)
		}
		refused := func() {
			t.Helper()
			_, err := ledger.Take(t.Context(), ann, "gmail", 5)
			var denied *quota.DeniedError
			if !errors.As(err, &denied) || denied.Bound != quota.BoundHold || !denied.At.Equal(end) {
				t.Errorf("at %s: got %v, want a hold until %s", now, err, end)
			}
			if _, err := ledger.Take(t.Context(), ben, "gmail", 5); err != nil {
				t.Errorf("another user at %s: %v", now, err)
			}
		}
		refused()
		for range 20 {
			now = now.Add(7 * time.Minute)
			refused()
		}
		ttl, err := rdb.TTL(t.Context(), ledger.Keys(ann, "gmail")[1]).Result()
		if err != nil || ttl < 3*time.Hour {
			t.Errorf("the held key lives for %s (%v), want longer than the hold", ttl, err)
		}
		now = end.Add(-time.Microsecond)
		refused()
		now = end
		if _, err := ledger.Take(t.Context(), ann, "gmail", 5); err != nil {
			t.Errorf("at the end of the hold: %v", err)
		}
		if _, err := ledger.HoldProject(t.Context(), "p", "gmail", time.Minute); err != nil {
			t.Fatal(err)
		}
		var denied *quota.DeniedError
		if _, err := ledger.Take(t.Context(), ben, "gmail", 5); !errors.As(err, &denied) || denied.Bound != quota.BoundHold {
			t.Errorf("under a hold of the project: got %v", err)
		}
		now = now.Add(time.Minute)
		// A clock that steps far back leaves the rest of a hold as long as it is, but
		// for the time between the key's last charge and the hold.
		if _, err := ledger.HoldUser(t.Context(), "p", ben.User, "gmail", 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Take(t.Context(), ben, "gmail", 5); err == nil {
			t.Error("taken under a hold")
		}
		now = now.Add(-24 * time.Hour)
		if _, err := ledger.Take(t.Context(), ben, "gmail", 5); !errors.As(err, &denied) || denied.RetryAfter > 11*time.Minute+2*time.Second {
			t.Errorf("after a step back of the clock: got %v, want at most eleven minutes", err)
		}
	})
}

// TestRedis62 keeps the scripts to commands of Redis 6.2, which the oldest
// supported server has.
func TestRedis62(t *testing.T) {
	known := map[string]bool{}
	for _, command := range strings.Fields(`TIME INFO GET GETRANGE SET SETRANGE STRLEN PEXPIRE
		ZADD ZREM ZCARD ZCOUNT ZSCORE ZREMRANGEBYSCORE HGETALL HMGET HSET HDEL HINCRBY`) {
		known[command] = true
	}
	files, err := filepath.Glob("*.lua")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`\b(?:call|pcall)\(\s*'([A-Z]+)'`)
	every := regexp.MustCompile(`\b(?:redis\.)?p?call\(`)
	seen := map[string]bool{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := calls.FindAllStringSubmatch(string(source), -1)
		if all := every.FindAllString(string(source), -1); len(all) != len(found) {
			t.Errorf("%s makes %d calls, of which %d name their command", name, len(all), len(found))
		}
		for _, m := range found {
			seen[m[1]] = true
			if !known[m[1]] {
				t.Errorf("%s calls %s: add it here once it is known to be in Redis 6.2", name, m[1])
			}
		}
	}
	for command := range known {
		if !seen[command] {
			t.Errorf("no script calls %s any more", command)
		}
	}
}
