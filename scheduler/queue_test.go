package scheduler_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// redisServer starts a redis-server of the test's own.
func redisServer(t *testing.T) *redis.Client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not on PATH")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: 15})
	t.Cleanup(func() { rdb.Close() })
	eventually(t, "redis-server answers", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	return rdb
}

// eventually waits up to ten seconds for an event that nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

type rig struct {
	rdb       *redis.Client
	inspector *asynq.Inspector
	queue     *scheduler.AsynqQueue
}

const queueName = "test-backfill"

func newRig(t *testing.T) *rig {
	rdb := redisServer(t)
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	q := &jobs.Queue{Client: asynq.NewClientFromRedisClient(rdb), Name: queueName}
	return &rig{rdb: rdb, inspector: inspector, queue: scheduler.NewAsynqQueue(q, rdb)}
}

// serve runs a worker of the queue until the test ends.
func (r *rig) serve(t *testing.T, handle asynq.HandlerFunc) {
	t.Helper()
	srv := asynq.NewServerFromRedisClient(r.rdb, asynq.Config{Concurrency: 2, Queues: map[string]int{queueName: 1},
		TaskCheckInterval: 20 * time.Millisecond, LogLevel: asynq.FatalLevel, ShutdownTimeout: 100 * time.Millisecond})
	if err := srv.Start(handle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
}

// start runs a scheduler that ticks every second until the test ends.
func (r *rig) start(t *testing.T, s scheduler.Store) {
	t.Helper()
	sched, err := scheduler.New(scheduler.Options{Store: s, Queue: r.queue, Schedule: cron.Every(time.Second),
		Log: zap.NewNop(), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sched.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func (r *rig) look(t *testing.T, ref jobs.TaskRef) scheduler.Task {
	t.Helper()
	got, err := r.queue.Look(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (r *rig) put(t *testing.T, refs ...jobs.TaskRef) {
	t.Helper()
	for _, ref := range refs {
		if err := r.queue.Put(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) key(name string) string { return "asynq:{" + queueName + "}:" + name }

// z is a member of a sorted set.
func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

func TestLookOnARealQueue(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	ref := jobs.TaskRef{Job: id, Epoch: 1, Slice: 1}
	expect := func(when string, want scheduler.TaskState) {
		t.Helper()
		if got := r.look(t, ref); got.State != want {
			t.Errorf("%s: state %s, want %s", when, got.State, want)
		}
	}

	expect("before anything", scheduler.TaskNone)
	r.put(t, ref, ref)
	expect("after two puts", scheduler.TaskPending)
	if n := r.rdb.LLen(ctx, r.key("pending")).Val(); n != 1 {
		t.Errorf("two puts of one slice made %d tasks, want 1", n)
	}
	listed := func() bool {
		t.Helper()
		listed, err := r.queue.Listed(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		return listed
	}
	if !listed() {
		t.Error("a pending task is not listed")
	}
	r.rdb.LRem(ctx, r.key("pending"), 0, ref.TaskID())
	if listed() {
		t.Error("a task that no worker would find is listed")
	}
	r.rdb.LPush(ctx, r.key("pending"), ref.TaskID())

	if err := r.inspector.ArchiveTask(queueName, ref.TaskID()); err != nil {
		t.Fatal(err)
	}
	expect("archived", scheduler.TaskDead)
	r.rdb.ZRem(ctx, r.key("archived"), ref.TaskID())
	expect("its place lost", scheduler.TaskNone)
	r.rdb.HDel(ctx, r.key("t:"+ref.TaskID()), "msg")
	expect("its message lost", scheduler.TaskNone)
	r.rdb.Del(ctx, r.key("t:"+ref.TaskID()))

	began, finish := make(chan struct{}), make(chan error)
	r.serve(t, func(context.Context, *asynq.Task) error {
		close(began)
		return <-finish
	})
	r.put(t, ref)
	<-began
	expect("taken by a worker", scheduler.TaskActive)
	failed := time.Now()
	finish <- fmt.Errorf("try again")
	eventually(t, "a failed task waits in retry", func() bool { return r.look(t, ref).State == scheduler.TaskDelayed })
	if due := r.look(t, ref).Due; due.Before(failed) || due.After(failed.Add(time.Hour)) {
		t.Errorf("a task that failed at %s is due at %s", failed, due)
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.queue.Look(ended, ref); err == nil {
		t.Error("Look went on after its context ended")
	}
}

func TestAWipedRedisGetsItsTasksAndQueuesBack(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	row := job(func(j *jobs.Job) { j.State = jobs.Queued })
	s, ref := newStore(row), row.Ref()
	r.put(t, ref)
	if err := r.rdb.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if got := r.look(t, ref).State; got != scheduler.TaskNone {
		t.Fatalf("after the flush: task %s, want none", got)
	}
	ref.Epoch++

	r.start(t, s)
	eventually(t, "the task is back", func() bool { return r.look(t, ref).State == scheduler.TaskPending })
	queues, err := r.inspector.Queues()
	if err != nil || len(queues) != 1 || queues[0] != queueName {
		t.Errorf("queues known after the flush: %q, %v, want %q", queues, err, queueName)
	}
	ran := make(chan string, 1)
	r.serve(t, func(_ context.Context, task *asynq.Task) error {
		got, err := jobs.ParseTask(task)
		ran <- got.TaskID()
		s.Edit(id, func(j *jobs.Job) { j.State = jobs.Completed })
		return err
	})
	select {
	case got := <-ran:
		if got != ref.TaskID() {
			t.Errorf("ran %s, want %s", got, ref.TaskID())
		}
	case <-time.After(10 * time.Second):
		t.Error("the task that came back did not run")
	}
}

func TestTwoSchedulersOnARealQueueMakeOneTask(t *testing.T) {
	r := newRig(t)
	s := newStore()
	for i := range 20 {
		name := fmt.Sprint("job", i)
		s.Put(job(func(j *jobs.Job) {
			j.ID = name
			if i%2 == 0 {
				j.LeaseUntil = time.Now().Add(-time.Second)
			}
		}))
	}
	var ran sync.Map
	r.start(t, s)
	r.start(t, s)
	eventually(t, "each job has its task", func() bool {
		info, err := r.inspector.GetQueueInfo(queueName)
		return err == nil && info.Pending == 20
	})
	r.serve(t, func(_ context.Context, task *asynq.Task) error {
		ref, err := jobs.ParseTask(task)
		s.Edit(ref.Job, func(j *jobs.Job) { j.State = jobs.Completed })
		if _, twice := ran.LoadOrStore(ref.Job, ref.Epoch); twice {
			t.Errorf("%s ran twice", ref.Job)
		}
		return err
	})
	eventually(t, "the queue is empty", func() bool {
		info, err := r.inspector.GetQueueInfo(queueName)
		return err == nil && info.Size == 0
	})
	for i := range 20 {
		if epoch, _ := ran.Load(fmt.Sprint("job", i)); epoch != int64(4) {
			t.Errorf("job%d ran under epoch %v, want 4", i, epoch)
		}
	}
}
