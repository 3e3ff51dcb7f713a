package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"headroom/jobs"
)

// TaskState says where in the queue a task is.
type TaskState int

// The states of a task, as far as a rescue cares.
const (
	TaskNone    TaskState = iota // there is no such task
	TaskPending                  // it will run: pending, scheduled or in retry
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
	case TaskActive:
		return "active"
	case TaskDead:
		return "dead"
	}
	return fmt.Sprintf("TaskState(%d)", int(s))
}

// asynqQueues is the set in which Asynq keeps the names of its queues.
const asynqQueues = "asynq:queues"

// An AsynqQueue is the [Queue] of one Asynq queue. It is safe for concurrent
// use. Asynq's inspector takes no context, so the time that State and Drop may
// take is bounded by the timeouts of the Redis client that it was made with.
type AsynqQueue struct {
	inspector *asynq.Inspector
	queue     *jobs.Queue
	rdb       redis.UniversalClient
}

// NewAsynqQueue returns the queue that jobs are put on by queue. The inspector
// and rdb must point at the same Redis as the queue's client.
func NewAsynqQueue(inspector *asynq.Inspector, queue *jobs.Queue, rdb redis.UniversalClient) *AsynqQueue {
	return &AsynqQueue{inspector: inspector, queue: queue, rdb: rdb}
}

// Put enqueues the task of a slice; a task that exists already is no error.
func (q *AsynqQueue) Put(ctx context.Context, ref jobs.TaskRef) error {
	return q.queue.Put(ctx, ref)
}

// State looks a task up.
func (q *AsynqQueue) State(ctx context.Context, ref jobs.TaskRef) (TaskState, error) {
	if err := ctx.Err(); err != nil {
		return TaskNone, err
	}
	info, err := q.inspector.GetTaskInfo(q.queue.Name, ref.TaskID())
	if isNotFound(err) {
		return TaskNone, nil
	}
	if err != nil {
		return TaskNone, fmt.Errorf("look up task %s on queue %s: %w", ref.TaskID(), q.queue.Name, err)
	}
	switch info.State {
	case asynq.TaskStateActive:
		return TaskActive, nil
	case asynq.TaskStateArchived, asynq.TaskStateCompleted:
		return TaskDead, nil
	default:
		return TaskPending, nil
	}
}

// Drop deletes a dead task so that its id is free again. A task that is gone
// already is no error; one that a worker has taken meanwhile is.
func (q *AsynqQueue) Drop(ctx context.Context, ref jobs.TaskRef) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := q.inspector.DeleteTask(q.queue.Name, ref.TaskID()); err != nil && !isNotFound(err) {
		return fmt.Errorf("delete task %s from queue %s: %w", ref.TaskID(), q.queue.Name, err)
	}
	return nil
}

// Register makes the queue known to Asynq's inspector and web UI. Asynq does so
// once per process, at the first enqueue, and never again, so that a wiped
// Redis would hide a queue whose tasks run.
func (q *AsynqQueue) Register(ctx context.Context) error {
	if err := q.rdb.SAdd(ctx, asynqQueues, q.queue.Name).Err(); err != nil {
		return fmt.Errorf("register queue %s: %w", q.queue.Name, err)
	}
	return nil
}

func isNotFound(err error) bool {
	return errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound)
}
