package quota_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/quota"
	"headroom/quota/price"
)

// mailServer counts what reaches it, and answers with an empty object.
func mailServer(t *testing.T) (url string, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func gmailClient(t *testing.T, url string, transport *quota.Transport) *gmail.Service {
	service, err := gmail.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: transport}), option.WithEndpoint(url))
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func TestTransportChargesBeforeSending(t *testing.T) {
	url, calls := mailServer(t)
	ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 60, 1000)}}, 1)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	ctx := quota.WithCaller(t.Context(), caller)

	for i := range 3 {
		if _, err := service.Users.Messages.Get("me", "1").Format("raw").Context(ctx).Do(); err != nil {
			t.Fatalf("call %d of three that fit: %v", i+1, err)
		}
	}
	_, err := service.Users.Messages.Get("me", "1").Format("raw").Context(ctx).Do()
	var denied *quota.DeniedError
	if !errors.As(err, &denied) {
		t.Fatalf("the fourth: got %v, want a refusal through Google's client", err)
	}
	if denied.Limit != price.UserMinute || denied.Used != 60 || denied.Cost != 20 || denied.Caller.User != caller.User || denied.RetryAfter < 50*time.Second {
		t.Errorf("got %+v", denied)
	}
	if calls.Load() != 3 {
		t.Errorf("%d requests were sent, want the three that were charged", calls.Load())
	}
	now, err := ledger.Peek(ctx, caller, "gmail")
	if err != nil || len(now.Usage) != 2 || now.Usage[0].Used != 60 || now.Usage[1].Used != 60 {
		t.Errorf("Peek = %+v, %v, want 60 units in each window", now, err)
	}
	if _, err := service.Users.Messages.Get("me", "1").Context(t.Context()).Do(); !errors.Is(err, quota.ErrNoCaller) {
		t.Errorf("without a caller: got %v", err)
	}
	other := quota.WithCaller(t.Context(), quota.Caller{Project: "unheard-of", User: "ann@example.com", Lane: quota.Interactive})
	if _, err := service.Users.Messages.Get("me", "1").Context(other).Do(); !errors.Is(err, quota.ErrUnknownProject) {
		t.Errorf("of an unknown project: got %v", err)
	}
}

// TestTransportWaitsInLine lets forty calls through a pace of 105 units a second
// at scale 1: they wait in place, and do not storm the ledger while they do.
func TestTransportWaitsInLine(t *testing.T) {
	t.Parallel()
	url, calls := mailServer(t)
	project := quota.Project{
		Lists: []*price.List{gmailWith(t, 6000, 100000)},
		Lanes: map[quota.Lane]quota.LaneSettings{quota.Backfill: {Ceiling: 1, Pace: 1.05}},
	}
	rdb := newClient(t, realRedis.Addr)
	ledger := newLedger(t, rdb, project, 1)
	var asked, refused atomic.Int64
	rdb.AddHook(countingHook{&asked})
	transport := &quota.Transport{Limiter: ledger, Observe: func(o quota.Observation) {
		if o.Err != nil {
			refused.Add(1)
		}
	}}
	service := gmailClient(t, url, transport)
	ctx := quota.WithCaller(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill, MaxWait: time.Second})

	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			if _, err := service.Users.Messages.Get("me", "1").Format("raw").Context(ctx).Do(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if calls.Load() != 40 || refused.Load() != 0 {
		t.Errorf("%d sent, %d refused, want all forty sent", calls.Load(), refused.Load())
	}
	// Each call asks once, and once more if it had to wait for its turn.
	if asked.Load() > 85 {
		t.Errorf("the ledger was asked %d times for 40 calls", asked.Load())
	}
}

// TestTransportRefusesALongWait refuses what would wait longer than it may, and
// tells those behind it in line without asking the ledger again.
func TestTransportRefusesALongWait(t *testing.T) {
	url, calls := mailServer(t)
	rdb := newClient(t, realRedis.Addr)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 100, 100000)},
		Lanes: map[quota.Lane]quota.LaneSettings{quota.Backfill: {Ceiling: 1}}}, 1)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	ctx := quota.WithCaller(t.Context(), quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill, MaxWait: 500 * time.Millisecond})

	var refused atomic.Int64
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			_, err := service.Users.Messages.Get("me", "1").Format("raw").Context(ctx).Do()
			if denied := (*quota.DeniedError)(nil); errors.As(err, &denied) {
				refused.Add(1)
				if denied.RetryAfter <= 500*time.Millisecond {
					t.Errorf("refused although it had to wait for %s only", denied.RetryAfter)
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if calls.Load() != 5 || refused.Load() != 15 {
		t.Errorf("%d sent and %d refused, want 5 and 15", calls.Load(), refused.Load())
	}
}

func TestTransportHonoursContextInLine(t *testing.T) {
	url, calls := mailServer(t)
	ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 100, 100000)},
		Lanes: map[quota.Lane]quota.LaneSettings{quota.Backfill: {Ceiling: 1}}}, 1)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill, MaxWait: time.Hour}
	for range 5 {
		if _, err := service.Users.Messages.Get("me", "1").Format("raw").Context(quota.WithCaller(t.Context(), caller)).Do(); err != nil {
			t.Fatal(err)
		}
	}
	// One waits first in line for a minute, one behind it; both must leave.
	ctx, cancel := context.WithCancel(quota.WithCaller(t.Context(), caller))
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := service.Users.Messages.Get("me", "1").Format("raw").Context(ctx).Do()
			done <- err
		}()
	}
	cancel()
	for range 2 {
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's end", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a cancelled call still waits")
		}
	}
	if calls.Load() != 5 {
		t.Errorf("%d requests were sent, want 5", calls.Load())
	}
}

func TestLedgerUnavailable(t *testing.T) {
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: "127.0.0.1:1"}))
	t.Cleanup(func() { rdb.Close() })
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 100, 1000)}}, 1)
	_, err := ledger.Take(t.Context(), quota.Caller{Project: "p", User: "u", Lane: quota.Interactive}, "gmail", 5)
	if !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// countingHook counts the commands that are sent.
type countingHook struct{ n *atomic.Int64 }

func (h countingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h countingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h countingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
