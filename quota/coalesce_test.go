package quota_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// pipelineHook counts pipelines and the commands in them.
type pipelineHook struct{ pipelines, commands *atomic.Int64 }

func (h pipelineHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h pipelineHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h pipelineHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.pipelines.Add(1)
		h.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestDecisionsTravelTogether(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	hook := pipelineHook{new(atomic.Int64), new(atomic.Int64)}
	rdb.AddHook(hook)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 1_000_000, 10_000_000)}}, 1)
	const callers, each = 64, 50
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			c := quota.Caller{Project: "p", User: fmt.Sprint(i), Lane: quota.Interactive}
			for n := range each {
				d, err := ledger.Take(t.Context(), c, "gmail", 5)
				if err != nil {
					t.Error(err)
					return
				}
				// Nobody gets another's answer: a user's window counts his calls only.
				if got := d.Usage[1].Used; got != int64(5*(n+1)) {
					t.Errorf("user %d has used %d after %d calls of 5", i, got, n+1)
				}
			}
		})
	}
	group.Wait()
	if got := hook.commands.Load(); got < callers*each || got > callers*each+64 {
		t.Errorf("%d commands for %d decisions", got, callers*each)
	}
	if got := hook.pipelines.Load(); got > callers*each/4 {
		t.Errorf("%d round trips for %d decisions of %d callers at once", got, callers*each, callers)
	}
}

func TestOneCallersContextEndsItsOwnCall(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	rdb := newClient(t, server.Addr)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	if _, err := ledger.Take(t.Context(), caller, "gmail", 5); err != nil {
		t.Fatal(err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ledger.Take(ended, caller, "gmail", 5); !errors.Is(err, context.Canceled) || errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("with a context that has ended: got %v, want its end and no doubt about the charge", err)
	}

	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	short, cancelShort := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancelShort()
	results := make(chan error, 2)
	go func() {
		began := time.Now()
		_, err := ledger.Take(short, caller, "gmail", 5)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("a call bounded to 100 ms came back after %s", waited)
		}
		results <- err
	}()
	if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the bounded call: got %v", err)
	}
	go func() {
		_, err := ledger.Take(t.Context(), caller, "gmail", 5)
		results <- err
	}()
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-results; err != nil {
		t.Errorf("a call beside the one that was given up: %v", err)
	}
}

// TestUnknownOutcomeIsChargedOnce stalls a server so that the answer of a call is
// lost: the call is not repeated, and what it charged stays charged.
func TestUnknownOutcomeIsChargedOnce(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	o := quota.ClientOptions(&redis.Options{Addr: server.Addr})
	o.ReadTimeout = 100 * time.Millisecond
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	if _, err := ledger.Take(t.Context(), caller, "gmail", 5); err != nil {
		t.Fatal(err)
	}
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err = ledger.Take(t.Context(), caller, "gmail", 100)
	var timeout net.Error
	if !errors.Is(err, quota.ErrUnavailable) || !errors.As(err, &timeout) {
		t.Errorf("a stalled server: got %v, want ErrUnavailable for a time-out", err)
	}
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d := eventually(t, func() (quota.Decision, error) { return ledger.Peek(t.Context(), caller, "gmail") })
	if got := d.Usage[1].Used; got != 105 && got != 5 {
		t.Errorf("%d units are used, want 105, or 5 if the call never reached the server", got)
	}
}

// eventually repeats f until it succeeds.
func eventually[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		v, err := f()
		if err == nil {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestScriptsReloadAfterFlush(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
		caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
		for i := range 3 {
			d, err := ledger.Take(t.Context(), caller, "gmail", 5)
			if err != nil || d.Usage[1].Used != int64(5*(i+1)) {
				t.Errorf("take %d: %+v, %v", i+1, d, err)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestARetryingClientIsRefused(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: realRedis.Addr})
	t.Cleanup(func() { rdb.Close() })
	if _, err := quota.NewLedger(quota.Options{Redis: rdb}); err == nil {
		t.Error("a client that retries by itself was accepted")
	}
}

func TestNoGoroutineOutlivesItsCalls(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
	ignore := goleak.IgnoreCurrent()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			_, _ = ledger.Take(t.Context(), quota.Caller{Project: "p", User: "u", Lane: quota.Sync}, "gmail", 5)
		})
	}
	group.Wait()
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
}

// TestDenialsAreRemembered lets a storm of refused calls reach Redis once.
func TestDenialsAreRemembered(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	hook := pipelineHook{new(atomic.Int64), new(atomic.Int64)}
	rdb.AddHook(hook)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 100, 100_000)}}, 1)
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	if _, err := ledger.Take(t.Context(), caller, "gmail", 90); err != nil {
		t.Fatal(err)
	}
	_, err := ledger.Take(t.Context(), caller, "gmail", 20)
	var told *quota.DeniedError
	if !errors.As(err, &told) {
		t.Fatalf("got %v, want a refusal", err)
	}
	before := hook.commands.Load()
	for range 1000 {
		_, err := ledger.Take(t.Context(), caller, "gmail", 25)
		var again *quota.DeniedError
		if !errors.As(err, &again) || again.Cost != 25 || !again.At.Equal(told.At) || again.RetryAfter > told.RetryAfter {
			t.Fatalf("got %+v, %v, want what was told before: %+v", again, err, told)
		}
	}
	if n := hook.commands.Load() - before; n != 0 {
		t.Errorf("1000 repeated calls reached Redis %d times", n)
	}
	if _, err := ledger.Take(t.Context(), caller, "gmail", 5); err != nil {
		t.Errorf("a smaller call that fits: %v", err)
	}
	if _, err := ledger.Take(t.Context(), caller, "gmail", 101); !errors.Is(err, quota.ErrNeverFits) {
		t.Errorf("a call that can never fit: got %v", err)
	}
	other := caller
	other.User = "ben@example.com"
	if _, err := ledger.Take(t.Context(), other, "gmail", 25); err != nil {
		t.Errorf("another user's call: %v", err)
	}
}
