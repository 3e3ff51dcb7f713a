package google

import (
	"net"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
)

const project = "p"

var ann = jobs.Account{Email: "ann@example.com", Project: project}

// sharedRedis is one redis-server for all tests of the package; each has its
// own prefix.
var sharedRedis struct {
	once sync.Once
	addr string
	err  error
	stop func()
}

func TestMain(m *testing.M) {
	m.Run()
	if sharedRedis.stop != nil {
		sharedRedis.stop()
	}
}

func redisAddr(t *testing.T) string {
	t.Helper()
	sharedRedis.once.Do(func() {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			sharedRedis.err = err
			return
		}
		addr := free.Addr().String()
		free.Close()
		_, port, _ := net.SplitHostPort(addr)
		cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
		if sharedRedis.err = cmd.Start(); sharedRedis.err != nil {
			return
		}
		sharedRedis.addr = addr
		sharedRedis.stop = func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	if sharedRedis.err != nil {
		t.Skipf("no redis-server: %v", sharedRedis.err)
	}
	return sharedRedis.addr
}

// newLedger is a real ledger on a real Redis, for one project.
func newLedger(t *testing.T, scale int) *quota.Ledger {
	t.Helper()
	var prices []*price.List
	for _, name := range []string{"gmail-2026-05", "calendar-2026-05"} {
		list, err := price.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		prices = append(prices, list)
	}
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: redisAddr(t)}))
	t.Cleanup(func() { rdb.Close() })
	deadline := time.After(10 * time.Second)
	for rdb.Ping(t.Context()).Err() != nil {
		select {
		case <-deadline:
			t.Fatal("redis-server does not answer")
		case <-time.After(10 * time.Millisecond):
		}
	}
	l, err := quota.NewLedger(quota.Options{Redis: rdb, Scale: scale, KeyPrefix: t.Name() + ":",
		Projects: map[string]quota.Project{project: {Lists: prices}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newTestGoogle fills in what the test does not care about.
func newTestGoogle(t *testing.T, o Options) *Google {
	t.Helper()
	if o.Ledger == nil {
		o.Ledger = newLedger(t, 10)
	}
	if o.Projects == nil {
		o.Projects = map[string]Project{project: {}}
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// newFake is a fake Google with one mailbox, and its URL.
func newFake(t *testing.T, o fakegoogle.Options) (*fakegoogle.Server, *gmail.Mailbox, string) {
	t.Helper()
	if o.Scale == 0 {
		o.Scale = 10
	}
	fake, err := fakegoogle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	t.Cleanup(fake.Close)
	return fake, fake.AddMailbox(ann.Email), server.URL
}

// open opens ann's mailbox in the interactive lane, whose calls do not wait.
func open(t *testing.T, g *Google) *Mailbox {
	t.Helper()
	m, err := g.Mailbox(t.Context(), ann, quota.Interactive, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
