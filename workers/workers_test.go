package workers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

func TestNewNamesAllThatIsWrong(t *testing.T) {
	_, err := New(Options{Lanes: []quota.Lane{"fast", quota.Sync, quota.Sync}, InFlight: -1, Lease: -1})
	if err == nil {
		t.Fatal("New = nil, want an error")
	}
	for _, want := range []string{"Options.Redis is required", "Options.Store", "Options.Google", "Options.Parser", "Options.Log", "Options.Registerer",
		`"fast" is no lane`, `"sync" is named twice`, "Options.InFlight is negative", "Options.Lease is negative"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to say %q", err, want)
		}
	}
}

// The promise of the package, with the real queue: a refusal costs time only.
func TestARefusedTaskIsRetriedByAsynqAtItsMoment(t *testing.T) {
	t.Parallel()
	const wait = 1700 * time.Millisecond
	var mu sync.Mutex
	var moments, again []time.Time // of refusals, and of the calls after them
	box := &memMailbox{n: 30, latency: time.Millisecond}
	box.fault = func(call string, nth int) error {
		mu.Lock()
		defer mu.Unlock()
		if call != "get m9" && call != "get m20" {
			return nil
		}
		if nth == 1 {
			moments = append(moments, time.Now().Add(wait))
			return denied(wait)
		}
		again = append(again, time.Now())
		return nil
	}
	// One at a time, so that the two refusals cannot fall into one slice.
	p := newPlant(t, box, func(o *Options) { o.InFlight = 1 })
	ref := p.start(ann)
	p.run()

	for i := range 2 {
		var task *asynq.TaskInfo
		p.eventually("the task is in retry", 5*time.Second, func() bool {
			tasks, _ := p.inspector.ListRetryTasks(p.queue.Name)
			if len(tasks) == 1 {
				task = tasks[0]
			}
			return task != nil
		})
		row := p.store.job(ref.Job)
		want := "waits for user-minute (ceiling) until " + row.WaitUntil.UTC().Format("2006-01-02T15:04:05.000Z")
		if task.ID != ref.TaskID() || task.Retried != 0 || !strings.Contains(task.LastErr, want) {
			t.Errorf("task %s, retried %d, says %q; want %s, 0, %q", task.ID, task.Retried, task.LastErr, ref.TaskID(), want)
		}
		p.eventually("it is run again", 6*time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(again) > i
		})
		mu.Lock()
		if late := again[i].Sub(moments[i]); late < 0 || late > 3*time.Second {
			t.Errorf("run again %s after the moment, want 0 to 3s", late)
		}
		mu.Unlock()
	}

	row := p.ends(ref, 5*time.Second)
	if row.State != jobs.Completed || row.Progress.Stored != 30 || row.Requeued != 2 || row.Failures != 0 {
		t.Errorf("row = %+v, want 30 stored, 2 requeued", row)
	}
	info := p.info()
	if info.Size != 0 || info.Archived != 0 || info.FailedTotal != 0 || info.ProcessedTotal != 1 {
		t.Errorf("queue = %+v, want it empty: 1 processed, none failed or archived", info)
	}
}

func TestProgressCountsAsProcessed(t *testing.T) {
	t.Parallel()
	box := &memMailbox{n: 70, slow: 100 * time.Millisecond}
	p := newPlant(t, box, func(o *Options) { o.SliceTime = 250 * time.Millisecond })
	ref := p.start(ann)
	p.run()
	row := p.ends(ref, 15*time.Second)
	if row.State != jobs.Completed || row.Progress.Stored != 70 || row.Slice < 3 || row.Epoch != 1 {
		t.Errorf("row = %+v, want 70 stored in some slices", row)
	}
	info := p.info()
	if info.Size != 0 || info.FailedTotal != 0 || int64(info.ProcessedTotal) != row.Slice+1 {
		t.Errorf("queue = %+v, want %d processed and none left", info, row.Slice+1)
	}

	// The first task comes once more, as Asynq's recovery may let it.
	if err := p.queue.Put(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	p.eventually("the stale task is dropped", 5*time.Second, func() bool { return p.info().Size == 0 })
	if again := p.store.job(ref.Job); again.Slice != row.Slice || again.State != jobs.Completed {
		t.Errorf("row = %+v, want it as it was", again)
	}
}

func TestFailuresNeverReachAsynqsArchive(t *testing.T) {
	t.Parallel()
	box := &memMailbox{n: 5}
	box.fault = func(call string, _ int) error {
		if call == "list " {
			panic("nil map")
		}
		return nil
	}
	p := newPlant(t, box, func(o *Options) { o.FailureBudget = 1 })
	ref := p.start(ann)
	p.run()
	row := p.ends(ref, 10*time.Second)
	if row.State != jobs.Failed || !strings.Contains(row.LastError, "nil map") {
		t.Errorf("row = %+v, want it failed for the panic", row)
	}
	if info := p.info(); info.Size != 0 || info.Archived != 0 || info.FailedTotal != 0 {
		t.Errorf("queue = %+v, want nothing left, archived or failed", info)
	}
}

func TestShutdownLeavesSuccessorsForTheNextProcess(t *testing.T) {
	t.Parallel()
	box := &memMailbox{n: 60, slow: 200 * time.Millisecond}
	p := newPlant(t, box)
	ref := p.start(ann)
	stop := p.run()
	p.eventually("some messages are stored", 5*time.Second, func() bool { return p.store.job(ref.Job).Progress.Stored >= 7 })
	if took, err := stop(); err != nil || took > 3*time.Second {
		t.Errorf("Run = %v after %s, want nil within about a second", err, took)
	}
	row := p.store.job(ref.Job)
	if row.Slice != 1 || !row.LeaseUntil.IsZero() || row.Failures != 0 {
		t.Errorf("row = %+v, want slice 1, nobody's", row)
	}
	if task, err := p.inspector.GetTaskInfo(p.queue.Name, ref.Next().TaskID()); err != nil || task.State != asynq.TaskStatePending {
		t.Errorf("successor = %+v, %v, want it pending", task, err)
	}
	for call, times := range box.times {
		if times != 1 {
			t.Errorf("%q was made %d times, want once", call, times)
		}
	}
	p.run()
	if row := p.ends(ref, 10*time.Second); row.State != jobs.Completed || row.Progress.Stored != 60 {
		t.Errorf("row = %+v, want all 60", row)
	}
}

// deafMailbox hangs and does not listen to its context.
type deafMailbox struct {
	*memMailbox
	release chan struct{}
	asked   chan struct{}
}

func (b *deafMailbox) Mailbox(context.Context, jobs.Account, quota.Lane, time.Duration) (Mailbox, error) {
	return b, nil
}

func (b *deafMailbox) Profile(context.Context) (jobs.Profile, error) {
	close(b.asked)
	<-b.release
	return jobs.Profile{}, context.Canceled
}

func TestShutdownIsBoundedWhateverASliceDoes(t *testing.T) {
	t.Parallel()
	box := &deafMailbox{&memMailbox{n: 5}, make(chan struct{}), make(chan struct{})}
	p := newPlant(t, box, func(o *Options) {
		o.ShutdownTimeout, o.Log = 200*time.Millisecond, zap.NewNop() // the slice ends after the test
	})
	ref := p.start(ann)
	stop := p.run()
	<-box.asked
	took, err := stop()
	if err == nil || took > 4*time.Second {
		t.Errorf("Run = %v after %s, want an error within the timeout and its grace", err, took)
	}
	if task, err := p.inspector.GetTaskInfo(p.queue.Name, ref.TaskID()); err != nil || task.State != asynq.TaskStatePending {
		t.Errorf("task = %+v, %v, want it back in the queue", task, err)
	}
	close(box.release)
}

// town is a Google of many small mailboxes.
type town map[string]*memMailbox

func (g town) Mailbox(_ context.Context, a jobs.Account, _ quota.Lane, _ time.Duration) (Mailbox, error) {
	return g[a.Email], nil
}

func TestHundredsOfSlicesWaitAtOnce(t *testing.T) {
	t.Parallel()
	g := town{}
	p := newPlant(t, g)
	for i := range 150 { // known before a worker runs: the map is only read then
		g[fmt.Sprintf("u%d@example.com", i)] = &memMailbox{n: 3, slow: 800 * time.Millisecond}
	}
	var refs []jobs.TaskRef
	for email := range g {
		refs = append(refs, p.start(email))
	}
	started := time.Now()
	p.run()
	for _, ref := range refs {
		if row := p.ends(ref, 30*time.Second); row.Progress.Stored != 3 {
			t.Errorf("row = %+v, want 3 stored", row)
		}
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("150 mailboxes of 0.8 s took %s; one after the other would be 120s", took)
	}
}

func TestEveryLaneHasAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	lanes := make(chan quota.Lane, 3)
	box := &memMailbox{n: 1}
	p := newPlant(t, laneSpy{box, lanes}, func(o *Options) { o.Lanes = nil })
	p.run()
	for _, lane := range quota.Lanes {
		p.queue.Name = jobs.QueueName(p.opts.QueuePrefix, string(lane))
		ref := p.start(string(lane) + "@example.com")
		if row := p.ends(ref, 5*time.Second); row.State != jobs.Completed {
			t.Errorf("row = %+v, want it completed", row)
		}
		if got := <-lanes; got != lane {
			t.Errorf("mailbox opened in lane %s, want %s", got, lane)
		}
	}
}

type laneSpy struct {
	*memMailbox
	lanes chan quota.Lane
}

func (s laneSpy) Mailbox(_ context.Context, _ jobs.Account, lane quota.Lane, maxWait time.Duration) (Mailbox, error) {
	if maxWait != time.Second {
		return nil, fmt.Errorf("maxWait = %s, want 1s", maxWait)
	}
	s.lanes <- lane
	return s.memMailbox, nil
}
