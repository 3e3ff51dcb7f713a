package quota_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// newJournaled is newLedger with a journal, which the test has written by flush.
func newJournaled(t *testing.T, rdb redis.UniversalClient, scale int) (l *quota.Ledger, j *quota.Journal, reg *prometheus.Registry) {
	t.Helper()
	reg = prometheus.NewRegistry()
	j = quota.NewJournal(quota.JournalOptions{Process: "test/1", Registerer: reg})
	l, err := quota.NewLedger(quota.Options{
		Redis: rdb, Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}},
		Scale: scale, KeyPrefix: ownPrefix(t), Fresh: true, Journal: j, FailOpen: 0.1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, j, reg
}

// flush writes everything that a journal has noted, as at the end of a process.
func flush(t *testing.T, j *quota.Journal) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Run(ctx); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
}

// now is the time by the clock of Redis.
func now(t *testing.T, rdb *redis.Client) time.Time {
	t.Helper()
	at, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func find(notes []quota.Note, kind quota.NoteKind, lane quota.Lane) *quota.Note {
	for _, n := range notes {
		if n.Kind == kind && n.Lane == lane {
			return &n
		}
	}
	return nil
}

func TestJournalTellsWhoSpent(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		l, j, reg := newJournaled(t, rdb, 1)
		spend := func(user string, lane quota.Lane, units int64) {
			t.Helper()
			c := quota.Caller{Project: "p", User: user, Lane: lane}
			for range 100 { // as far as its pace lets it
				_, err := l.Take(t.Context(), c, "gmail", units)
				denied, ok := errors.AsType[*quota.DeniedError](err)
				if !ok {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				time.Sleep(denied.RetryAfter)
			}
			t.Fatalf("%s in lane %s got no units", user, lane)
		}
		spend("ann@example.com", quota.Interactive, 5)
		spend("Ann@example.com", quota.Interactive, 10)
		spend("ann@example.com", quota.Backfill, 20)
		spend("bob@example.com", quota.Sync, 7)
		spend("bob@example.com", quota.Interactive, 5)
		flush(t, j)

		at := now(t, rdb)
		for user, want := range map[string]string{
			"ann@example.com": "map[project-minute:map[backfill:20 interactive:20 sync:7] user-minute:map[backfill:20 interactive:15]]",
			"bob@example.com": "map[project-minute:map[backfill:20 interactive:20 sync:7] user-minute:map[interactive:5 sync:7]]",
			"cyd@example.com": "map[project-minute:map[backfill:20 interactive:20 sync:7] user-minute:map[]]",
		} {
			spent, err := l.Spent(t.Context(), quota.Caller{Project: "p", User: user, Lane: quota.Interactive}, "gmail", at)
			if err != nil || fmt.Sprint(spent) != want {
				t.Errorf("%s spent %v, %v, want %s", user, spent, err, want)
			}
		}
		spent, err := l.Spent(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail", at.Add(64*time.Second))
		if err != nil || len(spent[price.UserMinute]) != 0 || len(spent[price.ProjectMinute]) != 0 {
			t.Errorf("a window later %v, %v are spent, want nothing", spent, err)
		}
		n, top, err := l.Spenders(t.Context(), "p", "gmail", at, 1)
		if err != nil || n != 2 || !slices.Equal(top, []quota.Spender{{User: "ann@example.com", Units: 35}}) {
			t.Errorf("spenders = %d, %v, %v, want 2 with ann on top", n, top, err)
		}
		notes, err := l.Notes(t.Context(), "p", "ann@example.com", "gmail", at)
		if err != nil {
			t.Fatal(err)
		}
		if n := find(notes, quota.NoteAdmitted, quota.Backfill); n == nil || n.Calls != 1 || n.Units != 20 {
			t.Errorf("backfill's call: %+v, want one of 20 units", n)
		}
		if n := find(notes, quota.NoteAdmitted, quota.Interactive); n == nil || n.Calls != 2 || n.Units != 15 || n.API != "gmail" {
			t.Errorf("interactive calls: %+v, want two of 15 units", n)
		}
		// The user's windows: free after the last decision of ann, Ann and bob.
		if got := testutil.CollectAndCount(reg, "headroom_quota_user_headroom_ratio", "headroom_quota_project_headroom_ratio"); got != 2 {
			t.Errorf("%d series of headroom, want one by user and one by project", got)
		}
	})
}

func TestJournalTellsWhyCallsWereRefused(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		l, j, _ := newJournaled(t, rdb, 1)
		ann := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		charged, err := l.Take(t.Context(), ann, "gmail", 5000)
		if err != nil {
			t.Fatal(err)
		}
		for _, patience := range []time.Duration{0, time.Hour, time.Hour} {
			c := ann
			c.Lane, c.MaxWait = quota.Backfill, patience
			if _, err := l.Take(t.Context(), c, "gmail", 20); err == nil {
				t.Fatal("backfill went above its ceiling")
			}
		}
		if _, err := l.Take(t.Context(), ann, "gmail", 7000); !errors.Is(err, quota.ErrNeverFits) {
			t.Fatalf("7000 units: %v", err)
		}
		for _, r := range []quota.Refusal{
			{Scope: quota.ScopeConcurrency, Reason: "rateLimitExceeded", Wait: time.Second},
			{Scope: quota.ScopeUser, Reason: "userRateLimitExceeded", Wait: 65 * time.Second},
			{}, // a success
		} {
			if err := l.Answered(t.Context(), charged.Charge, r); err != nil {
				t.Fatal(err)
			}
		}
		flush(t, j)
		at := now(t, rdb)
		notes, err := l.Notes(t.Context(), "p", "ANN@example.com", "gmail", at)
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != 6 {
			t.Errorf("%d notes, want one admitted, two refused, one never, two of Google: %+v", len(notes), notes)
		}
		for _, waits := range []bool{false, true} {
			i := slices.IndexFunc(notes, func(n quota.Note) bool { return n.Kind == quota.NoteRefused && n.Waits == waits })
			if i < 0 {
				t.Fatalf("no refusal with waits = %t", waits)
			}
			n, calls := notes[i], int64(1)
			if waits {
				calls = 2
			}
			if n.Lane != quota.Backfill || n.Calls != calls || n.Limit != price.UserMinute || n.Bound != quota.BoundCeiling ||
				n.Used != 5000 || n.Ceiling != 4800 || n.Cost != 20 || n.Wait < time.Minute-5*time.Second || n.Wait > 62*time.Second ||
				n.Until.Sub(at) > 62*time.Second || n.Until.Before(at.Add(50*time.Second)) || n.Process != "test/1" {
				t.Errorf("refusal with waits = %t: %+v", waits, n)
			}
		}
		if n := find(notes, quota.NoteNever, quota.Interactive); n == nil || n.Cost != 7000 {
			t.Errorf("never: %+v", n)
		}
		for _, n := range notes {
			closed := n.Until.Sub(at)
			switch {
			case n.Kind != quota.NoteGoogle:
			case n.Scope == quota.ScopeConcurrency && !n.Until.IsZero():
				t.Errorf("too many calls in flight closed the account: %+v", n)
			case n.Scope == quota.ScopeUser && (closed < 60*time.Second || closed > 66*time.Second || n.Reason != "userRateLimitExceeded"):
				t.Errorf("Google's refusal: %+v, closed for %s", n, closed)
			}
		}
	})
}

func TestJournalKeepsTheLastNotes(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		l, j, reg := newJournaled(t, rdb, 1)
		charge := quota.Charge{Caller: quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Sync}, API: "gmail", Units: 5, At: now(t, rdb)}
		for i := range 130 {
			if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeConcurrency, Reason: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 {
				flush(t, j)
			}
		}
		notes, err := l.Notes(t.Context(), "p", "ann@example.com", "gmail", now(t, rdb))
		if err != nil || len(notes) != 100 || notes[0].Reason != "30" || notes[99].Reason != "129" {
			t.Errorf("%d notes, %v, want 100 of which the last is 129", len(notes), err)
		}
		for i := range 20 {
			if err := l.Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeConcurrency, Reason: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if got := value(t, reg, "headroom_quota_journal_dropped_total"); got != 4 {
			t.Errorf("%v entries dropped of 20 between writes, want the 4 that are more than 16", got)
		}
	})
}

// value is that of the only series of a counter or gauge; 0 if there is none.
func value(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return 0
}

func TestJournalOutlastsRedis(t *testing.T) {
	t.Parallel()
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	rdb := newClient(t, server.Addr)
	l, j, _ := newJournaled(t, rdb, 1)
	ann := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	if _, err := l.Take(t.Context(), ann, "gmail", 5); err != nil {
		t.Fatal(err)
	}
	began := now(t, rdb)
	server.Kill()
	flush(t, j) // writes nothing, and loses nothing
	local := 0
	for range 5 {
		d, err := l.Take(t.Context(), ann, "gmail", 5)
		if err == nil && d.Local {
			local++
		}
	}
	if local == 0 {
		t.Fatal("no call went on while Redis was away")
	}
	back := ann
	back.Lane = quota.Backfill
	if _, err := l.Take(t.Context(), back, "gmail", 5); !errors.Is(err, quota.ErrUnavailable) {
		t.Fatalf("backfill without Redis: %v", err)
	}
	flush(t, j)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var notes []quota.Note
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && len(notes) < 3; time.Sleep(10 * time.Millisecond) {
		flush(t, j)
		if notes, err = l.Notes(t.Context(), "p", "ann@example.com", "gmail", began.Add(time.Minute)); err != nil {
			notes = nil
		}
	}
	if n := find(notes, quota.NoteLocal, quota.Interactive); n == nil || n.Calls != int64(local) || n.Units != int64(5*local) {
		t.Errorf("calls that went on: %+v, want %d", n, local)
	}
	if n := find(notes, quota.NoteAway, quota.Backfill); n == nil || n.Calls != 1 {
		t.Errorf("calls that were not made: %+v", n)
	}
	if n := find(notes, quota.NoteAdmitted, quota.Interactive); n == nil || n.Calls != int64(local)+1 {
		t.Errorf("calls admitted, before and during the outage: %+v, want %d", n, local+1)
	}
}

func TestJournalFollowsWhatRefusalsTookAway(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	l, j, reg := newJournaled(t, rdb, 100) // a share of one half is whole again after a second
	d, err := l.Take(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}, "gmail", 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Answered(t.Context(), d.Charge, quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- j.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		share := value(t, reg, "headroom_quota_learned_share")
		if share > 0.3 && share < 0.9 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the share of an account that was refused = %v, want about a half", share)
		}
	}
}
