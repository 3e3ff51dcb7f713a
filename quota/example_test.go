package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/quota"
)

// The Transport stands in front of calls that people wait for. They may use all
// of a limit, and what they use is counted with what the backfill uses.
func Example() {
	addr, stop := exampleRedis()
	defer stop()
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: addr}))
	defer rdb.Close()
	list, err := quota.LoadList("gmail-2026-05")
	if err != nil {
		log.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{
		Redis:    rdb,
		Projects: map[string]quota.Project{"my-project": {Lists: []*quota.PriceList{list}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := exampleGmail()
	defer server.Close()
	service, err := gmail.NewService(context.Background(),
		option.WithHTTPClient(&http.Client{Transport: &quota.Transport{Ledger: ledger}}),
		option.WithEndpoint(server.URL)) // without it, Google's own
	if err != nil {
		log.Fatal(err)
	}

	caller := quota.Caller{Project: "my-project", User: "ann@example.com", Lane: quota.Interactive}
	ctx := quota.WithCaller(context.Background(), caller)
	message, err := service.Users.Messages.Get("me", "17").Context(ctx).Do()
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		fmt.Printf("not sent: fits in %s\n", denied.RetryAfter)
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
	// project-minute: 20 of 1200000 units used
	// user-minute: 20 of 6000 units used
}

// A background lane is refused before its share of the limit is full. Whoever
// can wait is told the moment at which the same call fits.
func ExampleLedger_Take() {
	addr, stop := exampleRedis()
	defer stop()
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: addr}))
	defer rdb.Close()
	list, err := quota.LoadList("gmail-2026-05")
	if err != nil {
		log.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{
		Redis:    rdb,
		Fresh:    true, // this Redis was started for us: nothing was spent before
		Projects: map[string]quota.Project{"my-project": {Lists: []*quota.PriceList{list}}},
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
