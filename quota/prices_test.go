package quota_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
)

func TestCosts(t *testing.T) {
	tests := []struct {
		list, method, format string
		want                 int64
		known                bool
	}{
		{"gmail-legacy", "gmail.users.messages.get", "raw", 5, true},
		{"gmail-legacy", "gmail.users.threads.get", "", 10, true},
		{"gmail-2026-05", "gmail.users.messages.get", "raw", 20, true},
		{"gmail-2026-05", "gmail.users.messages.get", "", 20, true},
		{"gmail-2026-05", "gmail.users.messages.list", "", 5, true},
		{"gmail-2026-05", "gmail.users.threads.get", "full", 40, true},
		{"gmail-2026-10", "gmail.users.messages.get", "", 60, true}, // full is the default format
		{"gmail-2026-10", "gmail.users.messages.get", "RAW", 60, true},
		{"gmail-2026-10", "gmail.users.messages.get", "metadata", 20, true},
		{"gmail-2026-10", "gmail.users.drafts.get", "minimal", 20, true},
		{"gmail-2026-05", "gmail.users.novelty", "", 100, false}, // as much as the dearest
		{"gmail-2026-10", "", "", 120, false},
		{"calendar-2026-05", "calendar.events.list", "", 1, true},
	}
	for _, test := range tests {
		list, err := quota.LoadList(test.list)
		if err != nil {
			t.Fatal(err)
		}
		if got, known := list.Cost(test.method, test.format); got != test.want || known != test.known {
			t.Errorf("%s: %s %s costs %d (known %t), want %d (%t)", test.list, test.method, test.format, got, known, test.want, test.known)
		}
	}
}

// TestListsAreComplete prices every method of the discovery documents.
func TestListsAreComplete(t *testing.T) {
	gmail, calendar := discovery(t, "gmail/v1/gmail-api.json"), discovery(t, "calendar/v3/calendar-api.json")
	for _, name := range quota.ListNames() {
		list, err := quota.LoadList(name)
		if err != nil {
			t.Fatal(err)
		}
		methods := gmail
		if list.API == "calendar" {
			methods = calendar
		}
		for id := range methods {
			if _, known := list.Cost(id, ""); !known {
				t.Errorf("%s has no price for %s", name, id)
			}
		}
		if len(list.Costs) != len(methods) {
			t.Errorf("%s prices %d methods, the API has %d", name, len(list.Costs), len(methods))
		}
	}
}

func TestParseListReportsEverything(t *testing.T) {
	_, err := quota.ParseList([]byte(`
name: mine
api: mail
date: yesterday
limits:
  user-minute: {units: 0, per: user, period: 60s, verified: true}
costs:
  gmail.users.stop: {units: 5, source: hearsay, verified: true}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"api", "date", "limits.user-minute.units", "limits.project-minute: missing", `source "hearsay"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q:\n%v", want, err)
		}
	}
	if _, err := quota.ParseList([]byte("name: x\ncolour: red\n")); err == nil || !strings.Contains(err.Error(), "colour") {
		t.Errorf("an unknown key: got %v", err)
	}
	if _, err := quota.LoadList("gmail-1999"); err == nil || !strings.Contains(err.Error(), "gmail-2026-05") {
		t.Errorf("an unknown list: got %v, want the names of those there are", err)
	}
}

func TestWithLimit(t *testing.T) {
	list, err := quota.LoadList("gmail-2026-05")
	if err != nil {
		t.Fatal(err)
	}
	small, err := list.WithLimit(quota.LimitUserMinute, 375)
	if err != nil {
		t.Fatal(err)
	}
	if got, old := small.Limits[quota.LimitUserMinute].Units, list.Limits[quota.LimitUserMinute].Units; got != 375 || old != 6000 {
		t.Errorf("limits are %d and %d, want 375 in the copy and 6000 in the original", got, old)
	}
	for _, units := range []int64{0, -1, 1 << 31} {
		if _, err := list.WithLimit(quota.LimitUserMinute, units); err == nil {
			t.Errorf("a limit of %d units was accepted", units)
		}
	}
	if _, err := list.WithLimit("user-hour", 5); err == nil {
		t.Error("an unknown limit was accepted")
	}
}

// TestBurstWindow adds a window of ten seconds to a price list.
func TestBurstWindow(t *testing.T) {
	list, err := quota.ParseList([]byte(`
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
		ledger := newLedger(t, rdb, quota.Project{Lists: []*quota.PriceList{list}}, 1)
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
		if err := take(1000); !errors.As(err, &denied) || denied.Limit != quota.LimitUserMinute {
			t.Errorf("after a minute of bursts: got %v, want the minute to bind", err)
		}
	})
}

// TestManyWindows keeps more windows in a key than the common call reads at once.
func TestManyWindows(t *testing.T) {
	list := gmailWith(t, 6000, 100_000)
	list.Limits = maps.Clone(list.Limits)
	for i, name := range []string{"user-a", "user-b", "user-c", "user-d"} {
		list.Limits[name] = quota.Limit{Units: int64(100 * (i + 1)), Per: "user", Period: time.Duration(i+1) * 10 * time.Second}
	}
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*quota.PriceList{list}}, 1)
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
