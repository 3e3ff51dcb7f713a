package scheduler

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

// Queues is the [Queue] of jobs of several kinds, each with a queue of its own.
type Queues map[jobs.Kind]Queue

func (q Queues) of(ref jobs.TaskRef) (Queue, error) {
	if queue := q[ref.Kind()]; queue != nil {
		return queue, nil
	}
	return nil, fmt.Errorf("no queue for jobs of kind %s", ref.Kind())
}

// Put enqueues a task; one that exists already is no error.
func (q Queues) Put(ctx context.Context, ref jobs.TaskRef) error {
	queue, err := q.of(ref)
	if err != nil {
		return err
	}
	return queue.Put(ctx, ref)
}

// State looks a task up.
func (q Queues) State(ctx context.Context, ref jobs.TaskRef) (TaskState, error) {
	queue, err := q.of(ref)
	if err != nil {
		return TaskNone, err
	}
	return queue.State(ctx, ref)
}

// Drop deletes a dead task; one that is gone already is no error.
func (q Queues) Drop(ctx context.Context, ref jobs.TaskRef) error {
	queue, err := q.of(ref)
	if err != nil {
		return err
	}
	return queue.Drop(ctx, ref)
}

// Register makes all queues known to those who list queues.
func (q Queues) Register(ctx context.Context) error {
	var errs []error
	for _, queue := range q {
		errs = append(errs, queue.Register(ctx))
	}
	return errors.Join(errs...)
}
