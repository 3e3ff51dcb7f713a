package jobs_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"

	"headroom/jobs"
)

// enqueued keeps what was enqueued last.
type enqueued struct{ task *asynq.Task }

func (e *enqueued) EnqueueContext(_ context.Context, t *asynq.Task, _ ...asynq.Option) (*asynq.TaskInfo, error) {
	e.task = t
	return &asynq.TaskInfo{}, nil
}

func TestATaskNamesItsSlice(t *testing.T) {
	ref := jobs.Job{ID: jobs.SyncID("ann@example.com"), Kind: jobs.MailSync, Epoch: 3, Slice: 7}.Ref()
	var client enqueued
	q := jobs.Queue{Client: &client, Name: "sync"}
	if err := q.Put(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	got, err := jobs.ParseTask(client.task)
	if diff := cmp.Diff(ref, got); err != nil || diff != "" {
		t.Errorf("ParseTask: %v (-want +got):\n%s", err, diff)
	}
	fromID, err := jobs.ParseTaskID(ref.TaskID())
	ref.Kind = ""
	if diff := cmp.Diff(ref, fromID); err != nil || diff != "" {
		t.Errorf("ParseTaskID of %s: %v (-want +got):\n%s", ref.TaskID(), err, diff)
	}
}

// Tasks that processes of an earlier version have put stay on the queue when the
// first process of this version starts.
func TestTasksOfAnEarlierVersionAreUnderstood(t *testing.T) {
	const payload = `{"job":"backfill:ann@example.com:0123456789ab","epoch":2,"slice":5}`
	got, err := jobs.ParseTask(asynq.NewTask(jobs.TaskType, []byte(payload)))
	want := jobs.TaskRef{Job: "backfill:ann@example.com:0123456789ab", Epoch: 2, Slice: 5}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ParseTask: %v (-want +got):\n%s", err, diff)
	}
	row := jobs.Job{ID: want.Job, Kind: jobs.MailBackfill, State: jobs.Queued, Epoch: 2, Slice: 5}
	if _, err := row.Claim(got, noon, lease); err != nil {
		t.Errorf("Claim = %v", err)
	}
	if row.Ref().TaskID() != got.TaskID() {
		t.Errorf("the task's id is %s, want that of earlier versions, %s", row.Ref().TaskID(), got.TaskID())
	}
	for _, id := range []string{"", "a", "a:1", ":1:2", "a:b:2", "a:1:c"} {
		if ref, err := jobs.ParseTaskID(id); err == nil {
			t.Errorf("ParseTaskID(%q) = %+v", id, ref)
		}
	}
}
