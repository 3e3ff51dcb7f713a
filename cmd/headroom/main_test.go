package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
)

// realRedis is the Redis of all tests that need one. Tests keep apart by the
// prefix of their queues.
var realRedis *localredis.Server

func TestMain(m *testing.M) {
	redisconn.RouteLog(zap.NewNop())
	if file := os.Getenv(decideEnv); file != "" {
		os.Exit(decide(file)) // this is a process of TestQuotaSetHoldsInEveryProcess
	}
	for _, entry := range os.Environ() { // the settings of whoever runs the tests
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "HEADROOM_") && name != "HEADROOM_TESTDATA" {
			os.Unsetenv(name)
		}
	}
	var err error
	if realRedis, err = localredis.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need a redis-server:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		realRedis.Stop()
		os.Exit(code)
	}))
}

// site is an installation in a folder of its own.
type site struct {
	t    *testing.T
	dir  string
	file string // of the settings
}

// newSite writes settings that name project main and the given Redis.
func newSite(t *testing.T, redisURL string) site {
	t.Helper()
	s := site{t: t, dir: t.TempDir()}
	s.file = filepath.Join(s.dir, "headroom.yaml")
	text := fmt.Sprintf(`
google: {endpoint: "http://127.0.0.1:1", projects: {main: {prices: [gmail-2026-05]}, other: {}}}
redis: {url: "%s", queue_prefix: "t%d-", ledger_prefix: "t%d:"}
store: {path: %s/data/headroom.db, blobs: %s/data/blobs}
web: {listen: "127.0.0.1:0"}
log: {level: warn}
`, redisURL, time.Now().UnixNano(), time.Now().UnixNano(), s.dir, s.dir)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// headroom runs a command of the site to its end.
func (s site) headroom(args ...string) result {
	s.t.Helper()
	return headroom(s.t, append([]string{"--config", s.file}, args...)...)
}

func headroom(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// fails checks that a command ended with code and one line of error.
func (r result) fails(t *testing.T, code int, want string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code = %d, want %d", r.code, code)
	}
	if r.stdout != "" {
		t.Errorf("stdout = %q, want nothing", r.stdout)
	}
	if !strings.HasPrefix(r.stderr, "headroom: ") || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("stderr = %q, want one line with %q", r.stderr, want)
	}
}

// decode checks that a command succeeded and reads its JSON.
func decode[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	if r.code != 0 {
		t.Fatalf("exit code = %d: %s", r.code, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("stdout: %v in %q", err, r.stdout)
	}
	return v
}

// stored reports whether the site has anything in its store.
func (s site) stored() bool {
	_, err := os.Stat(filepath.Join(s.dir, "data"))
	return err == nil
}

// process is a command that runs until it is stopped.
type process struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan int

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// start runs a command in the background; the test stops it at its end.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{t: t, cancel: cancel, ended: make(chan int, 1)}
	go func() {
		p.ended <- run(ctx, args, strings.NewReader(""), lockedWriter{&p.mu, &p.stdout}, lockedWriter{&p.mu, &p.stderr})
	}()
	t.Cleanup(func() { p.stop() })
	return p
}

// stop stops the command as a signal would, and returns its exit code.
func (p *process) stop() int {
	p.cancel()
	return p.wait()
}

func (p *process) wait() int {
	select {
	case code := <-p.ended:
		p.ended <- code
		return code
	case <-time.After(time.Minute):
		p.t.Fatal("the command did not end within a minute")
		return -1
	}
}

func (p *process) out() (stdout, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String(), p.stderr.String()
}

// line waits for a line of stdout that holds text.
func (p *process) line(text string) string {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		stdout, stderr := p.out()
		for line := range strings.Lines(stdout) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
				return strings.TrimSpace(line)
			}
		}
		select {
		case code := <-p.ended:
			p.ended <- code
			if after, _ := p.out(); after == stdout {
				p.t.Fatalf("ended with %d and without %q: %s%s", code, text, stdout, stderr)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.t.Fatalf("no line with %q within 30 s", text)
	return ""
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
