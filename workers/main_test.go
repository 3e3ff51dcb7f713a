package workers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"headroom/internal/lab/localredis"
	"headroom/jobs"
	"headroom/quota"
)

// realRedis serves all tests that run a real Asynq; each has a queue of its own.
var realRedis *localredis.Server

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if realRedis, err = localredis.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "workers tests need a redis-server:", err)
		return 1
	}
	code := m.Run()
	realRedis.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
			return 1
		}
	}
	return code
}

// plant is Workers on a real Redis, with the store and Google in memory.
type plant struct {
	*Workers
	t         *testing.T
	store     *testStore
	queue     *jobs.Queue
	inspector *asynq.Inspector
}

func newPlant(t *testing.T, google Google, change ...func(*Options)) *plant {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: realRedis.Addr})
	t.Cleanup(func() { rdb.Close() })
	o := Options{
		Redis: rdb, QueuePrefix: fmt.Sprintf("%s-%d-", t.Name(), time.Now().UnixNano()), Lanes: []quota.Lane{quota.Backfill},
		Store: newTestStore(t), Blobs: &memBlobs{}, Google: google, Parser: subjectOf,
		Log: zaptest.NewLogger(t), Registerer: prometheus.NewRegistry(),
	}
	for _, f := range change {
		f(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &plant{
		Workers: w, t: t, store: o.Store.(*testStore),
		queue: &jobs.Queue{
			Client: asynq.NewClientFromRedisClient(rdb),
			Name:   jobs.QueueName(o.QueuePrefix, string(quota.Backfill)),
		},
		inspector: asynq.NewInspectorFromRedisClient(rdb),
	}
}

// start starts a backfill.
func (p *plant) start(email string) jobs.TaskRef {
	p.t.Helper()
	ref := p.store.start(email)
	if err := p.queue.Put(p.t.Context(), ref); err != nil {
		p.t.Fatal(err)
	}
	return ref
}

// run runs the workers until stop is called, or else until the test ends. Stop
// returns how long Run took to return, and what.
func (p *plant) run() (stop func() (time.Duration, error)) {
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stopped := false
	stop = func() (time.Duration, error) {
		stopped = true
		asked := time.Now()
		cancel()
		err := <-done
		return time.Since(asked), err
	}
	p.t.Cleanup(func() {
		if !stopped {
			if _, err := stop(); err != nil {
				p.t.Errorf("Run = %v, want nil", err)
			}
		}
	})
	return stop
}

// eventually waits until what holds.
func (p *plant) eventually(what string, limit time.Duration, holds func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %s: %s", limit, what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// ends waits until the job has ended, and returns its row.
func (p *plant) ends(ref jobs.TaskRef, limit time.Duration) jobs.Job {
	p.t.Helper()
	p.eventually("the job ends", limit, func() bool { return p.store.job(ref.Job).State.Terminal() })
	return p.store.job(ref.Job)
}

// info returns the queue's state as Asynq tells it, once no task is active.
func (p *plant) info() *asynq.QueueInfo {
	p.t.Helper()
	var info *asynq.QueueInfo
	p.eventually("no task is active", 5*time.Second, func() bool {
		var err error
		if info, err = p.inspector.GetQueueInfo(p.queue.Name); err != nil {
			p.t.Fatal(err)
		}
		return info.Active == 0
	})
	return info
}
