package quota_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// The traffic is light enough for a busy machine: some twenty calls a second.
const (
	lossScale = 20 // windows of 3 s
	lossLimit = 1200
)

// traffic is a backfill that takes all it gets and people who keep to a tenth of
// the limit, in one account of a fake Google.
type traffic struct {
	fake    *fakegoogle.Server
	service *gmail.Service
	id      string // of a message

	mu       sync.Mutex
	backfill []time.Time // when calls were admitted
	people   int
	denied   int // of the people's
	unknown  int // backfill calls refused because the windows are unknown
	crowded  int // and because calls count that have long ended
}

const lossUser = "ann@example.com"

func newTraffic(t *testing.T, rdb redis.UniversalClient) *traffic {
	t.Helper()
	fake, err := fakegoogle.New(fakegoogle.Options{Scale: lossScale, UserLimit: lossLimit})
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Load(lossUser, "generate:20"); err != nil {
		t.Fatal(err)
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(context.WithoutCancel(t.Context())) })
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, FailOpen: quota.NoFailOpen, Scale: lossScale, Fresh: true,
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, lossLimit, 1_200_000)}}}})
	if err != nil {
		t.Fatal(err)
	}
	tr := &traffic{fake: fake, id: fake.Mailbox(lossUser).Messages()[0].ID}
	tr.service, err = gmail.NewService(t.Context(), option.WithEndpoint(url),
		option.WithHTTPClient(&http.Client{Transport: &quota.Transport{Limiter: ledger, Scale: lossScale}}))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// run makes calls until ctx ends. A Redis that is away holds everybody up.
func (tr *traffic) run(ctx context.Context) {
	var group sync.WaitGroup
	caller := quota.Caller{Project: "p", User: lossUser, Lane: quota.Backfill}
	person := quota.Caller{Project: "p", User: lossUser, Lane: quota.Interactive}
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := tr.service.Users.Messages.Get("me", tr.id).Format("raw").Context(quota.WithCaller(ctx, caller)).Do()
				var denied *quota.DeniedError
				pause := 5 * time.Millisecond
				tr.mu.Lock()
				switch {
				case err == nil:
					tr.backfill = append(tr.backfill, time.Now())
					pause = 0
				case errors.As(err, &denied):
					switch denied.Bound {
					case quota.BoundUnknown:
						tr.unknown++
					case quota.BoundInFlight:
						tr.crowded++
					}
					pause = min(denied.RetryAfter, 50*time.Millisecond)
				}
				tr.mu.Unlock()
				wait(ctx, pause)
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			_, err := tr.service.Users.Messages.List("me").Context(quota.WithCaller(ctx, person)).Do()
			var denied *quota.DeniedError
			tr.mu.Lock()
			if errors.As(err, &denied) {
				tr.denied++
			} else if err == nil {
				tr.people++
			}
			tr.mu.Unlock()
			wait(ctx, 250*time.Millisecond) // 20 units a second at scale 20 are a twentieth of the limit
		}
	})
	group.Wait()
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// since counts backfill calls after a moment.
func (tr *traffic) since(at time.Time) (n int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, one := range tr.backfill {
		if one.After(at) {
			n++
		}
	}
	return n
}

// through lets the traffic run through an event, and holds the fake's meter to
// the limit all the time.
func through(t *testing.T, rdb redis.UniversalClient, event func() error) {
	t.Helper()
	tr := newTraffic(t, rdb)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tr.run(ctx)
	}()
	for deadline := time.Now().Add(30 * time.Second); tr.fake.Meter().User(lossUser).MostInWindow < lossLimit*7/10; {
		if wait(ctx, 50*time.Millisecond); time.Now().After(deadline) {
			t.Fatal("the window did not fill")
		}
	}
	if err := event(); err != nil {
		t.Fatal(err)
	}
	// The background holds one window, and a second later has long gone on.
	at := time.Now()
	wait(ctx, 1500*time.Millisecond)
	early := tr.since(at.Add(500 * time.Millisecond)) // what was on its way when it happened does not count
	wait(ctx, 4500*time.Millisecond)
	// A snapshot brings back places of calls that have long ended. They count for
	// some seconds more.
	for end := at.Add(20 * time.Second); tr.since(at.Add(3200*time.Millisecond)) == 0 && time.Now().Before(end); {
		wait(ctx, 100*time.Millisecond)
	}
	cancel()
	<-done
	report := tr.fake.Meter().User(lossUser)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t.Logf("most in a window %d of %d; %d calls of people, %d denied; background told %d times that the windows are unknown",
		report.MostInWindow, report.Limit, tr.people, tr.denied, tr.unknown)
	if report.WindowsOverLimit != 0 || report.Refused != 0 {
		t.Errorf("the fake saw %d windows over the limit and refused %d calls", report.WindowsOverLimit, report.Refused)
	}
	if tr.unknown+tr.crowded == 0 || early > 4 { // four callers may have been on a slow way
		t.Errorf("the background was told %d times that the windows are unknown, and made %d calls in the first half of the window after it", tr.unknown, early)
	}
	if tr.denied != 0 || tr.people < 10 {
		t.Errorf("people made %d calls and were denied %d times", tr.people, tr.denied)
	}
	tr.mu.Unlock()
	resumed := tr.since(at.Add(3200 * time.Millisecond))
	tr.mu.Lock()
	if resumed == 0 {
		t.Error("the background did not go on after the window")
	}
}

func ownRedis(t *testing.T, args ...string) (*localredis.Server, *redis.Client) {
	t.Helper()
	server, err := localredis.Start(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server, newClient(t, server.Addr)
}

func TestThroughLostWindows(t *testing.T) {
	t.Run("FLUSHALL", func(t *testing.T) {
		t.Parallel()
		_, rdb := ownRedis(t)
		through(t, rdb, func() error { return rdb.FlushAll(t.Context()).Err() })
	})
	t.Run("killed and restarted without data", func(t *testing.T) {
		t.Parallel()
		server, rdb := ownRedis(t)
		through(t, rdb, func() error {
			server.Kill()
			return server.Restart(t.Context())
		})
	})
	t.Run("killed and restarted with an old snapshot", func(t *testing.T) {
		t.Parallel()
		server, rdb := ownRedis(t)
		go func() {
			wait(t.Context(), time.Second)
			rdb.Save(t.Context())
		}()
		through(t, rdb, func() error {
			server.Kill()
			return server.Restart(t.Context())
		})
	})
	t.Run("a replica is promoted", func(t *testing.T) {
		t.Parallel()
		master, _ := ownRedis(t)
		replica, rdb2 := ownRedis(t, "--replicaof", "127.0.0.1 "+portOf(master.Addr))
		// The client follows the master that is in office.
		var mu sync.Mutex
		addr := master.Addr
		o := quota.ClientOptions(&redis.Options{Addr: addr, Dialer: dialCurrent(&mu, &addr)})
		rdb := redis.NewClient(o)
		t.Cleanup(func() { rdb.Close() })
		through(t, rdb, func() error {
			master.Kill()
			if err := rdb2.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			addr = replica.Addr
			return nil
		})
	})
	t.Run("keys are evicted", func(t *testing.T) {
		t.Parallel()
		_, rdb := ownRedis(t, "--maxmemory-policy", "allkeys-random")
		through(t, rdb, func() error {
			ctx := t.Context()
			// Memory runs out until everything is gone that was there.
			if err := rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
				return err
			}
			_ = rdb.Set(ctx, "x", "y", 0).Err() // refused, but makes room first
			return rdb.ConfigSet(ctx, "maxmemory", "0").Err()
		})
	})
}

func portOf(addr string) string { return addr[len("127.0.0.1:"):] }

func TestFirstUseHoldsTheBackground(t *testing.T) {
	t.Parallel()
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		ledger, err := quota.NewLedger(quota.Options{Redis: rdb, FailOpen: quota.NoFailOpen, Scale: 15, KeyPrefix: fmt.Sprintf("%s:", t.Name()),
			Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 100_000)}}}})
		if err != nil {
			t.Fatal(err)
		}
		caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill}
		_, err = ledger.Take(t.Context(), caller, "gmail", 20)
		var denied *quota.DeniedError
		if !errors.As(err, &denied) || denied.Bound != quota.BoundUnknown || denied.RetryAfter > 62*time.Second/15+time.Millisecond {
			t.Fatalf("got %v, want a refusal for one window", err)
		}
		caller.Lane = quota.Interactive
		// People go on within limit minus ceiling: 600 units beside sync's 90 %.
		for range 6 {
			if _, err := ledger.Take(t.Context(), caller, "gmail", 100); err != nil {
				t.Fatalf("people within the reserve: %v", err)
			}
		}
		if _, err := ledger.Take(t.Context(), caller, "gmail", 100); !errors.As(err, &denied) || denied.Bound != quota.BoundUnknown {
			t.Errorf("people beyond the reserve: got %v", err)
		}
		wait(t.Context(), denied.RetryAfter)
		caller.Lane = quota.Backfill
		eventually(t, func() (quota.Decision, error) { return ledger.Take(t.Context(), caller, "gmail", 20) })
	})
}
