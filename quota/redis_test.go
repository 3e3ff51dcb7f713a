package quota_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

var realRedis *localredis.Server

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	if os.Getenv("HEADROOM_TEST_SPENDER") != "" {
		os.Exit(spend()) // this is a process of TestSixteenProcesses
	}
	var err error
	realRedis, err = localredis.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need a redis-server:", err)
		os.Exit(1)
	}
	code := m.Run()
	realRedis.Stop()
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// onEveryRedis runs a test on a real Redis and on the embedded one.
func onEveryRedis(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("redis", func(t *testing.T) {
		test(t, newClient(t, realRedis.Addr))
	})
	t.Run("embedded", func(t *testing.T) {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		test(t, newClient(t, server.Addr()))
	})
}

func newClient(t testing.TB, addr string) *redis.Client {
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: addr}))
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

var prefixes atomic.Int64

// ownPrefix is a prefix of keys that nobody else in the process has.
func ownPrefix(t testing.TB) string { return fmt.Sprintf("%s-%d:", t.Name(), prefixes.Add(1)) }

// newLedger makes a ledger of its own for a test: no other test sees its keys.
func newLedger(t testing.TB, rdb redis.UniversalClient, project quota.Project, scale int) *quota.Ledger {
	t.Helper()
	ledger, err := quota.NewLedger(quota.Options{
		Redis: rdb, Projects: map[string]quota.Project{"p": project}, Scale: scale,
		KeyPrefix: ownPrefix(t), Fresh: true, FailOpen: quota.NoFailOpen,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// gmailWith is the May 2026 price list with other limits.
func gmailWith(t testing.TB, user, project int64) *price.List {
	t.Helper()
	list, err := price.Load("gmail-2026-05")
	if err == nil {
		list, err = list.WithLimit(price.UserMinute, user)
	}
	if err == nil {
		list, err = list.WithLimit(price.ProjectMinute, project)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}
