package scheduler_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/scheduler"
)

// standing brings a job that is queued and has a place to where it stands in a cell.
type standing struct {
	name  string
	bring func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job
	// causes are those of the rescue that follows, by the task's state. "" is none.
	causes map[string]string
}

// The states of a task in Asynq, and none.
var taskStates = []string{"none", "pending", "scheduled", "retry", "active", "archived", "completed"}

func all(cause string) map[string]string {
	causes := map[string]string{}
	for _, state := range taskStates {
		causes[state] = cause
	}
	return causes
}

// byTask is what becomes of a live job that nobody owns.
var byTask = map[string]string{"none": "task-missing", "active": "never-claimed", "archived": "task-dead", "completed": "task-dead"}

var standings = []standing{
	{"queued", func(_ *testing.T, _ *sqlite.Store, j jobs.Job) jobs.Job { return j }, byTask},
	{"running, between two slices", slice, byTask},
	{"waiting", park, byTask},
	{"owned", claim(time.Hour), all("")},
	{"owned, the lease ended", claim(-time.Second), all("lease-expired")},
	{"owned, wanted paused, the lease ended", func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		j = claim(time.Hour)(t, s, j)
		must(t)(store2(s.Pause(t.Context(), j.ID)))
		return must(t)(s.Renew(t.Context(), j.Ref(), -time.Second))
	}, all("lease-expired")},
	{"in line for a place", func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(s.SetAdmission(t.Context(), j.ID, jobs.Admitted, jobs.NotAdmitted))
	}, all("")},
	{"its place asked back", func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(s.SetAdmission(t.Context(), j.ID, jobs.Admitted, jobs.Yielding))
	}, byTask},
	{"paused", func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(store2(s.Pause(t.Context(), j.ID)))
	}, all("")},
	{"blocked", finish(jobs.Blocked), all("")},
	{"completed", finish(jobs.Completed), all("")},
	{"completed with failures", finish(jobs.CompletedWithFailures), all("")},
	{"cancelled", func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(store2(s.Cancel(t.Context(), j.ID)))
	}, all("")},
	{"failed", finish(jobs.Failed), all("")},
}

func must(t *testing.T) func(jobs.Job, error) jobs.Job {
	return func(j jobs.Job, err error) jobs.Job {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
}

func store2(j jobs.Job, _ bool, err error) (jobs.Job, error) { return j, err }

func claim(lease time.Duration) func(*testing.T, *sqlite.Store, jobs.Job) jobs.Job {
	return func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(s.Claim(t.Context(), j.Ref(), lease))
	}
}

func slice(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
	return must(t)(s.EndSlice(t.Context(), claim(time.Hour)(t, s, j).Ref()))
}

func park(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
	return must(t)(s.Park(t.Context(), claim(time.Hour)(t, s, j).Ref(), jobs.Park{For: "user-minute", Until: time.Now().Add(time.Hour), Refused: true}))
}

func finish(state jobs.State) func(*testing.T, *sqlite.Store, jobs.Job) jobs.Job {
	return func(t *testing.T, s *sqlite.Store, j jobs.Job) jobs.Job {
		return must(t)(s.Finish(t.Context(), claim(time.Hour)(t, s, j).Ref(), jobs.Finish{State: state}))
	}
}

// stand brings the task of a job to a state of Asynq's.
func (r *rig) stand(t *testing.T, ref jobs.TaskRef, state string) {
	t.Helper()
	if state == "none" {
		return
	}
	r.put(t, ref)
	task, ctx := ref.TaskID(), t.Context()
	key := r.key("t:" + task)
	if state == "pending" {
		return
	}
	r.rdb.LRem(ctx, r.key("pending"), 0, task)
	r.rdb.HSet(ctx, key, "state", state)
	due := float64(time.Now().Add(time.Minute).Unix())
	var err error
	if state == "active" {
		r.rdb.LPush(ctx, r.key("active"), task)
		err = r.rdb.ZAdd(ctx, r.key("lease"), z(due, task)).Err()
	} else {
		err = r.rdb.ZAdd(ctx, r.key(state), z(due, task)).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// twins are two schedulers of one store and queue, with a clock that tests move.
type twins struct {
	elapsed  time.Duration
	reg      [2]*prometheus.Registry
	schedule [2]*scheduler.Scheduler
	logged   *observer.ObservedLogs
}

func newTwins(t *testing.T, s scheduler.Store, q scheduler.Queue) *twins {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	w := &twins{logged: logged}
	base := time.Now()
	for i := range w.schedule {
		w.reg[i] = prometheus.NewRegistry()
		var err error
		w.schedule[i], err = scheduler.New(scheduler.Options{Store: s, Queue: q, Log: zap.New(core), Registerer: w.reg[i],
			NowFunc: func() time.Time { return base.Add(w.elapsed) }, ElapsedFunc: func() time.Duration { return w.elapsed }})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// tick lets both look at once, d after they did last.
func (w *twins) tick(t *testing.T, d time.Duration) {
	t.Helper()
	w.elapsed += d
	var both sync.WaitGroup
	for _, s := range w.schedule {
		both.Go(func() {
			if err := s.Tick(t.Context()); err != nil {
				t.Errorf("tick at %s = %v, want nil", w.elapsed, err)
			}
		})
	}
	both.Wait()
}

// counted sums a counter of both over its label.
func (w *twins) counted(t *testing.T, name string) map[string]int {
	t.Helper()
	sum := map[string]int{}
	for _, reg := range w.reg {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				if n := int(m.GetCounter().GetValue()); n > 0 {
					sum[m.GetLabel()[0].GetValue()] += n
				}
			}
		}
	}
	return sum
}

// rescued returns the causes that were logged for each job.
func (w *twins) rescued() map[string]string {
	causes := map[string]string{}
	for _, e := range w.logged.FilterMessage("job rescued").All() {
		fields := e.ContextMap()
		job := fields["job"].(string)
		causes[job] += fields["cause"].(string) // two show as one long word
	}
	return causes
}

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "headroom.db"), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newJob returns a backfill that has a place, and no task.
func newJob(t *testing.T, s *sqlite.Store, account string) jobs.Job {
	t.Helper()
	if err := s.AddAccount(t.Context(), jobs.Account{Email: account, Project: "main"}); err != nil {
		t.Fatal(err)
	}
	j := must(t)(store2(s.StartBackfill(t.Context(), account, jobs.Filter{})))
	return must(t)(s.SetAdmission(t.Context(), j.ID, jobs.NotAdmitted, jobs.Admitted))
}

// TestEveryCellIsRescuedOnce: each state of a job, with each state of its task,
// before two schedulers that look at the same time.
func TestEveryCellIsRescuedOnce(t *testing.T) {
	r, s := newRig(t), openStore(t)
	var cells []cell
	want := map[string]string{}
	sums := map[string]int{}
	for i, at := range standings {
		for _, state := range taskStates {
			j := at.bring(t, s, newJob(t, s, fmt.Sprintf("%d-%s@example.com", i, state)))
			r.stand(t, j.Ref(), state)
			cells = append(cells, cell{at.name + ", task " + state, state, j})
			if cause := at.causes[state]; cause != "" {
				want[j.ID] = cause
				sums[cause]++
			}
		}
	}

	w := newTwins(t, s, r.queue)
	for range 6 { // 10 s
		w.tick(t, 2*time.Second)
		for _, c := range cells {
			if c.job.LeaseUntil.After(time.Now()) { // its owner is alive
				if _, err := s.Renew(t.Context(), c.job.Ref(), time.Hour); err != nil {
					t.Errorf("%s: the owner renews its lease: %v", c.name, err)
				}
			}
		}
	}

	got := w.rescued()
	for _, c := range cells {
		if got[c.job.ID] != want[c.job.ID] {
			t.Errorf("%s: rescued for %q, want %q", c.name, got[c.job.ID], want[c.job.ID])
		}
		r.checkTasks(t, s, c, want[c.job.ID])
	}
	if diff := cmp.Diff(sums, w.counted(t, "headroom_scheduler_rescues_total")); diff != "" {
		t.Errorf("rescues counted (-want +got):\n%s", diff)
	}
	r.runAll(t, s, cells, want)
}

type cell struct {
	name, state string
	job         jobs.Job // before it was rescued
}

// checkTasks looks whether what is left of the queue fits the job's row.
func (r *rig) checkTasks(t *testing.T, s *sqlite.Store, c cell, cause string) {
	t.Helper()
	now := must(t)(s.Job(t.Context(), c.job.ID))
	old := r.look(t, c.job.Ref()).State
	if kept := now.Ref() == c.job.Ref() && now.State.Live() || c.state == "pending" || c.state == "active"; kept != (old != scheduler.TaskNone) && c.state != "none" {
		t.Errorf("%s: the old task is %s; is it to be kept: %t", c.name, old, kept)
	}
	if cause == "" {
		if now.Epoch != c.job.Epoch || now.State != c.job.State {
			t.Errorf("%s: the job is %s at epoch %d, want it left %s at %d", c.name, now.State, now.Epoch, c.job.State, c.job.Epoch)
		}
		return
	}
	rests := now.State == jobs.Paused || now.Admission == jobs.NotAdmitted
	if task := r.look(t, now.Ref()).State; now.Epoch != c.job.Epoch+1 || (task == scheduler.TaskPending) == rests {
		t.Errorf("%s: the job is %s at epoch %d with a task %s, want the next epoch, and a pending task unless it rests", c.name, now.State, now.Epoch, task)
	}
	if wanted := c.job.Wanted; wanted != "" && (now.State != wanted || now.Wanted != "") {
		t.Errorf("%s: the job is %s and wanted %q, want it %s", c.name, now.State, now.Wanted, wanted)
	}
}

// runAll lets a worker run what is left, and counts the runs that get to work.
func (r *rig) runAll(t *testing.T, s *sqlite.Store, cells []cell, rescued map[string]string) {
	t.Helper()
	var mu sync.Mutex
	runs := map[string]int{}
	r.serve(t, func(ctx context.Context, task *asynq.Task) error {
		ref, err := jobs.ParseTask(task)
		if err != nil {
			return err
		}
		if _, err := s.Claim(ctx, ref, time.Hour); err != nil {
			return nil // it means nothing any more
		}
		mu.Lock()
		defer mu.Unlock()
		runs[ref.Job]++
		return nil
	})
	eventually(t, "nothing is pending", func() bool { return r.rdb.LLen(t.Context(), r.key("pending")).Val() == 0 })
	eventually(t, "all have run", func() bool { // but for those that the cells left active
		return r.rdb.LLen(t.Context(), r.key("active")).Val() <= int64(len(standings))
	})
	mu.Lock()
	defer mu.Unlock()
	for _, c := range cells {
		now := must(t)(s.Job(t.Context(), c.job.ID))
		want := 0
		if now.State.Live() && now.Admission != jobs.NotAdmitted && (rescued[c.job.ID] != "" || c.state == "pending" && c.job.LeaseUntil.IsZero()) {
			want = 1
		}
		if runs[c.job.ID] != want {
			t.Errorf("%s: it ran %d times, want %d", c.name, runs[c.job.ID], want)
		}
	}
}

// TestTheQueuesAreSwept: what is broken goes, what is not ours stays, and page by
// page everything is seen.
func TestTheQueuesAreSwept(t *testing.T) {
	r, s := newRig(t), openStore(t)
	ctx := t.Context()
	live := newJob(t, s, "ann@example.com")
	r.stand(t, live.Ref(), "retry")
	const many = 450 // more than two pages
	for i := range many {
		r.stand(t, jobs.TaskRef{Job: live.ID, Epoch: live.Epoch - 1, Slice: int64(i)}, "archived")
	}
	unknown := jobs.TaskRef{Job: "backfill:eve@example.com", Epoch: 1}
	r.stand(t, unknown, "archived")
	r.rdb.ZAdd(ctx, r.key("archived"), z(1, "not-ours"))
	r.rdb.HSet(ctx, r.key("t:not-ours"), "msg", "", "state", "archived")
	for i, state := range append([]string{"pending"}, taskStates[2:]...) {
		ghost := jobs.TaskRef{Job: live.ID, Epoch: live.Epoch, Slice: int64(1000 + i)}
		r.stand(t, ghost, state)
		r.rdb.Del(ctx, r.key("t:"+ghost.TaskID()))
	}
	if _, err := r.inspector.GetQueueInfo(queueName); err == nil {
		t.Fatal("a task without a message breaks nothing")
	}

	w := newTwins(t, s, r.queue)
	for range 6 {
		w.tick(t, 2*time.Second)
	}
	if info, err := r.inspector.GetQueueInfo(queueName); err != nil || info.Archived != 2 || info.Retry != 1 || info.Size != 3 {
		t.Errorf("the queue is %+v, %v, want the live job's task and the two that are not ours", info, err)
	}
	if got := r.look(t, live.Ref()).State; got != scheduler.TaskDelayed {
		t.Errorf("the live job's task is %s", got)
	}
	want := map[string]int{"archived": many, "ghost": 6}
	if diff := cmp.Diff(want, w.counted(t, "headroom_scheduler_swept_tasks_total")); diff != "" {
		t.Errorf("tasks swept (-want +got):\n%s", diff)
	}
	if got := w.counted(t, "headroom_scheduler_rescues_total"); len(got) != 0 {
		t.Errorf("rescues: %v, want none", got)
	}
}

// TestActiveTasksWithoutALeaseAreSwept: a worker was killed, and its lease is gone
// from Asynq, which never looks at such a task again. Once its slice is over it is
// removed; a task that some worker has the lease of stays, and so does a live job's.
func TestActiveTasksWithoutALeaseAreSwept(t *testing.T) {
	r, s := newRig(t), openStore(t)
	ctx := t.Context()
	job := newJob(t, s, "ann@example.com")
	r.stand(t, job.Ref(), "active")
	r.rdb.ZRem(ctx, r.key("lease"), job.Ref().TaskID())
	for i := range 3 * 200 {
		ref := jobs.TaskRef{Job: job.ID, Epoch: job.Epoch - 1, Slice: int64(i)}
		r.stand(t, ref, "active")
		if i > 0 {
			r.rdb.ZRem(ctx, r.key("lease"), ref.TaskID())
		}
	}
	w := newTwins(t, s, r.queue)
	active := func() int64 { return r.rdb.LLen(ctx, r.key("active")).Val() }
	w.tick(t, 2*time.Second)
	w.tick(t, 2*time.Second)
	if got := r.look(t, job.Ref()).State; got != scheduler.TaskActive {
		t.Errorf("the live job's task is %s before it is given up", got)
	}
	for range 8 { // the live job is rescued meanwhile, and its old task is over then
		w.tick(t, 2*time.Second)
	}
	if got := active(); got != 1 {
		t.Errorf("%d tasks are active, want the one that a worker has", got)
	}
	if n, err := r.rdb.Exists(ctx, r.key("t:"+job.Ref().TaskID())).Result(); err != nil || n != 0 {
		t.Errorf("the task's data is still there: %d, %v", n, err)
	}
	if diff := cmp.Diff(map[string]int{"active": 3 * 200}, w.counted(t, "headroom_scheduler_swept_tasks_total")); diff != "" {
		t.Errorf("tasks swept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"never-claimed": 1}, w.counted(t, "headroom_scheduler_rescues_total")); diff != "" {
		t.Errorf("rescues (-want +got):\n%s", diff)
	}
}

// TestASweepSparesWhatHasBecomePending meanwhile.
func TestASweepSparesWhatHasBecomePending(t *testing.T) {
	r := newRig(t)
	ref := jobs.TaskRef{Job: id, Epoch: 1}
	r.stand(t, ref, "retry")
	swept, err := r.queue.Sweep(t.Context(), 0, 10, func(jobs.TaskRef) (bool, error) {
		return true, r.inspector.RunTask(queueName, ref.TaskID())
	})
	if err != nil || len(swept.Removed) != 0 || r.look(t, ref).State != scheduler.TaskPending {
		t.Errorf("Sweep = %+v, %v, the task is %s, want it left pending", swept, err, r.look(t, ref).State)
	}
}

// TestAQueueThatIsForgottenOrPaused is registered again once, and shown.
func TestAQueueThatIsForgottenOrPaused(t *testing.T) {
	r, s := newRig(t), openStore(t)
	w := newTwins(t, s, r.queue)
	paused := func(want float64) {
		t.Helper()
		for _, reg := range w.reg {
			if n, err := testutil.GatherAndCount(reg, "headroom_scheduler_queue_paused"); n != 1 || err != nil {
				t.Errorf("%d gauges of paused queues, %v, want 1", n, err)
			}
			families, _ := reg.Gather()
			for _, f := range families {
				if f.GetName() == "headroom_scheduler_queue_paused" && f.GetMetric()[0].GetGauge().GetValue() != want {
					t.Errorf("queue paused: %v, want %v", f.GetMetric()[0].GetGauge().GetValue(), want)
				}
			}
		}
	}
	w.tick(t, 0)
	r.put(t, jobs.TaskRef{Job: id})
	paused(0)
	if err := r.inspector.DeleteQueue(queueName, true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.tick(t, 2*time.Second)
	}
	if diff := cmp.Diff(map[string]int{"queue-forgotten": 1}, w.counted(t, "headroom_scheduler_rescues_total")); diff != "" {
		t.Errorf("rescues (-want +got):\n%s", diff)
	}
	if queues, err := r.inspector.Queues(); err != nil || len(queues) != 1 {
		t.Errorf("queues that the UI knows: %q, %v, want one", queues, err)
	}

	if err := r.inspector.PauseQueue(queueName); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.tick(t, 2*time.Second)
	}
	paused(1)
	if err := r.inspector.UnpauseQueue(queueName); err != nil {
		t.Fatal(err)
	}
	w.tick(t, 2*time.Second)
	paused(0)
	if n := w.logged.FilterMessageSnippet("paused").Len(); n != 4 {
		t.Errorf("%d lines about the pause, want one of each scheduler at its begin and its end", n)
	}
}
