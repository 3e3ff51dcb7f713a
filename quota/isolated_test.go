package quota_test

import (
	"net/http"
	"testing"
	"time"

	"headroom/quota"
	"headroom/quota/price"
)

// bare is a refusal that names no moment.
var bare = map[quota.Scope]string{
	quota.ScopeUser:    `{"error":{"code":429,"message":"Rate Limit Exceeded","errors":[{"reason":"rateLimitExceeded"}]}}`,
	quota.ScopeProject: `{"error":{"code":429,"message":"Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'.","errors":[{"reason":"rateLimitExceeded"}]}}`,
}

func refusedBy(t *testing.T, scope quota.Scope, now time.Time) quota.Refusal {
	t.Helper()
	r := quota.Classify(http.StatusTooManyRequests, http.Header{}, []byte(bare[scope]), now, 1)
	if r.Scope != scope {
		t.Fatalf("%+v, want scope %s", r, scope)
	}
	return r
}

// TestIsolatedRefusalsCostSeconds backfills a hundred messages, sixty of which are
// refused once each although next to nothing was spent.
func TestIsolatedRefusalsCostSeconds(t *testing.T) {
	for _, scope := range []quota.Scope{quota.ScopeUser, quota.ScopeProject} {
		t.Run(string(scope), func(t *testing.T) {
			ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 12_000)}}, 1)
			began, refused, longest := *now, 0, time.Duration(0)
			for stored := 0; stored < 100; {
				charge, wait, _ := take(t, ledgers[0], "ann@example.com", quota.Backfill)
				longest = max(longest, wait)
				*now = now.Add(max(wait, 10*time.Millisecond))
				switch {
				case wait > 0:
				case refused < 60 && refused <= stored:
					refused++
					if err := ledgers[0].Answered(t.Context(), charge, refusedBy(t, scope, *now)); err != nil {
						t.Fatal(err)
					}
				default:
					stored++
				}
			}
			t.Logf("a hundred messages in %s, longest wait %s", now.Sub(began), longest)
			if took := now.Sub(began); took > 6*time.Minute || longest > 5*time.Second {
				t.Errorf("sixty single refusals cost %s, and a wait of %s; want seconds each", took, longest)
			}
		})
	}
}

// TestRefusalsInARowGrow refuses everything: each wait is longer than the one
// before, up to that of any refusal, and the share is halved from the second on.
func TestRefusalsInARowGrow(t *testing.T) {
	for _, scope := range []quota.Scope{quota.ScopeUser, quota.ScopeProject} {
		t.Run(string(scope), func(t *testing.T) {
			ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 12_000)}}, 2)
			for i, want := range []time.Duration{2 * time.Second, 8 * time.Second, 32 * time.Second, 65 * time.Second, 65 * time.Second} {
				charge, wait, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive)
				if wait > 0 {
					t.Fatalf("refusal %d: the call that goes ahead waits for %s", i+1, wait)
				}
				*now = now.Add(100 * time.Millisecond)
				for range 3 { // it, and what was on its way with it
					if err := ledgers[0].Answered(t.Context(), charge, refusedBy(t, scope, *now)); err != nil {
						t.Fatal(err)
					}
				}
				_, wait, bound := take(t, ledgers[1], "ann@example.com", quota.Interactive)
				if bound != quota.BoundHold || wait < want-time.Second || wait > want+2*time.Second {
					t.Errorf("refusal %d closes for %s (%s), want %s", i+1, wait, bound, want)
				}
				*now = now.Add(wait)
			}
		})
	}
}

// TestARefusalOfAFullWindowIsNotIsolated: where much was spent, the minute is over
// only when it is over.
func TestARefusalOfAFullWindowIsNotIsolated(t *testing.T) {
	ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 300, 12_000)}}, 1)
	for range 5 {
		if _, wait, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive); wait > 0 {
			t.Fatal("not let in")
		}
	}
	charge, _, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive)
	if err := ledgers[0].Answered(t.Context(), charge, refusedBy(t, quota.ScopeUser, *now)); err != nil {
		t.Fatal(err)
	}
	if _, wait, _ := take(t, ledgers[0], "ann@example.com", quota.Interactive); wait < time.Minute {
		t.Errorf("closed for %s, want about a minute", wait)
	}
	if _, wait, _ := take(t, ledgers[0], "ben@example.com", quota.Interactive); wait > 0 {
		t.Errorf("another user waits for %s", wait)
	}
}
