package scheduler_test

import (
	"context"
	"testing"

	"headroom/jobs"
	"headroom/scheduler"
)

// lane is a queue that says which it is.
type lane struct {
	putQueue
	state      scheduler.TaskState
	registered int
	swept      int
}

func (l *lane) Look(context.Context, jobs.TaskRef) (scheduler.Task, error) {
	return scheduler.Task{State: l.state}, nil
}
func (l *lane) Listed(context.Context, jobs.TaskRef) (bool, error) {
	return l.state == scheduler.TaskPending, nil
}
func (l *lane) Register(context.Context) ([]scheduler.QueueState, error) {
	l.registered++
	return []scheduler.QueueState{{}}, nil
}
func (l *lane) Sweep(context.Context, int, int, func(jobs.TaskRef) (bool, error)) (scheduler.Swept, error) {
	l.swept++
	return scheduler.Swept{Removed: map[string]int{"retry": 2}, More: l.state == scheduler.TaskPending}, nil
}

func TestEachKindHasItsQueue(t *testing.T) {
	backfill, live := &lane{state: scheduler.TaskActive}, &lane{state: scheduler.TaskPending}
	// Two kinds share a queue.
	q := scheduler.Queues{jobs.MailBackfill: backfill, jobs.MailSync: live, "another": live}
	ctx := t.Context()
	for _, row := range []struct {
		job  string
		kind jobs.Kind
		lane *lane
	}{{"backfill:ann@example.com", jobs.MailBackfill, backfill}, {"sync:ann@example.com", jobs.MailSync, live}, {"other:ann@example.com", "another", live}} {
		ref := jobs.TaskRef{Job: row.job, Kind: row.kind, Epoch: 1}
		if task, err := q.Look(ctx, ref); err != nil || task.State != row.lane.state {
			t.Errorf("Look at %s = %+v, %v, want %s", row.job, task, err, row.lane.state)
		}
		if listed, err := q.Listed(ctx, ref); err != nil || listed != (row.lane == live) {
			t.Errorf("%s is listed: %t, %v", row.job, listed, err)
		}
		put := len(row.lane.refs)
		if err := q.Put(ctx, ref); err != nil || len(row.lane.refs) != put+1 {
			t.Errorf("%s: %v, put %d, want one more", row.job, err, len(row.lane.refs))
		}
	}
	if states, err := q.Register(ctx); err != nil || len(states) != 2 || backfill.registered != 1 || live.registered != 1 {
		t.Errorf("Register = %+v, %v, %d and %d, want one each", states, err, backfill.registered, live.registered)
	}
	if swept, err := q.Sweep(ctx, 0, 1, nil); err != nil || swept.Removed["retry"] != 4 || !swept.More || backfill.swept != 1 || live.swept != 1 {
		t.Errorf("Sweep = %+v, %v, %d and %d, want one each and the sum", swept, err, backfill.swept, live.swept)
	}
	if err := (scheduler.Queues{}).Put(ctx, jobs.TaskRef{Job: "sync:ann", Kind: jobs.MailSync}); err == nil {
		t.Error("a job without a queue is put nowhere, and nobody is told")
	}
}
