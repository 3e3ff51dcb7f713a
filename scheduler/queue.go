package scheduler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/jobs"
)

// TaskState says where in the queue a task is.
type TaskState int

// The states of a task, as far as a rescue cares.
const (
	TaskNone    TaskState = iota // there is no such task, or none that could ever run
	TaskPending                  // it will run when a worker is free
	TaskDelayed                  // it will be pending when it is due: scheduled or in retry
	TaskActive                   // a worker has taken it
	TaskDead                     // it will not run by itself: archived or completed
)

// String returns the state's name for logs.
func (s TaskState) String() string {
	switch s {
	case TaskNone:
		return "none"
	case TaskPending:
		return "pending"
	case TaskDelayed:
		return "delayed"
	case TaskActive:
		return "active"
	case TaskDead:
		return "dead"
	}
	return fmt.Sprintf("TaskState(%d)", int(s))
}

// Task is where a task is.
type Task struct {
	State TaskState
	Due   time.Time // delayed: when it becomes pending
}

// QueueState is what there is to know of a queue as a whole.
type QueueState struct {
	Name   string
	New    bool // Asynq's inspector and web UI did not know it
	Paused bool // somebody has paused it: no worker takes a task of it
}

// Swept is what a [Queue.Sweep] has done.
type Swept struct {
	Removed map[string]int // by Asynq's state, "ghost" for those without a message
	More    bool           // there is more after the page
}

//go:embed look.lua
var lookSource string

//go:embed sweep.lua
var sweepSource string

//go:embed drop.lua
var dropSource string

var (
	lookScript  = redis.NewScript(lookSource)
	sweepScript = redis.NewScript(sweepSource)
	dropScript  = redis.NewScript(dropSource)
)

// sortedStates are the states whose tasks stand in sorted sets.
var sortedStates = []string{"scheduled", "retry", "archived", "completed"}

// sweptStates are those whose tasks are swept when they are over: of active ones,
// those that no worker has a lease of.
var sweptStates = append([]string{"active"}, sortedStates...)

// An AsynqQueue is the [Queue] of one Asynq queue. It is safe for concurrent
// use. It reads Asynq's keys by itself: the inspector takes no context, deletes
// tasks that have begun to wait for a worker meanwhile, and fails for all tasks
// when the data of one is broken.
type AsynqQueue struct {
	*jobs.Queue
	rdb redis.UniversalClient
}

// NewAsynqQueue returns the queue that jobs are put on by queue. Rdb must point at
// the same Redis as the queue's client.
func NewAsynqQueue(queue *jobs.Queue, rdb redis.UniversalClient) *AsynqQueue {
	return &AsynqQueue{Queue: queue, rdb: rdb}
}

func (q *AsynqQueue) key(name string) string { return jobs.AsynqKey(q.Name, name) }

// Look looks a task up.
func (q *AsynqQueue) Look(ctx context.Context, ref jobs.TaskRef) (Task, error) {
	return q.look(ctx, ref, "0")
}

// Listed reports whether a pending task stands in the list of those. The work
// grows with that list.
func (q *AsynqQueue) Listed(ctx context.Context, ref jobs.TaskRef) (bool, error) {
	task, err := q.look(ctx, ref, "1")
	return task.State != TaskNone, err
}

func (q *AsynqQueue) look(ctx context.Context, ref jobs.TaskRef, search string) (Task, error) {
	id := ref.TaskID()
	keys, args := []string{q.key("t:" + id), q.key("pending")}, []any{id, search}
	for _, state := range sortedStates {
		keys, args = append(keys, q.key(state)), append(args, state)
	}
	reply, err := lookScript.Run(ctx, q.rdb, keys, args...).StringSlice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("look.lua answers %q", reply)
	}
	if err != nil {
		return Task{}, fmt.Errorf("look up task %s on queue %s: %w", id, q.Name, err)
	}
	switch reply[0] {
	case "":
		return Task{}, nil
	case "active":
		return Task{State: TaskActive}, nil
	case "archived", "completed":
		return Task{State: TaskDead}, nil
	case "scheduled", "retry":
		due, err := strconv.ParseFloat(reply[1], 64)
		if err != nil {
			return Task{}, fmt.Errorf("task %s on queue %s is due at %q: %w", id, q.Name, reply[1], err)
		}
		return Task{State: TaskDelayed, Due: time.Unix(int64(due), 0)}, nil
	}
	return Task{State: TaskPending}, nil
}

// Register makes the queue known to Asynq's inspector and web UI. Asynq does so
// once per process, at the first enqueue, and never again, so that a wiped
// Redis would hide a queue whose tasks run.
func (q *AsynqQueue) Register(ctx context.Context) ([]QueueState, error) {
	var added, paused *redis.IntCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		added, paused = p.SAdd(ctx, jobs.AsynqQueues, q.Name), p.Exists(ctx, q.key("paused"))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("register queue %s: %w", q.Name, err)
	}
	return []QueueState{{Name: q.Name, New: added.Val() > 0, Paused: paused.Val() > 0}}, nil
}

// Sweep removes tasks that will not run by themselves, or not soon, and are over;
// and those of any state that are broken beyond running. It looks at a page of
// each state.
func (q *AsynqQueue) Sweep(ctx context.Context, from, count int, over func(jobs.TaskRef) (bool, error)) (Swept, error) {
	swept := Swept{Removed: map[string]int{}}
	keys := []string{q.key("pending"), q.key("active"), q.key("lease")}
	for _, state := range sortedStates {
		keys = append(keys, q.key(state))
	}
	reply, err := sweepScript.Run(ctx, q.rdb, keys, q.key("t:"), from, from+count-1).Slice()
	if err == nil && len(reply) != 1+len(sweptStates) {
		err = fmt.Errorf("sweep.lua answers %d values", len(reply))
	}
	if err != nil {
		return swept, fmt.Errorf("list the tasks of queue %s: %w", q.Name, err)
	}
	if ghosts, _ := reply[0].(int64); ghosts > 0 {
		swept.Removed["ghost"] = int(ghosts)
	}
	var errs []error
	for i, state := range sweptStates {
		ids, _ := reply[i+1].([]any)
		swept.More = swept.More || len(ids) == count
		for _, id := range ids {
			removed, err := q.dropOver(ctx, fmt.Sprint(id), state, over)
			if err != nil {
				errs = append(errs, err)
			} else if removed {
				swept.Removed[state]++
			}
		}
	}
	return swept, errors.Join(errs...)
}

// dropOver removes a task of a state if it is over. One whose id is not of
// our making is left alone.
func (q *AsynqQueue) dropOver(ctx context.Context, id, state string, over func(jobs.TaskRef) (bool, error)) (bool, error) {
	ref, err := jobs.ParseTaskID(id)
	if err != nil {
		return false, nil
	}
	if yes, err := over(ref); err != nil || !yes {
		return false, err
	}
	n, err := dropScript.Run(ctx, q.rdb, []string{q.key("t:" + id), q.key(state), q.key("lease")}, id, state).Int()
	if err != nil {
		return false, fmt.Errorf("delete task %s from queue %s: %w", id, q.Name, err)
	}
	return n > 0, nil
}

// Queues is the [Queue] of jobs of several kinds. Kinds whose tasks go to one
// queue must have the same value.
type Queues map[jobs.Kind]Queue

func (q Queues) of(ref jobs.TaskRef) (Queue, error) {
	if queue := q[ref.Kind]; queue != nil {
		return queue, nil
	}
	return nil, fmt.Errorf("no queue for jobs of kind %s", ref.Kind)
}

// Put enqueues a task; one that exists already is no error.
func (q Queues) Put(ctx context.Context, ref jobs.TaskRef) error {
	queue, err := q.of(ref)
	if err != nil {
		return err
	}
	return queue.Put(ctx, ref)
}

// Look looks a task up.
func (q Queues) Look(ctx context.Context, ref jobs.TaskRef) (Task, error) {
	queue, err := q.of(ref)
	if err != nil {
		return Task{}, err
	}
	return queue.Look(ctx, ref)
}

// Listed reports whether a task that is pending will be found by a worker.
func (q Queues) Listed(ctx context.Context, ref jobs.TaskRef) (bool, error) {
	queue, err := q.of(ref)
	if err != nil {
		return false, err
	}
	return queue.Listed(ctx, ref)
}

// Register makes all queues known to those who list queues.
func (q Queues) Register(ctx context.Context) ([]QueueState, error) {
	var all []QueueState
	err := q.each(func(queue Queue) error {
		states, err := queue.Register(ctx)
		all = append(all, states...)
		return err
	})
	return all, err
}

// Sweep sweeps all queues.
func (q Queues) Sweep(ctx context.Context, from, count int, over func(jobs.TaskRef) (bool, error)) (Swept, error) {
	all := Swept{Removed: map[string]int{}}
	err := q.each(func(queue Queue) error {
		swept, err := queue.Sweep(ctx, from, count, over)
		all.More = all.More || swept.More
		for state, n := range swept.Removed {
			all.Removed[state] += n
		}
		return err
	})
	return all, err
}

// each calls f once for each queue, also for one that several kinds share.
func (q Queues) each(f func(Queue) error) error {
	var errs []error
	done := map[Queue]bool{}
	for _, queue := range q {
		if !done[queue] {
			done[queue] = true
			errs = append(errs, f(queue))
		}
	}
	return errors.Join(errs...)
}
