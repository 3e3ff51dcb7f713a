package scheduler_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"headroom/jobs"
	"headroom/scheduler"
)

// memStore keeps job rows in memory, on the local clock.
type memStore struct {
	mu    sync.Mutex
	rows  map[string]jobs.Job
	fail  error       // returned by LiveJobs when set
	hold  atomic.Bool // LiveJobs blocks until its context ends
	stale int         // takeovers refused because the epoch had moved on
	lists int
}

func newStore(rows ...jobs.Job) *memStore {
	s := &memStore{rows: map[string]jobs.Job{}}
	for _, j := range rows {
		s.rows[j.ID] = j
	}
	return s
}

func (s *memStore) LiveJobs(ctx context.Context) ([]jobs.Job, error) {
	if s.hold.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.fail != nil {
		return nil, s.fail
	}
	var live []jobs.Job
	for _, j := range s.rows {
		if !j.State.Terminal() {
			live = append(live, j)
		}
	}
	return live, nil
}

func (s *memStore) TakeOver(_ context.Context, id string, epoch int64) (jobs.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.rows[id]
	if !ok {
		return jobs.Job{}, jobs.ErrNotFound
	}
	if j.Epoch != epoch {
		s.stale++
		return jobs.Job{}, jobs.ErrStale
	}
	j.Epoch++
	j.LeaseUntil, j.UpdatedAt = time.Time{}, time.Now()
	s.rows[id] = j
	return j, nil
}

func (s *memStore) set(change func(rows map[string]jobs.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.rows)
}

// memQueue keeps tasks in memory, with the one rule that matters: an id exists
// once.
type memQueue struct {
	mu         sync.Mutex
	tasks      map[string]scheduler.TaskState
	putAt      map[string]time.Time
	puts       int // that made a task
	registered int
	failState  map[string]error // by job
	failPut    error
}

func newQueue() *memQueue {
	return &memQueue{tasks: map[string]scheduler.TaskState{}, putAt: map[string]time.Time{}}
}

func (q *memQueue) Put(_ context.Context, ref jobs.TaskRef) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failPut != nil {
		return q.failPut
	}
	if q.tasks[ref.TaskID()] == scheduler.TaskNone {
		q.tasks[ref.TaskID()] = scheduler.TaskPending
		q.putAt[ref.TaskID()] = time.Now()
		q.puts++
	}
	return nil
}

func (q *memQueue) State(_ context.Context, ref jobs.TaskRef) (scheduler.TaskState, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.failState[ref.Job]; err != nil {
		return scheduler.TaskNone, err
	}
	return q.tasks[ref.TaskID()], nil
}

func (q *memQueue) Drop(_ context.Context, ref jobs.TaskRef) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.tasks, ref.TaskID())
	return nil
}

func (q *memQueue) Register(context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.registered++
	return nil
}

func (q *memQueue) set(id string, s scheduler.TaskState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks[id] = s
}
