package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
)

// TestComplaintsAboutRedisAreNotRepeated: 90 seconds of a Redis without memory are
// tens of lines, each with the cause in words; what is about something else is all
// logged.
func TestComplaintsAboutRedisAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, err := NewLog(config.Log{Level: "info", Format: "json"}, &out)
		if err != nil {
			t.Fatal(err)
		}
		oom := "OOM command not allowed when used memory > 'maxmemory'."
		lanes := []*zap.Logger{log.Named("asynq").With(zap.String("lane", "sync")), log.Named("asynq").With(zap.String("lane", "backfill"))}
		for range 90 {
			for _, lane := range lanes {
				lane.Sugar().Errorf("Dequeue error: UNKNOWN: redis eval error: %s", oom)
				lane.Sugar().Warnf("Could not mark task id=%d as done: %s", time.Now().Unix(), oom)
			}
			log.Named("scheduler").Error("tick failed", zap.Error(errors.New("register queue: "+oom)))
			log.Named("scheduler").Warn("disk slow", zap.Error(errors.New("BUSYBODY")))
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		redis, repeated := 0, 0
		for _, line := range lines {
			if strings.Contains(line, `"cause":"Redis is out of memory: raise its maxmemory or free some"`) {
				redis++
			}
			if strings.Contains(line, `"repeated":`) {
				repeated++
			}
		}
		if redis != 6 || repeated != 3 || len(lines) != redis+90 {
			t.Errorf("%d lines, %d of them of Redis, %d with a count, want 96, 6 and 3:\n%s", len(lines), redis, repeated, lines[0])
		}
	})
}

// TestAllRefusalsOfRedisAreComplaints: what Redis answers until somebody acts comes
// as often as what passes.
func TestAllRefusalsOfRedisAreComplaints(t *testing.T) {
	for _, reply := range []string{
		"READONLY You can't write against a read only replica.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"LOADING Redis is loading the dataset in memory",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"ERR max number of clients reached",
	} {
		if redisconn.Refusal("Dequeue error: UNKNOWN: redis eval error: "+reply+" ") == "" {
			t.Errorf("%q is no refusal", reply)
		}
	}
}
