package scheduler

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

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
