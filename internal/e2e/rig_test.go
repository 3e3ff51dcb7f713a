package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/localredis"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const ann = "ann@example.com"

// scale makes a minute of quota two seconds.
const scale = 30

// rig is a whole installation: a fake Google with one mailbox, a redis-server
// of its own, a store, and settings that name them.
type rig struct {
	t      *testing.T
	fake   *fakegoogle.Server
	redis  *localredis.Server
	config string // path of the settings file
	cfg    config.Config
}

func newRig(t *testing.T, messages int) *rig {
	t.Helper()
	return newRigOf(t, fakegoogle.Options{Scale: scale}, map[string]int{ann: messages})
}

// newRigOf makes a rig of a fake with these options and mailboxes of so many
// messages.
func newRigOf(t *testing.T, o fakegoogle.Options, mailboxes map[string]int) *rig {
	t.Helper()
	fake, err := fakegoogle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for email, messages := range mailboxes {
		if err := fake.Load(email, fmt.Sprintf("generate:%d", messages)); err != nil {
			t.Fatal(err)
		}
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			t.Errorf("shut the fake down: %v", err)
		}
	})
	rds, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rds.Stop)
	r := &rig{t: t, fake: fake, redis: rds}
	dir := t.TempDir()
	r.config = filepath.Join(dir, "headroom.yaml")
	text := fmt.Sprintf(`
scale: %d
google: {endpoint: "%s", projects: {main: {prices: [gmail-2026-05], limits: {gmail-2026-05: {user_minute: %d}}}}}
redis: {url: "%s"}
store: {path: "%s/headroom.db", blobs: "%s/blobs"}
worker: {slice: 2s, lease: 2s}
scheduler: {tick: "@every 1s"}
sync: {interval: 0s}
schedules: {calendar-sync: {spec: none}, reconciliation: {spec: none}}
web: {listen: "127.0.0.1:0"}
log: {level: info}
`, o.Scale, url, o.UserLimit, rds.URL(), dir, dir)
	r.setConfig(text)
	for email := range mailboxes {
		if _, err := r.control().AddAccount(t.Context(), email, "main", control.Assignment{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// setConfig writes the settings file and reads it.
func (r *rig) setConfig(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.cfg, err = config.Load(config.Options{Path: r.config}); err != nil {
		r.t.Fatal(err)
	}
}

// run runs a process of some roles until the test ends.
func (r *rig) run(roles ...app.Role) *app.App {
	r.t.Helper()
	log := zaptest.NewLogger(r.t, zaptest.Level(zap.InfoLevel))
	a, err := app.New(r.t.Context(), r.cfg, app.Options{Roles: roles, Version: "test", Log: log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.runApp(a)
	return a
}

// runApp runs a process until the test ends.
func (r *rig) runApp(a *app.App) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				r.t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(time.Minute):
			r.t.Error("Run did not return within a minute")
		}
	})
}

func (r *rig) startBackfill() { r.startBackfillOf(ann) }

func (r *rig) startBackfillOf(email string) {
	r.t.Helper()
	started, err := r.control().StartBackfill(r.t.Context(), email, jobs.Filter{})
	if err != nil || !started.Created {
		r.t.Fatalf("StartBackfill = %+v, %v", started, err)
	}
}

// control is what operators can do, from outside of all processes.
func (r *rig) control() *control.Control { return r.controlOf(r.cfg) }

// controlOf is the same with other settings.
func (r *rig) controlOf(cfg config.Config) *control.Control {
	r.t.Helper()
	c := control.New(control.Options{Config: cfg, Log: zaptest.NewLogger(r.t)})
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Errorf("close a Control: %v", err)
		}
	})
	return c
}

func (r *rig) open() *sqlite.Store {
	r.t.Helper()
	s, err := sqlite.Open(r.t.Context(), sqlite.Options{Path: r.cfg.Store.Path, Existing: true, Log: zaptest.NewLogger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	return s
}

// wait polls the job until it is as wanted, for two minutes at most.
func (r *rig) wait(s *sqlite.Store, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	return r.waitOf(ann, s, what, ok)
}

func (r *rig) waitOf(email string, s *sqlite.Store, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	return r.waitFor(s, jobs.BackfillID(email), what, ok)
}

func (r *rig) waitFor(s *sqlite.Store, id, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last jobs.Job
	for {
		j, err := s.Job(ctx, id)
		switch {
		case err == nil && ok(j):
			return j
		case err == nil && j.State.Terminal():
			r.t.Fatalf("the job ended before %s: %+v", what, j)
		case err == nil:
			last = j
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("not %s in time: %+v", what, last)
		case <-tick.C:
		}
	}
}

func terminal(j jobs.Job) bool { return j.State.Terminal() }

// storedAtLeast reports whether a job has stored so many messages.
func storedAtLeast(n int64) func(jobs.Job) bool {
	return func(j jobs.Job) bool { return j.Progress.Stored >= n }
}

// arrived checks that the store holds what the mailbox does, byte for byte.
func (r *rig) arrived(s *sqlite.Store) {
	r.t.Helper()
	want := map[string]string{}
	for _, m := range r.fake.Mailbox(ann).Messages() {
		want[m.ID] = m.SHA256
	}
	got := map[string]string{}
	for after := ""; ; {
		page, err := s.Messages(r.t.Context(), ann, after, 500)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			after = m.ID
			got[m.ID] = r.hash(m)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("stored messages (-mailbox +store):\n%s", diff)
	}
}

// hash reads a message's blob, whose name is the hash of its content.
func (r *rig) hash(m jobs.Message) string {
	r.t.Helper()
	blob, err := control.Blobs(r.cfg).Open(r.t.Context(), m.SHA256)
	if err != nil {
		r.t.Fatal(err)
	}
	defer blob.Close()
	raw, err := io.ReadAll(blob)
	if err != nil {
		r.t.Fatal(err)
	}
	return sha(raw)
}

func TestABackfillEndToEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, 300)
	a := r.run()
	r.startBackfill()
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != 300 || j.Progress.Done() != 300 {
		t.Errorf("job = %+v, want 300 messages stored", j)
	}
	r.arrived(a.Store())
	m := r.fake.Meter()
	if m.Refused() != 0 || m.OverLimit() != 0 || m.Refetched() != 0 {
		t.Errorf("the fake's meter: %d refused, %d over the limit, %d refetched; want none", m.Refused(), m.OverLimit(), m.Refetched())
	}
	for path, want := range map[string]string{
		"/metrics": `headroom_queue_tasks{queue="backfill",state="archived"} 0`,
		"/":        "backfill:" + ann,
		"/readyz":  `"ready":true`,
	} {
		resp, err := http.Get("http://" + a.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s = %d, %v, want 200 and %s in\n%s", path, resp.StatusCode, err, want, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestAWipedRedisLosesNothing: jobs are in the store, so the scheduler makes
// their tasks again, before the first slice as between any others.
func TestAWipedRedisLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, 400)
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	flush := func() {
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.startBackfill()
	flush()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	r.wait(a.Store(), "half-way", storedAtLeast(150))
	flush()
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != 400 {
		t.Errorf("job = %+v, want 400 messages stored", j)
	}
	r.arrived(a.Store())
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice", n)
	}
}

// binary builds the command once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headroom-test-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "headroom")
	out, err := exec.Command("go", "build", "-o", path, "headroom/cmd/headroom").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// worker starts a worker as an operating system's process of its own.
func (r *rig) worker(path string) *exec.Cmd {
	r.t.Helper()
	return r.process(path, "worker")
}

// process starts a role as an operating system's process of its own.
func (r *rig) process(path, role string, flags ...string) *exec.Cmd {
	r.t.Helper()
	cmd := exec.Command(path, append([]string{"run", "--roles", role, "--config", r.config}, flags...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, testWriter{r.t}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { // where the test ended early
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// TestAWorkerKilledFiveTimes: 600 messages arrive although their worker is
// killed five times, and hardly any is fetched twice.
func TestAWorkerKilledFiveTimes(t *testing.T) {
	// Not beside others: where commits are slow, more is fetched again after a kill.
	if testing.Short() {
		t.Skip("takes about a minute")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	const messages, kills = 600, 5
	r := newRig(t, messages)
	r.run(app.RoleScheduler)
	s := r.open()
	r.startBackfill()
	var last jobs.Progress
	for i := range kills {
		worker := r.worker(path)
		at := int64((i + 1) * messages / (kills + 1))
		j := r.wait(s, fmt.Sprintf("at %d messages", at), storedAtLeast(at))
		if err := worker.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = worker.Wait() // "signal: killed"
		if j.Progress.Done() < last.Done() {
			t.Errorf("progress fell from %+v to %+v", last, j.Progress)
		}
		last = j.Progress
	}
	worker := r.worker(path)
	j := r.wait(s, "ended", terminal)
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the last worker, stopped as usual: %v, want exit code 0", err)
	}
	if j.State != jobs.Completed || j.Progress.Stored != messages || j.Progress.Failed != 0 {
		t.Errorf("job = %+v, want %d messages stored", j, messages)
	}
	r.arrived(s)
	m := r.fake.Meter()
	if n := m.Refetched(); n > messages/20 {
		t.Errorf("%d messages were fetched twice, want at most %d", n, messages/20)
	}
	if m.OverLimit() != 0 || m.Refused() != 0 {
		t.Errorf("the fake's meter: %d over the limit, %d refused; want none", m.OverLimit(), m.Refused())
	}
	t.Logf("%d fetched twice, epoch %d", m.Refetched(), j.Epoch)
}
