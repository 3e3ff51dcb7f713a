package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

const ann = "ann@example.com"

// puts is a queue that only remembers.
type puts struct {
	mu   sync.Mutex
	err  error
	refs []jobs.TaskRef
}

func (p *puts) Put(_ context.Context, ref jobs.TaskRef) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.refs = append(p.refs, ref)
	return nil
}

// rig is a handler with everything around it in memory.
type rig struct {
	*handler
	t     *testing.T
	store *testStore
	blobs *memBlobs
	box   *memMailbox
	queue *puts
	drain context.CancelFunc // has slices stop
	ref   jobs.TaskRef       // of the first slice
}

func subjectOf(raw []byte) (string, error) {
	return string(raw[len("Subject: ") : len(raw)-len("\r\n\r\nbody\r\n")]), nil
}

func newRig(t *testing.T, box *memMailbox, change ...func(*Options)) *rig {
	t.Helper()
	b := &rig{t: t, store: newTestStore(t), blobs: &memBlobs{}, box: box, queue: &puts{}}
	b.ref = b.store.start(ann)
	o := Options{Store: b.store, Blobs: b.blobs, Google: box, Parser: subjectOf, Log: zap.NewNop(), Registerer: prometheus.NewRegistry()}
	for _, f := range change {
		f(&o)
	}
	o, _ = o.withDefaults() // without Redis, which a handler does not use
	draining, drain := context.WithCancel(t.Context())
	t.Cleanup(drain)
	b.drain = drain
	b.handler = &handler{opts: o, lane: quota.Backfill, queue: b.queue, draining: draining,
		cache: newJobCache(), metrics: newMetrics(o.Registerer), log: o.Log}
	return b
}

// slice runs one task and returns what the handler returned.
func (b *rig) slice(ref jobs.TaskRef) error {
	payload, err := json.Marshal(ref)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), b.opts.TaskTimeout)
	defer cancel()
	return b.ProcessTask(ctx, asynq.NewTask(jobs.TaskType, payload))
}

// mustPark runs one task that must park, and returns why.
func (b *rig) mustPark(ref jobs.TaskRef) *RequeueError {
	b.t.Helper()
	err := b.slice(ref)
	parked, ok := errors.AsType[*RequeueError](err)
	if !ok {
		b.t.Fatalf("slice %s = %v, want a *RequeueError; row: %+v", ref.TaskID(), err, b.store.job(ref.Job))
	}
	return parked
}

// toEnd runs the job as Asynq would, in the bubble's time, and returns its row.
func (b *rig) toEnd() jobs.Job {
	b.t.Helper()
	for range 1000 {
		row := b.store.job(b.ref.Job)
		if row.State.Terminal() {
			return row
		}
		err := b.slice(row.Ref())
		if parked, ok := errors.AsType[*RequeueError](err); ok {
			<-time.After(requeueDelay(time.Until(parked.Until)))
		} else if err != nil {
			b.t.Fatalf("slice %s: %v", row.Ref().TaskID(), err)
		}
	}
	b.t.Fatalf("the job did not end: %+v", b.store.job(b.ref.Job))
	return jobs.Job{}
}

func transient(reason string) error {
	return &jobs.CallError{Class: jobs.ClassTransient, Reason: reason, Err: fmt.Errorf("503 %s", reason)}
}

func denied(wait time.Duration) error {
	return fmt.Errorf("get: %w", &quota.DeniedError{Caller: quota.Caller{Lane: quota.Backfill}, Cost: 20, Limit: "user-minute",
		Bound: quota.BoundCeiling, Used: 4800, Ceiling: 4800, RetryAfter: wait, At: time.Now().Add(wait)})
}
