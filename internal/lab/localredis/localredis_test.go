package localredis_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/localredis"
)

// logged counts what go-redis would print on stderr.
type logged struct{ lines atomic.Int64 }

// Printf implements go-redis' logger.
func (l *logged) Printf(context.Context, string, ...any) { l.lines.Add(1) }

func TestStartAnswersAndIsQuiet(t *testing.T) {
	var log logged
	redis.SetLogger(&log)
	s, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if n := log.lines.Load(); n != 0 {
		t.Errorf("go-redis logged %d lines while the server started, want 0", n)
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer rdb.Close()
	if answer, err := rdb.Ping(t.Context()).Result(); err != nil || answer != "PONG" {
		t.Errorf("PING = %q, %v", answer, err)
	}
	s.Kill()
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("Restart after Kill = %v", err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("Restart of a running server = nil, want an error")
	}
}

func TestStartTellsWhatRedisSays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := localredis.Start(t.Context(), "--no-such-option", "1")
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("Start = %v, want Redis' own words", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %s, %v", fmt.Sprint(left), err)
	}
}
