package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"headroom/internal/web"
	"headroom/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server on an embedded Redis.
type fixture struct {
	*web.Server
	redis *miniredis.Miniredis
	rdb   *redis.Client
}

func start(t *testing.T, change func(*web.Options)) fixture {
	t.Helper()
	mr := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mr.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	reg := prometheus.NewRegistry()
	o := web.Options{
		Listen:     "127.0.0.1:0",
		Version:    "v1.2.3",
		Redis:      rdb,
		Lanes:      []web.Lane{{Name: "interactive", Queue: "t-interactive"}, {Name: "backfill", Queue: "t-backfill"}},
		JobsFunc:   func(context.Context, int) ([]jobs.Job, int, error) { return nil, 0, nil },
		Checks:     []web.Check{{Name: "redis", Func: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }}},
		Gatherer:   reg,
		Registerer: reg,
		Log:        zaptest.NewLogger(t),
	}
	if change != nil {
		change(&o)
	}
	s, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{s, mr, rdb}
}

func (f fixture) get(t *testing.T, path string) (int, string, http.Header) {
	t.Helper()
	return f.do(t, http.MethodGet, path)
}

func (f fixture) do(t *testing.T, method, path string) (int, string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost"
	f.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// enqueue puts slices of a job on the backfill queue, as the product does.
func (f fixture) enqueue(t *testing.T, slices int64) {
	t.Helper()
	client := asynq.NewClientFromRedisClient(f.rdb)
	q := &jobs.Queue{Client: client, Name: "t-backfill"}
	for i := range slices {
		if err := q.Put(t.Context(), jobs.TaskRef{Job: jobs.BackfillID("ann@example.com"), Epoch: 1, Slice: i}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMetricsShowTheQueues(t *testing.T) {
	f := start(t, nil)
	f.enqueue(t, 3)
	code, body, _ := f.get(t, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics = %d: %s", code, body)
	}
	for _, line := range []string{
		`headroom_queue_up 1`,
		`headroom_queue_tasks{queue="t-backfill",state="pending"} 3`,
		`headroom_queue_tasks{queue="t-interactive",state="pending"} 0`,
		`headroom_queue_processed_total{queue="t-backfill"} 0`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("/metrics lacks %s in\n%s", line, body)
		}
	}
	if strings.Contains(body, `oldest_pending_seconds{queue="t-backfill"} 0`+"\n") {
		t.Error("the first pending task has not waited at all")
	}
}

func TestAScrapeSucceedsWhateverRedisDoes(t *testing.T) {
	f := start(t, nil)
	f.enqueue(t, 1)
	f.redis.FlushAll()
	f.redis.Set("asynq:{t-backfill}:pending", "no list") // a key of the wrong type
	code, body, _ := f.get(t, "/metrics")
	if code != http.StatusOK || !strings.Contains(body, `headroom_queue_tasks{queue="t-interactive",state="pending"} 0`) {
		t.Errorf("/metrics with a broken key = %d:\n%s\nwant the other queue", code, body)
	}
	f.redis.Close()
	code, body, _ = f.get(t, "/metrics")
	if code != http.StatusOK || !strings.Contains(body, "headroom_queue_up 0\n") {
		t.Errorf("/metrics without Redis = %d:\n%s\nwant 200 and headroom_queue_up 0", code, body)
	}
}

func TestAsynqmonShowsTheQueuesAndChangesNothing(t *testing.T) {
	f := start(t, nil)
	f.enqueue(t, 2)
	if code, _, h := f.get(t, "/queues"); code/100 != 3 || h.Get("Location") != "/queues/" {
		t.Errorf("/queues = %d to %q, want a redirect to /queues/", code, h.Get("Location"))
	}
	code, body, h := f.get(t, "/queues/")
	if code != http.StatusOK || !strings.Contains(body, "<html") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("/queues/ = %d, CSP %q, want Asynqmon's page with its own assets only", code, h.Get("Content-Security-Policy"))
	}
	code, body, _ = f.get(t, "/queues/api/queues")
	var got struct {
		Queues []struct {
			Queue   string `json:"queue"`
			Pending int    `json:"pending"`
		} `json:"queues"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
		t.Fatalf("/queues/api/queues = %d %v: %s", code, err, body)
	}
	if len(got.Queues) != 1 || got.Queues[0].Queue != "t-backfill" || got.Queues[0].Pending != 2 {
		t.Errorf("queues = %+v, want t-backfill with 2 pending", got.Queues)
	}
	if code, _, _ := f.do(t, http.MethodDelete, "/queues/api/queues/t-backfill"); code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE of a queue = %d, want 405", code)
	}
}

func TestReadinessNamesEachCheck(t *testing.T) {
	f := start(t, func(o *web.Options) {
		o.Checks = append(o.Checks, web.Check{Name: "store", Func: func(context.Context) error { return nil }})
	})
	get := func() (int, map[string]any) {
		code, body, _ := f.get(t, "/readyz")
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("/readyz: %v in %s", err, body)
		}
		return code, got
	}
	code, got := get()
	want := map[string]any{"ready": true, "checks": map[string]any{"redis": "ok", "store": "ok"}}
	if diff := cmp.Diff(want, got); code != http.StatusOK || diff != "" {
		t.Errorf("/readyz = %d (-want +got):\n%s", code, diff)
	}
	f.redis.Close()
	code, got = get()
	checks := got["checks"].(map[string]any)
	if code != http.StatusServiceUnavailable || got["ready"] != false || checks["store"] != "ok" || checks["redis"] == "ok" {
		t.Errorf("/readyz without Redis = %d %v, want 503 and only Redis at fault", code, got)
	}
	if code, body, _ := f.get(t, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz without Redis = %d %q, want 200: the process is up", code, body)
	}
}

func TestTheIndexShowsJobsAndLanes(t *testing.T) {
	all := make([]jobs.Job, 50)
	for i := range all {
		all[i] = jobs.Job{ID: "old", State: jobs.Completed, LastError: "Google was away"}
	}
	all[1].State = jobs.Failed
	all[2].State, all[2].Failures, all[2].LastError = jobs.Waiting, 2, "it has \u202egone"
	all[0] = jobs.Job{
		ID: jobs.BackfillID("ann@example.com"), State: jobs.Waiting, WaitingFor: "user-minute <of> Gmail",
		Progress: jobs.Progress{Expected: 1200, Stored: 1100}, UpdatedAt: time.Now(),
	}
	f := start(t, func(o *web.Options) {
		o.JobsFunc = func(_ context.Context, limit int) ([]jobs.Job, int, error) {
			if limit != 50 {
				t.Errorf("the index asks for %d jobs, want 50", limit)
			}
			return all, 61, nil
		}
	})
	f.enqueue(t, 4)
	code, body, h := f.get(t, "/")
	if code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
		t.Fatalf("/ = %d %s", code, h.Get("Content-Type"))
	}
	for _, want := range []string{
		"backfill:ann@example.com", "waiting", "1,100", "user-minute &lt;of&gt; Gmail", "The newest 50 of 61",
		"t-backfill", `<td class="n" data-name="pending">4</td>`, `<small class="bad">Google was away</small>`, `<small>earlier: Google was away</small>`, `<small class="bad">it has  gone</small>`, `href="/queues/"`, `href="/metrics"`, "v1.2.3",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the index lacks %q in\n%s", want, body)
		}
	}
	// On a phone a row becomes a block, whose cells carry their names themselves.
	if cells, named := strings.Count(body, "<td"), strings.Count(body, "data-name="); cells == 0 || cells != named || !strings.Contains(body, "@media (max-width: 46rem)") {
		t.Errorf("%d of %d cells say what they are", named, cells)
	}
	f.redis.Close()
	if code, body, _ = f.get(t, "/"); code != http.StatusOK || !strings.Contains(body, "backfill:ann@example.com") {
		t.Errorf("the index without Redis = %d, want 200 and the jobs", code)
	}
	if code, _, _ = f.get(t, "/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing = %d, want 404", code)
	}
}

// TestASourceThatHangsTakesNothingFromTheOthers: Redis takes connections and never
// answers.
func TestASourceThatHangsTakesNothingFromTheOthers(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	rdb := redis.NewClient(&redis.Options{Addr: deaf.Addr().String(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: -1})
	defer rdb.Close()
	late := make(chan struct{})
	defer close(late)
	f := start(t, func(o *web.Options) {
		o.Redis = rdb
		o.Checks = []web.Check{
			{Name: "redis", Func: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }},
			{Name: "stubborn", Func: func(context.Context) error { <-late; return nil }},
			{Name: "store", Func: func(context.Context) error { return nil }},
		}
		o.JobsFunc = func(ctx context.Context, _ int) ([]jobs.Job, int, error) {
			return []jobs.Job{{ID: "backfill:ann@example.com"}}, 1, ctx.Err()
		}
	})
	began := time.Now()
	code, body, _ := f.get(t, "/")
	if took := time.Since(began); code != http.StatusOK || took > 6*time.Second {
		t.Errorf("/ = %d after %s, want 200 within two seconds or so", code, took)
	}
	for _, want := range []string{"backfill:ann@example.com", "unknown: Redis did not answer within 2s", `redis: <span class="bad">`,
		`stubborn: <span class="bad">no answer within 2s`, "store: <span >ok"} {
		if !strings.Contains(body, want) {
			t.Errorf("the index lacks %q in\n%s", want, body)
		}
	}
	if strings.Contains(body, "the store did not answer") {
		t.Error("the store is blamed for Redis")
	}
}

func TestAPortInUseIsOneLineWithTheNextStep(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = web.Listen(t.Context(), taken.Addr().String(), "web.listen")
	want := "cannot listen on " + taken.Addr().String() + ": address already in use; stop what uses the port, or set web.listen (HEADROOM_WEB_LISTEN)"
	if !errors.Is(err, syscall.EADDRINUSE) || err.Error() != want {
		t.Errorf("Listen = %v, want %s", err, want)
	}
}

func TestMetricsAloneHaveNoPages(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "answer"}))
	s := web.NewMetrics(web.Options{
		Listen: "127.0.0.1:0", Gatherer: reg, Log: zaptest.NewLogger(t),
		Checks: []web.Check{{Name: "store", Func: func(context.Context) error { return errors.New("gone") }}},
	})
	f := fixture{Server: s}
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/metrics": {http.StatusOK, "answer 0\n"},
		"/healthz": {http.StatusOK, "ok\n"},
		"/readyz":  {http.StatusServiceUnavailable, `{"ready":false,"checks":{"store":"gone"}}` + "\n"},
		"/":        {http.StatusNotFound, "404 page not found\n"},
		"/queues/": {http.StatusNotFound, "404 page not found\n"},
	} {
		if code, body, _ := f.get(t, path); code != want.code || !strings.HasSuffix(body, want.body) {
			t.Errorf("%s = %d %q, want %d %q", path, code, body, want.code, want.body)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	f := start(t, nil)
	ln, err := web.Listen(t.Context(), "127.0.0.1:0", "web.listen")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, ln) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(body) != "ok\n" {
		t.Errorf("/healthz = %q, %v", body, err)
	}
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Serve did not return within 5 s")
	}
	if _, err := client.Get("http://" + ln.Addr().String() + "/healthz"); err == nil {
		t.Error("the port still answers")
	}
}
