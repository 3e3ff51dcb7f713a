package quota_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/quota"
	"headroom/quota/price"
)

// TestGooglesCapIsFoundAndKept lets four processes of sixteen goroutines fetch
// from one account, of whose calls Google takes three at once. None is told so.
func TestGooglesCapIsFoundAndKept(t *testing.T) {
	t.Parallel()
	const processes, goroutines, cap, messages = 4, 16, 3, 1200
	fake, err := fakegoogle.New(fakegoogle.Options{InFlightLimit: cap, UserLimit: 1_000_000, ProjectLimit: 100_000_000, Latency: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	id := fake.AddMailbox("ann@example.com").Add([]byte("Subject: one\r\n\r\nbody\r\n"))
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			t.Error(err)
		}
	})

	prefix := ownPrefix(t)
	var left, refused atomic.Int64
	left.Store(messages)
	var last atomic.Int64 // when a call was refused last, in ns
	var first *quota.Ledger
	var group sync.WaitGroup
	for range processes {
		rdb := newClient(t, realRedis.Addr)
		ledger, err := quota.NewLedger(quota.Options{Redis: rdb, KeyPrefix: prefix, Fresh: true,
			Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 1_000_000, 100_000_000)}}}})
		if err != nil {
			t.Fatal(err)
		}
		first = ledger
		base := &http.Transport{MaxIdleConnsPerHost: goroutines}
		t.Cleanup(base.CloseIdleConnections)
		service, err := gmail.NewService(t.Context(), option.WithEndpoint(url), option.WithHTTPClient(&http.Client{
			Transport: &quota.Transport{Base: base, Limiter: ledger}}))
		if err != nil {
			t.Fatal(err)
		}
		caller := ann(quota.Backfill)
		caller.MaxWait = time.Second
		ctx := quota.WithCaller(t.Context(), caller)
		for range goroutines {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					for {
						_, err := service.Users.Messages.Get("me", id).Format("raw").Context(ctx).Do()
						var denied *quota.DeniedError
						var answer *googleapi.Error
						if err == nil {
							break
						} else if errors.As(err, &answer) && answer.Code == http.StatusTooManyRequests {
							refused.Add(1)
							last.Store(time.Now().UnixNano())
							wait(ctx, 50*time.Millisecond+rand.N(50*time.Millisecond))
						} else if errors.As(err, &denied) && denied.Limit == quota.LimitInFlight {
							wait(ctx, denied.RetryAfter)
						} else {
							t.Error(err)
							return
						}
					}
				}
			})
		}
	}
	began := time.Now()
	group.Wait()
	took := time.Since(began)

	user := fake.Meter().User("ann@example.com")
	if user.Fetches != messages || refused.Load() == 0 || refused.Load() > 12 || user.Refused != refused.Load() {
		t.Errorf("%d fetched of %d, %d refused by Google (%d by its own account), want all, after a few refusals", user.Fetches, messages, refused.Load(), user.Refused)
	}
	learning := time.Unix(0, last.Load()).Sub(began)
	after := fake.Activity(meter.Filter{User: "ann@example.com", Since: time.Unix(0, last.Load()).Add(50 * time.Millisecond)})
	if learning > took/2 || after.MostInFlight > cap || after.Calls < messages/2 {
		t.Errorf("learned for %s of %s; then %d calls, up to %d of them in flight, want at most %d", learning, took, after.Calls, after.MostInFlight, cap)
	}
	s, err := first.InFlight(t.Context(), "p", "ann@example.com", "gmail")
	if err != nil || s.InFlight != 0 || s.Learned < 3 || s.Learned > 4 || s.Bytes == 0 {
		t.Errorf("in the end %+v, %v, want 3 or 4 learned and nothing in flight", s, err)
	}
	t.Logf("%d refused within %s, %d messages in %s", refused.Load(), learning.Round(time.Millisecond), messages, took.Round(time.Millisecond))
}
