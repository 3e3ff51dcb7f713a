package quota_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"headroom/quota"
	"headroom/quota/price"
)

// oddUsers are spellings that would have a quota of their own.
var oddUsers = []string{
	"", " ", " zoe@example.com", "zoe@example.com ", "zoe@example.com\n", "\tzoe@example.com", "zoe @example.com", "zoe@example.com\x00",
	"zoe\x7f@example.com", "zoe\u200b@example.com", "\ufeffzoe@example.com", "zoe\u00a0@example.com", "zoe\u202e@example.com",
	"zoe\xff@example.com", "ZOË@example.com", "zo\u0065\u0308@example.com", "\u212aate@example.com", strings.Repeat("z", 321),
}

// TestOddCallersAreRefused tries every way to the ledger with users that are
// somebody else's quota in other words.
func TestOddCallersAreRefused(t *testing.T) {
	url, calls := mailServer(t)
	rdb := newClient(t, realRedis.Addr)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	ctx := t.Context()
	for _, user := range oddUsers {
		for _, lane := range quota.Lanes {
			c := quota.Caller{Project: "p", User: user, Lane: lane}
			charge := quota.Charge{Caller: c, API: "gmail", Units: 5, At: time.Now()}
			for name, do := range map[string]func() error{
				"Validate": c.Validate,
				"Take":     func() error { _, err := ledger.Take(ctx, c, "gmail", 5); return err },
				"Acquire":  func() error { _, err := ledger.Acquire(ctx, quota.Call{Caller: c, API: "gmail", Cost: 5}); return err },
				"HoldUser": func() error { _, err := ledger.HoldUser(ctx, "p", user, "gmail", time.Minute); return err },
				"Answered": func() error {
					return ledger.Answered(ctx, charge, quota.Refusal{Scope: quota.ScopeUser, Wait: time.Minute})
				},
				"InFlight": func() error { _, err := ledger.InFlight(ctx, "p", user, "gmail"); return err },
				"Notes":    func() error { _, err := ledger.Notes(ctx, "p", user, "gmail", time.Now()); return err },
				"Transport": func() error {
					_, err := service.Users.GetProfile("me").Context(quota.WithCaller(ctx, c)).Do()
					return err
				},
			} {
				if err := do(); !errors.Is(err, quota.ErrCaller) {
					t.Errorf("%s for user %.40q in lane %s: %v, want ErrCaller", name, user, lane, err)
				}
			}
		}
		live := quota.Live{Revision: 1, Changes: []quota.Change{{User: user, Lane: quota.Backfill, Key: quota.KeyCeiling, Value: 0.5}}}
		if err := ledger.CheckLive("p", "gmail", live); user != "" && !errors.Is(err, quota.ErrCaller) {
			t.Errorf("settings for user %.40q: %v, want ErrCaller", user, err)
		}
	}
	if keys, err := rdb.Keys(ctx, ledger.Prefix()+"*").Result(); err != nil || len(keys) > 0 || calls.Load() > 0 {
		t.Errorf("%d calls were sent, and Redis has %q, %v", calls.Load(), keys, err)
	}
	if _, err := ledger.Take(ctx, quota.Caller{Project: "p", User: "zoe@example.com", Lane: "urgent"}, "gmail", 5); !errors.Is(err, quota.ErrCaller) {
		t.Errorf("an unknown lane: %v", err)
	}
}

// TestSpellingsOfOneUserShareAQuota spends by one spelling and looks by others.
func TestSpellingsOfOneUserShareAQuota(t *testing.T) {
	url, _ := mailServer(t)
	ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 100, 100_000)}}, 1)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	for i, user := range []string{"zoe@example.com", "Zoe@example.com", "ZOE@EXAMPLE.COM", "zoe@example.COM"} {
		c := quota.Caller{Project: "p", User: user, Lane: quota.Interactive}
		if _, err := service.Users.Messages.Get("me", "1").Context(quota.WithCaller(t.Context(), c)).Do(); err != nil {
			t.Fatal(err)
		}
		if used := usedBy(t, ledger, c); used != int64(20*(i+1)) {
			t.Errorf("%s sees %d units, want those of all spellings, %d", user, used, 20*(i+1))
		}
	}
}

// TestOddProjectsAreRefused: a project with two names would have two quotas.
func TestOddProjectsAreRefused(t *testing.T) {
	project := quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}
	for _, names := range [][]string{{""}, {" p"}, {"p\n"}, {"p\u200b"}, {"p}q"}, {"main", "Main"}} {
		projects := map[string]quota.Project{}
		for _, name := range names {
			projects[name] = project
		}
		if _, err := quota.NewLedger(quota.Options{Redis: newClient(t, realRedis.Addr), Projects: projects}); err == nil {
			t.Errorf("projects %q: no error", names)
		}
	}
	for _, name := range []string{"example.com:mail", "my-project", "p.q_r"} {
		if _, err := quota.NewLedger(quota.Options{Redis: newClient(t, realRedis.Addr), Projects: map[string]quota.Project{name: project}}); err != nil {
			t.Errorf("project %q: %v", name, err)
		}
	}
}
