package quota_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"headroom/quota"
)

func TestLease(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*quota.PriceList{gmailWith(t, 300, 100_000)}}, 1)
		caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		used := func() int64 {
			t.Helper()
			d, err := ledger.Peek(t.Context(), caller, "gmail")
			if err != nil {
				t.Fatal(err)
			}
			return d.Usage[1].Used
		}
		lease, err := ledger.Lease(t.Context(), caller, "gmail", 20, 250)
		if err != nil || used() != 250 {
			t.Fatalf("Lease: %v, %d units are used, want 250", err, used())
		}
		for range 3 {
			if !lease.Spend(60) {
				t.Error("the lease has enough, but nothing was spent")
			}
		}
		if lease.Spend(60) {
			t.Error("spent 60 of the 50 units that are left")
		}
		for range 2 {
			if err := lease.Return(t.Context()); err != nil || used() != 200 {
				t.Errorf("Return: %v, %d units are used, want 200", err, used())
			}
		}
		if lease.Spend(1) {
			t.Error("spent from a lease that was returned")
		}
		// A lease is granted as far as units fit.
		if _, err := ledger.Lease(t.Context(), caller, "gmail", 20, 250); err != nil || used() != 300 {
			t.Errorf("a lease near the limit: %v, %d units are used, want 300", err, used())
		}
		var denied *quota.DeniedError
		if _, err := ledger.Lease(t.Context(), caller, "gmail", 20, 250); !errors.As(err, &denied) {
			t.Errorf("a lease at the limit: got %v", err)
		}
	})
}

func TestLeaseEnds(t *testing.T) {
	ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*quota.PriceList{gmailWith(t, 300, 100_000)}}, 20)
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	lease, err := ledger.Lease(t.Context(), caller, "gmail", 5, 100)
	if err != nil {
		t.Fatal(err)
	}
	wait(t.Context(), time.Second/20)
	if lease.Spend(5) {
		t.Error("spent from a lease after its second")
	}
}

func TestALeaseEndsWithACoolDown(t *testing.T) {
	t.Parallel()
	for scope, others := range map[quota.Scope]bool{quota.ScopeUser: true, quota.ScopeProject: false} {
		ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*quota.PriceList{gmailWith(t, 6000, 100_000)}}, 1)
		lease := func(user string) *quota.Lease {
			l, err := ledger.Lease(t.Context(), caller(user, quota.Interactive), "gmail", 5, 100)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		ann, bob := lease("ann@example.com"), lease("bob@example.com")
		refused := quota.Charge{Caller: caller("Ann@example.com", quota.Backfill), API: "gmail", Units: 5}
		if err := ledger.Answered(t.Context(), refused, quota.Refusal{Scope: scope, Wait: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if ann.Spend(5) {
			t.Errorf("scope %s: spent from the user's lease after the refusal", scope)
		}
		if bob.Spend(5) != others {
			t.Errorf("scope %s: another user's lease spends: %v, want %v", scope, !others, others)
		}
	}
}

// TestTransportLeases makes 400 calls of 5 units with leases: few of them reach
// Redis, and in the end exactly what was sent is counted.
func TestTransportLeases(t *testing.T) {
	url, calls := mailServer(t)
	rdb := newClient(t, realRedis.Addr)
	hook := pipelineHook{new(atomic.Int64), new(atomic.Int64)}
	rdb.AddHook(hook)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*quota.PriceList{gmailWith(t, 6000, 1_000_000)}}, 1)
	ignore := goleak.IgnoreCurrent()
	service := gmailClient(t, url, &quota.Transport{Ledger: ledger, LeaseUnits: 200})
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive, MaxWait: time.Second}
	ctx := quota.WithCaller(t.Context(), caller)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if _, err := service.Users.Messages.List("me").Context(ctx).Do(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	// Each call takes a place in flight and gives it back; that much is not leased.
	if got := hook.commands.Load() - 2*400; got > 60 {
		t.Errorf("400 calls asked Redis for units %d times", got)
	}
	// What is left of the last lease goes back after its second.
	want := 5 * calls.Load()
	deadline := time.Now().Add(5 * time.Second)
	for {
		d, err := ledger.Peek(t.Context(), caller, "gmail")
		if err != nil {
			t.Fatal(err)
		}
		if d.Usage[1].Used == want {
			break
		}
		if d.Usage[1].Used < want || time.Now().After(deadline) {
			t.Fatalf("%d units are counted for %d calls of 5", d.Usage[1].Used, calls.Load())
		}
		wait(t.Context(), 20*time.Millisecond)
	}
	if err := goleak.Find(ignore, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")); err != nil {
		t.Error(err)
	}
}
