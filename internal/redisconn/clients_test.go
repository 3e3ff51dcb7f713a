package redisconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/config"
	"headroom/internal/lab/localredis"
)

// oldRedis answers like a Redis of some version that knows PING, INFO and TIME only.
func oldRedis(t *testing.T, version string) config.URL {
	t.Helper()
	return serveTCP(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			var n int
			if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
				return
			}
			args := make([]string, n)
			for i := range args {
				if _, err := r.ReadString('\n'); err != nil { // the length
					return
				}
				arg, err := r.ReadString('\n')
				if err != nil {
					return
				}
				args[i] = strings.TrimSpace(arg)
			}
			switch strings.ToLower(args[0]) {
			case "ping":
				io.WriteString(c, "+PONG\r\n")
			case "info":
				info := "# Server\r\nredis_version:" + version + "\r\n"
				fmt.Fprintf(c, "$%d\r\n%s\r\n", len(info), info)
			case "time":
				io.WriteString(c, "*2\r\n$10\r\n"+strconv.FormatInt(time.Now().Unix(), 10)+"\r\n$1\r\n0\r\n")
			default:
				fmt.Fprintf(c, "-ERR unknown command `%s`\r\n", args[0])
			}
		}
	})
}

// skewedRedis is a Redis whose clock is an hour ahead.
func skewedRedis(t *testing.T) config.URL {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(time.Now().Add(time.Hour))
	return config.URL("redis://" + server.Addr())
}

// connect makes clients of a Redis that passes the check.
func connect(ctx context.Context, url config.URL, conns int, log *zap.Logger) (*Clients, error) {
	c, err := New(url, conns)
	if err != nil {
		return nil, err
	}
	if err := c.Check(ctx, log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// TestConnectWarnsOfASilentPolicy: a Redis that does not tell whether it evicts
// is taken, and the log says what to see to.
func TestConnectWarnsOfASilentPolicy(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	c, err := connect(t.Context(), oldRedis(t, "7.2.0"), 1, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if entries := logged.All(); len(entries) != 1 || !strings.Contains(entries[0].Message, "see to it that it is noeviction") {
		t.Errorf("logged %+v, want one warning of the policy", entries)
	}
}

// serveTCP answers connections on a free port.
func serveTCP(t *testing.T, serve func(net.Conn)) config.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return config.URL("redis://" + ln.Addr().String())
}

func TestConnectSaysWhatIsWrongInOneLine(t *testing.T) {
	locked, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: locked.Addr})
	defer rdb.Close()
	if err := rdb.ConfigSet(t.Context(), "requirepass", "hunter2").Err(); err != nil {
		t.Fatal(err)
	}
	forgetful, err := localredis.Start(t.Context(), "--maxmemory-policy", "allkeys-lru")
	if err != nil {
		t.Fatal(err)
	}
	defer forgetful.Stop()
	for user, rule := range map[string]string{"uninformed": "-info", "mute": "-ping"} {
		if err := rdb.Do(t.Context(), "ACL", "SETUSER", user, "on", ">hunter2", "~*", "&*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	renamed, err := localredis.Start(t.Context(), "--rename-command", "INFO", "TELL")
	if err != nil {
		t.Fatal(err)
	}
	defer renamed.Stop()
	for name, row := range map[string]struct {
		url  config.URL
		want string
	}{
		"evicts keys":    {config.URL(forgetful.URL()), "maxmemory-policy allkeys-lru); run: redis-cli -u redis://" + forgetful.Addr + " CONFIG SET maxmemory-policy noeviction"},
		"another time":   {skewedRedis(t), "s behind that of the Redis at 127.0.0.1:"},
		"nobody there":   {"redis://127.0.0.1:1", "no Redis at redis://127.0.0.1:1: connection refused; start one (redis-server) or set redis.url (HEADROOM_REDIS_URL)"},
		"no socket":      {"unix:///nowhere/redis.sock", "no Redis at unix:///nowhere/redis.sock: no such file or directory; start one"},
		"too old":        {oldRedis(t, "5.0.7"), "is version 5.0.7, Headroom needs 6.2 or later; upgrade it or set redis.url"},
		"just too old":   {oldRedis(t, "6.0.16"), "is version 6.0.16, Headroom needs 6.2"},
		"no password":    {config.URL(locked.URL()), "refuses the user or password; set them in redis.url"},
		"wrong password": {config.URL("redis://:nonsense@" + locked.Addr), "refuses the user or password; set them in redis.url"},
		"no Redis but a web server": {
			serveTCP(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), "set redis.url",
		},
		"a user without INFO": {config.URL("redis://uninformed:hunter2@" + locked.Addr), "does not let its user run INFO, by which the ledger notices that Redis lost what was spent; " +
			"as an administrator run: redis-cli -u redis://" + locked.Addr + " ACL SETUSER uninformed +info"},
		"a user without PING":   {config.URL("redis://mute:hunter2@" + locked.Addr), "it knows the user of redis.url (HEADROOM_REDIS_URL), who lacks a permission; as an administrator run for it: ACL SETUSER USER +ping"},
		"another name for INFO": {config.URL(renamed.URL()), "does not let its user run INFO, by which the ledger notices that Redis lost what was spent (ERR unknown command"},
		"no such database":      {config.URL("redis://:hunter2@" + locked.Addr + "/99"), "set redis.url"},
		"no number":             {"redis://127.0.0.1:6379/first", "its form is redis://USER:PASSWORD@HOST:PORT/DB"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connect(t.Context(), row.url, 1, zap.NewNop())
			if err == nil {
				c.Close()
				t.Fatal("connect succeeded")
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("connect = %q, want one line with %q", err, row.want)
			}
			if strings.Contains(err.Error(), "nonsense") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("connect = %q shows a password", err)
			}
		})
	}
}

func TestConnectGivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	url := serveTCP(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	start := time.Now()
	_, err := connect(t.Context(), url, 1, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "no answer within 3s") {
		t.Errorf("connect = %v, want no answer", err)
	}
	if took := time.Since(start); took > 2*Timeout {
		t.Errorf("connect took %s", took)
	}
}

func TestConnectTakesWhatWillDo(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	for name, url := range map[string]config.URL{
		"redis-server":       config.URL(server.URL()),
		"the embedded Redis": config.URL("redis://" + miniredis.RunT(t).Addr()),
		"just new enough":    oldRedis(t, "6.2.0"),
		"much newer":         oldRedis(t, "10.0.1"),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connect(t.Context(), url, 100, zap.NewNop())
			if err != nil {
				t.Fatalf("connect = %v, want nil", err)
			}
			if got := c.Ledger.Options().MaxRetries; got != 0 { // go-redis turns -1 into 0
				t.Errorf("the ledger's client repeats a command %d times", got)
			}
			if err := c.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
}

// TestTheQueueOutlastsARestartOfRedis: what Asynq writes while Redis is away
// must arrive, since Asynq itself gives up at the first error.
func TestTheQueueOutlastsARestartOfRedis(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c, err := connect(t.Context(), config.URL(server.URL()), 1, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server.Kill()
	if err := c.Short.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a killed Redis answers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	written := make(chan error, 1)
	go func() { written <- c.Queue.Set(ctx, "k", "v", 0).Err() }()
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Errorf("a write during the restart = %v, want nil", err)
	}
	if got := c.Short.Get(ctx, "k").Val(); got != "v" {
		t.Errorf("read %q, want the write", got)
	}
}

// TestTheQueueIsBackSoonBehindAProxy: a proxy accepts connections while Redis is
// away, and what was begun on them must not be waited for once it is back.
func TestTheQueueIsBackSoonBehindAProxy(t *testing.T) {
	t.Parallel()
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	proxy, err := localredis.NewProxy(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	c, err := connect(t.Context(), config.URL("redis://"+proxy.Addr), 1, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Queue.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	dialled := make(chan struct{}, 100)
	c.Queue.AddHook(dialHook(func() { dialled <- struct{}{} }))
	server.Kill()
	written := make(chan error, 1)
	go func() { written <- c.Queue.Set(t.Context(), "k", "v", 0).Err() }()
	<-dialled // the proxy has taken a connection, or closed it already
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	if err := <-written; err != nil {
		t.Errorf("a write while Redis was away = %v, want nil", err)
	}
	if took := time.Since(up); took > 5*time.Second {
		t.Errorf("the write came through %s after Redis was back, want within 5s", took)
	}
}

// A dialHook is told of each connection that was dialled, or was not to be had.
type dialHook func()

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		defer h()
		return next(ctx, network, addr)
	}
}

func (dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
