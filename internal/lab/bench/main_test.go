package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
	"headroom/quota"
)

var realRedis *localredis.Server

func TestMain(m *testing.M) {
	redisconn.RouteLog(zap.NewNop())
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

func newClient(t *testing.T) *redis.Client {
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: realRedis.Addr}))
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// checkJudgement compares a run's missed targets and its broken promise with what
// they should be, "" for none.
func checkJudgement(t *testing.T, f Figures, targets Targets, missed, broken string) {
	t.Helper()
	if got := f.Broken(); got != broken {
		t.Errorf("broken: %q, want %q", got, broken)
	}
	if got := strings.Join(targets.Missed, "; "); got != missed || targets.Met != (missed == "") {
		t.Errorf("targets met %v, missed %q; want %q", targets.Met, got, missed)
	}
}
