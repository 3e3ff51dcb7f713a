package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/localredis"
)

// TestAProcessIsBackAfterAFailover: connections that a proxy has open lead to the
// former primary, which refuses writes, and the proxy puts a word of its own before
// the refusal. The process says that it is not ready, and soon works with the new one.
func TestAProcessIsBackAfterAFailover(t *testing.T) {
	t.Parallel()
	r := newSite(t, 240)
	proxy, err := localredis.NewProxy(r.redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	proxy.Reword()
	replica, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Stop)
	first, second := redisAt(t, r.redis.Addr), redisAt(t, replica.Addr)
	r.cfg.Redis.URL = config.URL("redis://" + proxy.Addr + "/0")
	r.startBackfill()
	a := r.run(app.RoleScheduler, app.RoleWorker, app.RoleWeb)
	r.wait(a.Store(), "under way", storedAtLeast(50))
	awaitReady(t, a, "ok")

	if err := first.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	replicate(t, second, r.redis.Addr)
	for deadline := time.Now().Add(10 * time.Second); ; {
		if info := second.Info(t.Context(), "replication").Val(); strings.Contains(info, "master_link_status:up") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not follow")
		}
		time.Sleep(10 * time.Millisecond) // Redis tells nobody
	}
	replicate(t, second, "no:one")
	replicate(t, first, replica.Addr)
	awaitReady(t, a, "Redis only reads")
	before := r.job(a)
	proxy.Route(replica.Addr)
	again := time.Now()
	awaitReady(t, a, "ok")
	r.wait(a.Store(), "resumed", storedAtLeast(before.Progress.Stored+20))
	if took := time.Since(again); took > 10*time.Second {
		t.Errorf("the backfill went on %s after the failover, want within 10s", took)
	}
	if j := r.wait(a.Store(), "ended", terminal); j.Progress.Stored != 240 || j.Failures != 0 {
		t.Errorf("job = %+v, want all 240 messages and no failure", j)
	}
	if meter := r.fake.Meter(); meter.OverLimit() != 0 {
		t.Errorf("%d limits were passed", meter.OverLimit())
	}
}

// TestAProcessIsNotReadyWhileRedisTakesNoWrites: a Redis that answers PING is not
// enough.
func TestAProcessIsNotReadyWhileRedisTakesNoWrites(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1)
	rdb := redisAt(t, r.redis.Addr)
	a := r.run(app.RoleWeb)
	awaitReady(t, a, "ok")
	set := func(key, value string) {
		t.Helper()
		if err := rdb.ConfigSet(t.Context(), key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("maxmemory", "1")
	awaitReady(t, a, "Redis is out of memory")
	set("maxmemory", "0")
	awaitReady(t, a, "ok")

	allow := func(rule string) { // no task moves without scripts
		t.Helper()
		if err := rdb.Do(t.Context(), "ACL", "SETUSER", "default", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("-evalsha")
	awaitReady(t, a, "the user of redis.url lacks a permission")
	allow("+evalsha")
	awaitReady(t, a, "ok")

	replicate(t, rdb, "127.0.0.1:1")
	awaitReady(t, a, "Redis only reads")
	replicate(t, rdb, "no:one")
	awaitReady(t, a, "ok")

	set("busy-reply-threshold", "50")
	busy := make(chan error, 1)
	go func() { busy <- rdb.Eval(t.Context(), "while true do end", nil).Err() }()
	awaitReady(t, a, "Redis is busy")
	killer := redisAt(t, r.redis.Addr)
	if err := killer.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-busy
	awaitReady(t, a, "ok")
}

func redisAt(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// replicate makes a Redis a replica of another, or of "no:one".
func replicate(t *testing.T, rdb *redis.Client, of string) {
	t.Helper()
	host, port, _ := strings.Cut(of, ":")
	if err := rdb.Do(t.Context(), "REPLICAOF", host, port).Err(); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until /readyz says of Redis what it should.
func awaitReady(t *testing.T, a *app.App, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + a.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Ready  bool
			Checks map[string]string
		}
		err = json.NewDecoder(answer.Body).Decode(&body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got = body.Checks["redis"]
		if strings.HasPrefix(got, want) && body.Ready == (want == "ok") && (answer.StatusCode == http.StatusOK) == body.Ready {
			return
		}
	}
	t.Fatalf("/readyz says of Redis %q, want %q", got, want)
}
