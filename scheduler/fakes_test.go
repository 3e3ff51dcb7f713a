package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"headroom/internal/store/memstore"
	"headroom/internal/store/storetest"
	"headroom/jobs"
	"headroom/scheduler"
)

// The seam of stores is at least what schedulers call.
var _ interface {
	scheduler.Store
	scheduler.AdmissionStore
	scheduler.ScheduleStore
	scheduler.SyncStore
	scheduler.CalendarSyncStore
	scheduler.WatchStore
} = storetest.Store(nil)

// testStore is a store in memory that can be made to fail or hang.
type testStore struct {
	*memstore.Store

	mu      sync.Mutex
	fail    error       // returned by LiveJobs when set
	hold    atomic.Bool // LiveJobs blocks until its context ends
	lists   int
	repairs int // times that wrong moments were looked for
	stale   int // takeovers refused because the row was written since
}

func newStore(rows ...jobs.Job) *testStore { return newStoreAt(time.Now, rows...) }

// newStoreAt is newStore with a clock.
func newStoreAt(now func() time.Time, rows ...jobs.Job) *testStore {
	s := &testStore{Store: memstore.New(memstore.Options{NowFunc: now})}
	for _, j := range rows {
		s.Put(j)
	}
	return s
}

func (s *testStore) LiveJobs(ctx context.Context) ([]jobs.Job, error) {
	if s.hold.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	s.lists++
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	return s.Store.LiveJobs(ctx)
}

func (s *testStore) TakeOver(ctx context.Context, seen jobs.Job) (jobs.Job, error) {
	j, err := s.Store.TakeOver(ctx, seen)
	if errors.Is(err, jobs.ErrStale) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stale++
	}
	return j, err
}

// failWith makes LiveJobs return err; nil ends that.
func (s *testStore) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *testStore) RepairMoments(ctx context.Context) ([]jobs.RepairedMoment, error) {
	s.mu.Lock()
	s.repairs++
	s.mu.Unlock()
	return s.Store.RepairMoments(ctx)
}

// memQueue keeps tasks in memory, with the one rule that matters: an id exists
// once.
type memQueue struct {
	mu         sync.Mutex
	tasks      map[string]scheduler.Task
	unlisted   map[string]bool // pending tasks that no worker would find
	putAt      map[string]time.Time
	puts       int // that made a task
	registered int
	state      scheduler.QueueState
	failLook   map[string]error // by job
	onLook     func()           // called before each look, if set
}

func newQueue() *memQueue {
	return &memQueue{tasks: map[string]scheduler.Task{}, unlisted: map[string]bool{}, putAt: map[string]time.Time{},
		state: scheduler.QueueState{Name: queueName}}
}

func (q *memQueue) Put(_ context.Context, ref jobs.TaskRef) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tasks[ref.TaskID()].State == scheduler.TaskNone {
		q.tasks[ref.TaskID()] = scheduler.Task{State: scheduler.TaskPending}
		q.putAt[ref.TaskID()] = time.Now()
		q.puts++
	}
	return nil
}

func (q *memQueue) Look(_ context.Context, ref jobs.TaskRef) (scheduler.Task, error) {
	if q.onLook != nil {
		q.onLook()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.failLook[ref.Job]; err != nil {
		return scheduler.Task{}, err
	}
	return q.tasks[ref.TaskID()], nil
}

func (q *memQueue) Listed(_ context.Context, ref jobs.TaskRef) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.unlisted[ref.TaskID()], nil
}

func (q *memQueue) Register(context.Context) ([]scheduler.QueueState, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.registered++
	state := q.state
	q.state.New = false
	return []scheduler.QueueState{state}, nil
}

// Sweep is tested on a real queue.
func (q *memQueue) Sweep(context.Context, int, int, func(jobs.TaskRef) (bool, error)) (scheduler.Swept, error) {
	return scheduler.Swept{}, nil
}

func (q *memQueue) set(id string, task scheduler.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks[id] = task
}
