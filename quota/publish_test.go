package quota_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

func TestPublishedSettingsHoldWithTheNextDecision(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		project := quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}
		ledgers, _ := clocked(t, rdb, project, 3)
		// One process has another price list, and with it keys of another shape.
		fourth := project
		fourth.Lists = []*price.List{withBurst(t)}
		more, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: map[string]quota.Project{"p": fourth}, KeyPrefix: ledgers[0].Prefix(), Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		ledgers = append(ledgers, more)
		for _, l := range ledgers {
			take(t, l, "ann@example.com", quota.Interactive)
		}
		publish := func(l *quota.Ledger, live quota.Live) quota.Live {
			t.Helper()
			got, err := l.Publish(t.Context(), "p", "gmail", live)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		// Nothing else than decisions: nobody polls.
		ceilings := func(user string) string {
			t.Helper()
			var all []string
			for _, l := range ledgers {
				_, err := l.Take(t.Context(), caller(user, quota.Backfill), "gmail", 5500)
				if !errors.Is(err, quota.ErrNeverFits) {
					t.Fatalf("5,500 units: %v", err)
				}
				_, after, _ := strings.Cut(err.Error(), "up to ")
				all = append(all, strings.TrimSuffix(after, " only"))
			}
			return strings.Join(all, " ")
		}
		live := quota.Live{Revision: 1}.With(quota.Change{Lane: quota.Backfill, Key: quota.KeyCeiling, Value: 0.5}).
			With(quota.Change{Lane: quota.Backfill, User: "Bob@example.com", Key: quota.KeyCeiling, Value: 0.25})
		publish(ledgers[2], live)
		if got := ceilings("ann@example.com"); got != "3000 3000 3000 3000" {
			t.Errorf("ceilings are %s, want 3000 in all processes", got)
		}
		if got := ceilings("bob@example.com"); got != "1500 1500 1500 1500" {
			t.Errorf("ceilings of the account are %s, want 1500 in all processes", got)
		}
		older := quota.Live{Revision: 1, Mode: quota.ModeGuaranteed}
		if got := publish(ledgers[0], older); !cmp.Equal(got, live) {
			t.Errorf("settings of the same revision replaced those that hold: %+v", got)
		}
		publish(ledgers[1], quota.Live{Revision: 2, Mode: quota.ModeAdaptive})
		if got := ceilings("bob@example.com"); got != "5400 5400 5400 5400" {
			t.Errorf("ceilings are %s, want 5400 in all processes", got)
		}
		fresh := clockedWith(t, rdb, project, ledgers[0].Prefix())
		if got, err := fresh.Live(t.Context(), "p", "gmail"); err != nil || got.Mode != quota.ModeAdaptive {
			t.Errorf("a new process finds settings %+v, %v", got, err)
		}

		// Redis loses everything: who knows the settings brings them back.
		for _, key := range rdb.Keys(t.Context(), ledgers[0].Prefix()+"*").Val() {
			rdb.Del(t.Context(), key)
		}
		take(t, ledgers[0], "ann@example.com", quota.Interactive)
		if got, err := fresh.Live(t.Context(), "p", "gmail"); err != nil || got.Revision != 2 {
			t.Errorf("after a loss of Redis' data its settings are %+v, %v, want revision 2", got, err)
		}
	})
}

func TestBadSettingsAreNotPublished(t *testing.T) {
	t.Parallel()
	l := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
	for _, c := range []quota.Change{
		{Lane: "batch", Key: quota.KeyCeiling, Value: 0.5},
		{Lane: quota.Sync, Key: quota.KeyCeiling, Value: 1.5},
		{Lane: quota.Sync, Key: quota.KeyFloor, Value: 0.5},
		{Lane: quota.Sync, Key: "speed", Value: 1},
		{Lane: quota.Interactive, Key: quota.KeyPace, Value: 1},
		{Lane: quota.Backfill, Limit: "user-hour", Key: quota.KeyCeiling, Value: 0.5},
		{Lane: quota.Backfill, Limit: price.UserMinute, Key: quota.KeyInFlight, Value: 5},
		{Lane: quota.Backfill, Key: quota.KeyInFlight, Value: 2.5},
	} {
		if _, err := l.Publish(t.Context(), "p", "gmail", quota.Live{Revision: 1, Changes: []quota.Change{c}}); err == nil {
			t.Errorf("published %s", c)
		}
	}
	if _, err := l.Publish(t.Context(), "p", "gmail", quota.Live{Mode: quota.ModeAdaptive}); err == nil {
		t.Error("published settings without a revision")
	}
	if got, err := l.Live(t.Context(), "p", "gmail"); err != nil || got.Revision != 0 {
		t.Errorf("settings %+v, %v, want none", got, err)
	}
}

func TestTheLeastCeilingOfBytesIsStillALimit(t *testing.T) {
	l := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
	live := quota.Live{Revision: 1}.With(quota.Change{Lane: quota.Backfill, Limit: quota.LimitUserBytes, Key: quota.KeyCeiling, Value: 1e-10})
	if _, err := l.Publish(t.Context(), "p", "gmail", live); err != nil {
		t.Fatal(err)
	}
	if _, bytes, err := l.Caps(caller("ann@example.com", quota.Backfill), "gmail"); err != nil || bytes != 1 {
		t.Errorf("a ceiling of a quarter of a byte makes %d, %v, want 1", bytes, err)
	}
}

// withBurst is a price list with a window more.
func withBurst(t *testing.T) *price.List {
	t.Helper()
	list := *gmailWith(t, 6000, 1_200_000)
	limits := map[string]price.Limit{}
	for name, limit := range list.Limits {
		limits[name] = limit
	}
	burst := limits[price.UserMinute]
	burst.Period /= 2
	limits["user-burst"] = burst
	list.Limits = limits
	return &list
}

func clockedWith(t *testing.T, rdb *redis.Client, project quota.Project, prefix string) *quota.Ledger {
	t.Helper()
	l, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: map[string]quota.Project{"p": project}, KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
