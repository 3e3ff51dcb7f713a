package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

// TaskType is the Asynq type of the tasks that carry slices.
const TaskType = "headroom:slice"

// Unlimited is the MaxRetry of every task. Asynq archives a task whose retries
// are spent even when its error is no failure, so failures are counted in the
// job's row instead.
const Unlimited = 1 << 30

// TaskRef names one slice of a job. It is the payload of the task and, but for the
// kind, its id.
type TaskRef struct {
	Job   string `json:"job"`
	Kind  Kind   `json:"kind,omitempty"` // empty in a task of an earlier version, and in a ref read from an id
	Epoch int64  `json:"epoch"`
	Slice int64  `json:"slice"`
}

// TaskID is the id of the task in Asynq: job:epoch:slice.
func (r TaskRef) TaskID() string { return fmt.Sprintf("%s:%d:%d", r.Job, r.Epoch, r.Slice) }

// Next is the slice after r.
func (r TaskRef) Next() TaskRef { r.Slice++; return r }

// ParseTask reads the payload of a task of type [TaskType].
func ParseTask(t *asynq.Task) (TaskRef, error) {
	var ref TaskRef
	if err := json.Unmarshal(t.Payload(), &ref); err != nil {
		return TaskRef{}, fmt.Errorf("payload of a %s task: %w", TaskType, err)
	}
	if ref.Job == "" {
		return TaskRef{}, fmt.Errorf("payload of a %s task names no job", TaskType)
	}
	return ref, nil
}

// ParseTaskID is the inverse of [TaskRef.TaskID]; an id does not tell the kind.
func ParseTaskID(id string) (TaskRef, error) {
	rest, slice, ok1 := cutLast(id)
	job, epoch, ok2 := cutLast(rest)
	e, err1 := strconv.ParseInt(epoch, 10, 64)
	s, err2 := strconv.ParseInt(slice, 10, 64)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || job == "" {
		return TaskRef{}, fmt.Errorf("task id %q is not of the form job:epoch:slice", id)
	}
	return TaskRef{Job: job, Epoch: e, Slice: s}, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// QueueName is the Asynq queue of a lane. Prefix keeps installations that share
// one Redis apart; it may be empty.
func QueueName(prefix, lane string) string { return prefix + lane }

// Enqueuer is the part of [asynq.Client] that a [Queue] needs.
type Enqueuer interface {
	EnqueueContext(ctx context.Context, t *asynq.Task, opts ...asynq.Option) (*asynq.TaskInfo, error)
}

// Queue puts slices on the Asynq queue of one lane. It is safe for concurrent
// use. All fields but Timeout are required.
type Queue struct {
	Client  Enqueuer
	Name    string        // see [QueueName]
	Timeout time.Duration // bound on one slice's run; [DefaultTaskTimeout] if zero
}

// Put enqueues the task of a slice. A task that exists already is what was
// asked for, not an error.
func (q *Queue) Put(ctx context.Context, ref TaskRef) error {
	payload, err := json.Marshal(ref)
	if err != nil {
		return fmt.Errorf("encode task %s: %w", ref.TaskID(), err)
	}
	timeout := q.Timeout
	if timeout == 0 {
		timeout = DefaultTaskTimeout
	}
	_, err = q.Client.EnqueueContext(ctx, asynq.NewTask(TaskType, payload),
		asynq.TaskID(ref.TaskID()), asynq.Queue(q.Name), asynq.MaxRetry(Unlimited), asynq.Timeout(timeout))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue task %s: %w", ref.TaskID(), err)
	}
	return nil
}

// AsynqQueues is the set in which Asynq keeps the names of its queues.
const AsynqQueues = "asynq:queues"

// AsynqKey returns the key under which Asynq keeps something of a queue: its tasks by
// state, or a task as "t:" and its id. The braces put all keys of a queue in one slot of
// a cluster. Asynq does not export its layout, so it is known here only.
func AsynqKey(queue, name string) string { return "asynq:{" + queue + "}:" + name }
