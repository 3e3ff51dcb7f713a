package quota_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

func TestCheckPassesAProperRedis(t *testing.T) {
	warnings, err := quota.Check(t.Context(), newClient(t, realRedis.Addr))
	if err != nil || warnings != nil {
		t.Errorf("Check = %q, %v, want nothing", warnings, err)
	}
}

// TestCheckRefusesEviction: the command that the error names mends it.
func TestCheckRefusesEviction(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server, err := localredis.Start(t.Context(), "--maxmemory-policy", "allkeys-lru", "--unixsocket", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	local := redis.NewClient(quota.ClientOptions(&redis.Options{Network: "unix", Addr: socket}))
	t.Cleanup(func() { local.Close() })
	if _, err := quota.Check(t.Context(), local); err == nil || !strings.Contains(err.Error(), "run: redis-cli -s "+socket+" CONFIG SET") {
		t.Errorf("Check by a socket = %v, want the command for it", err)
	}
	rdb := newClient(t, server.Addr)
	_, err = quota.Check(t.Context(), rdb)
	want := "the Redis at " + server.Addr + " may evict the quota's windows (maxmemory-policy allkeys-lru); run: redis-cli -u redis://" +
		server.Addr + " CONFIG SET maxmemory-policy noeviction"
	if err == nil || err.Error() != want {
		t.Errorf("Check = %v, want %s", err, want)
	}
	_, command, _ := strings.Cut(err.Error(), server.Addr+" CONFIG ")
	args := []any{"CONFIG"}
	for _, arg := range strings.Fields(command) {
		args = append(args, arg)
	}
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := quota.Check(t.Context(), rdb); err != nil {
		t.Errorf("after the command: %v", err)
	}
}

// TestCheckAsksInfoWhereConfigIsForbidden, as managed Redis have it.
func TestCheckAsksInfoWhereConfigIsForbidden(t *testing.T) {
	server, err := localredis.Start(t.Context(), "--maxmemory-policy", "volatile-ttl")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	admin := newClient(t, server.Addr)
	for user, rule := range map[string]string{"half": "-config", "none": "-info"} {
		if err := admin.Do(t.Context(), "ACL", "SETUSER", user, "on", ">hunter2", "~*", "+@all", "-config", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) *redis.Client {
		rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: server.Addr, Username: user, Password: "hunter2"}))
		t.Cleanup(func() { rdb.Close() })
		return rdb
	}
	if _, err := quota.Check(t.Context(), as("half")); err == nil || !strings.Contains(err.Error(), "volatile-ttl") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without CONFIG: %v, want the policy that INFO tells", err)
	}
	// Without INFO the ledger would not notice a restart. The command mends it.
	_, err = quota.Check(t.Context(), as("none"))
	_, grant, ok := strings.Cut(fmt.Sprint(err), "as an administrator run: redis-cli -u redis://"+server.Addr+" ")
	if !ok || grant != "ACL SETUSER none +info" || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without CONFIG and INFO: %v, want the rule", err)
	}
	list := quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}
	ledger := newLedger(t, as("none"), list, 1)
	if _, err := ledger.Take(t.Context(), caller("zoe@example.com", quota.Interactive), "gmail", 20); !errors.Is(err, quota.ErrUnavailable) || !strings.Contains(err.Error(), "INFO") {
		t.Errorf("a ledger that cannot notice a restart: %v, want it unavailable for that", err)
	}
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "none", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := quota.Check(t.Context(), as("none")); err == nil || !strings.Contains(err.Error(), "volatile-ttl") {
		t.Errorf("after the command: %v, want the policy that INFO tells", err)
	}
	if _, err := newLedger(t, as("none"), list, 1).Take(t.Context(), caller("zoe@example.com", quota.Interactive), "gmail", 20); err != nil {
		t.Errorf("after the command: %v", err)
	}
	warnings, err := quota.Check(t.Context(), newClient(t, miniredis.RunT(t).Addr()))
	if err != nil || len(warnings) != 1 {
		t.Errorf("on the embedded Redis: %q, %v, want a warning only", warnings, err)
	}
}

func TestCheckRefusesSkew(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	for skew, want := range map[time.Duration]string{
		0: "", 4 * time.Second: "", -4 * time.Second: "",
		7 * time.Second:   "ahead of that of the Redis at " + realRedis.Addr + ", more than 5s; set both by NTP",
		-90 * time.Second: "the clock of this machine is 1m30",
	} {
		_, err := quota.CheckAt(t.Context(), rdb, func() time.Time { return time.Now().Add(skew) })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a clock off by %s: %v, want %q", skew, err, want)
		}
	}
}

// TestCheckHalvesTheRoundTrip: a slow answer is no skew.
func TestCheckHalvesTheRoundTrip(t *testing.T) {
	rdb := newClient(t, realRedis.Addr)
	// The question left 4 s ago and the answer comes in 4 s, by this clock.
	times := []time.Duration{-4 * time.Second, 4 * time.Second}
	now := func() time.Time {
		d := times[0]
		times = times[1:]
		return time.Now().Add(d)
	}
	if _, err := quota.CheckAt(t.Context(), rdb, now); err != nil {
		t.Errorf("a round trip of 8 s around Redis' clock: %v", err)
	}
	times = []time.Duration{0, 20 * time.Second}
	if _, err := quota.CheckAt(t.Context(), rdb, now); err == nil {
		t.Error("10 s off in the middle of the round trip: accepted")
	}
}

func TestCheckReportsEverything(t *testing.T) {
	server, err := localredis.Start(t.Context(), "--maxmemory-policy", "allkeys-lru")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	rdb := newClient(t, server.Addr)
	_, err = quota.CheckAt(t.Context(), rdb, func() time.Time { return time.Now().Add(time.Hour) })
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "clock") || !strings.Contains(lines[1], "allkeys-lru") {
		t.Errorf("Check = %v, want both problems, a line each", err)
	}
	server.Kill()
	if _, err := quota.Check(t.Context(), rdb); !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("without Redis: %v, want ErrUnavailable", err)
	}
}

// TestCheckAsksEveryMaster of a cluster.
func TestCheckAsksEveryMaster(t *testing.T) {
	t.Parallel()
	cluster, err := localredis.StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { rdb.Close() })
	if warnings, err := quota.Check(t.Context(), rdb); err != nil || warnings != nil {
		t.Fatalf("Check = %q, %v, want nothing", warnings, err)
	}
	for _, node := range cluster.Nodes[1:] {
		if err := newClient(t, node.Addr).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = quota.Check(t.Context(), rdb)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), cluster.Nodes[1].Addr) || !strings.Contains(err.Error(), cluster.Nodes[2].Addr) {
		t.Errorf("Check = %v, want both masters that evict", err)
	}
}
