package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/quota"
	"headroom/quota/price"
)

// The Transport stands in front of calls that people wait for. They may use all
// of a limit, and what they use is counted with what the backfill uses. This is what
// a service should run: while Redis does not answer, people's calls go on within a
// tenth of each limit, and headroom quota explain tells what was decided and why.
func Example() {
	addr, stop := exampleRedis()
	defer stop()
	server := exampleGmail()
	defer server.Close()

	ctx, cancel := context.WithCancel(context.Background()) // of the service
	list, err := price.Load("gmail-2026-10")
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: addr}))
	defer rdb.Close()
	if _, err := quota.Check(ctx, rdb); err != nil { // a Redis that forgets, or whose clock is off
		log.Fatal(err)
	}
	journal := quota.NewJournal(quota.JournalOptions{Process: "mail-service"})
	ledger, err := quota.NewLedger(quota.Options{
		Redis:      rdb,
		Projects:   map[string]quota.Project{"my-project": {Lists: []*price.List{list}}},
		FailOpen:   0.1, // divided by the number of processes that serve people
		Journal:    journal,
		Log:        zap.NewNop(),             // yours
		Registerer: prometheus.NewRegistry(), // yours
	})
	if err != nil {
		log.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- journal.Run(ctx) }() // writes the rest when ctx ends
	defer func() {
		cancel()
		if err := <-written; err != nil {
			log.Fatal(err)
		}
	}()
	service, err := gmail.NewService(ctx,
		option.WithHTTPClient(&http.Client{Transport: &quota.Transport{Limiter: ledger}}),
		option.WithEndpoint(server.URL)) // without it, Google's own
	if err != nil {
		log.Fatal(err)
	}

	// For each request that somebody waits for:
	caller := quota.Caller{Project: "my-project", User: "ann@example.com", Lane: quota.Interactive}
	message, err := service.Users.Messages.Get("me", "17").Context(quota.WithCaller(ctx, caller)).Do()
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		fmt.Printf("not sent: %s, fits in %s\n", denied.Why(), denied.RetryAfter)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(message.Snippet)

	now, err := ledger.Peek(ctx, caller, "gmail")
	if err != nil {
		log.Fatal(err)
	}
	for _, u := range now.Usage {
		fmt.Printf("%s: %d of %d units used\n", u.Limit, u.Used, u.Units)
	}
	// Output:
	// hello
	// project-minute: 60 of 1200000 units used
	// user-minute: 60 of 6000 units used
}

// A background lane is refused before its share of the limit is full. Whoever
// can wait is told the moment at which the same call fits.
func ExampleLedger_Take() {
	addr, stop := exampleRedis()
	defer stop()
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: addr}))
	defer rdb.Close()
	list, err := price.Load("gmail-2026-05")
	if err != nil {
		log.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{
		Redis:    rdb,
		Fresh:    true, // this Redis was started for us: nothing was spent before
		Projects: map[string]quota.Project{"my-project": {Lists: []*price.List{list}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	backfill := quota.Caller{Project: "my-project", User: "ann@example.com", Lane: quota.Backfill}
	for {
		_, err := ledger.Take(context.Background(), backfill, "gmail", 100)
		if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
			fmt.Printf("refused by the %s of %s: %t that it waits at most 2 s\n",
				denied.Bound, denied.Limit, denied.RetryAfter.Seconds() <= 2)
			return
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// refused by the pace of user-minute: true that it waits at most 2 s
}

// exampleRedis starts an embedded Redis. A real one needs nothing but its
// address.
func exampleRedis() (addr string, stop func()) {
	m, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	return m.Addr(), m.Close
}

// exampleGmail answers every call with one message.
func exampleGmail() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"17","snippet":"hello"}`)
	}))
}
