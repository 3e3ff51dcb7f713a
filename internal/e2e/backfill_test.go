package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"headroom/internal/app"
	"headroom/jobs"
)

func TestABackfillEndToEnd(t *testing.T) {
	t.Parallel()
	r := newSite(t, 300)
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
	r := newSite(t, 400)
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
	r := newSite(t, messages)
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
