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
	stale int         // takeovers refused because the row was written since
	lists int

	wrong   []jobs.RepairedMoment // in the future
	repairs int                   // times that they were looked for
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

func (s *memStore) Job(_ context.Context, id string) (jobs.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.rows[id]
	if !ok {
		return jobs.Job{}, jobs.ErrNotFound
	}
	return j, nil
}

func (s *memStore) TakeOver(_ context.Context, seen jobs.Job) (jobs.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.rows[seen.ID]
	if !ok {
		return jobs.Job{}, jobs.ErrNotFound
	}
	if j.Ref() != seen.Ref() || !j.LeaseUntil.Equal(seen.LeaseUntil) || !j.UpdatedAt.Equal(seen.UpdatedAt) {
		s.stale++
		return jobs.Job{}, jobs.ErrStale
	}
	j.Epoch++
	j.LeaseUntil, j.UpdatedAt = time.Time{}, time.Now()
	s.rows[j.ID] = j
	return j, nil
}

// RepairMoments returns and forgets what a test has laid out.
func (s *memStore) RepairMoments(context.Context) ([]jobs.RepairedMoment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs++
	found := s.wrong
	s.wrong = nil
	return found, nil
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
