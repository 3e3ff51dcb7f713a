package e2e_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const getMessage = "gmail.users.messages.get"

// operate runs do with an operator of its own, as a command has.
func (r *site) operate(do func(*control.Control) error) {
	r.t.Helper()
	if err := do(r.control()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *site) pause() {
	r.t.Helper()
	r.operate(func(o *control.Control) error { _, err := o.Pause(r.t.Context(), ann); return err })
}

func (r *site) resume() {
	r.t.Helper()
	r.operate(func(o *control.Control) error { _, err := o.Resume(r.t.Context(), ann); return err })
}

// cancel reports whether cancelling changed anything.
func (r *site) cancel() (changed bool) {
	r.t.Helper()
	r.operate(func(o *control.Control) error {
		all, err := o.Cancel(r.t.Context(), ann)
		changed = len(all) == 1 && all[0].Changed
		return err
	})
	return changed
}

func in(state jobs.State) func(jobs.Job) bool {
	return func(j jobs.Job) bool { return j.State == state }
}

// silentSince checks that Google saw no call later than so long after a moment.
func (r *site) silentSince(moment time.Time, most time.Duration) {
	r.t.Helper()
	last := r.fake.Activity(meter.Filter{User: ann}).LastCall
	if late := last.Sub(moment); late > most {
		r.t.Errorf("the last call came %s after the command, want at most %s", late, most)
	} else {
		r.t.Logf("the last call came %s after the command", late)
	}
}

// TestPauseThenCancelALargeMailbox: calls stop within five seconds of
// either, a resume repeats nothing, and what was stored stays.
func TestPauseThenCancelALargeMailbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("lists 6,000 messages")
	}
	const most = 5 * time.Second
	r := newSite(t, 6_000)
	r.cfg.Worker.Lease, r.cfg.Worker.Slice = 5*time.Second, 5*time.Second // the defaults
	a := r.run(app.RoleScheduler, app.RoleWorker)
	r.startBackfill()
	s := a.Store()
	r.wait(s, "fetching", storedAtLeast(50))

	moment := time.Now()
	r.pause()
	r.pause() // twice is fine
	paused := r.wait(s, "paused", in(jobs.Paused))
	if paused.Progress.Listed != 6_000 || !paused.LeaseUntil.IsZero() {
		t.Errorf("paused = %+v, want 6,000 listed and no owner", paused)
	}
	r.silentSince(moment, most)

	r.resume()
	r.wait(s, "fetching again", storedAtLeast(paused.Progress.Stored+100))
	moment = time.Now()
	if !r.cancel() || r.cancel() {
		t.Error("the first cancel changes the job, the second does not")
	}
	cancelled := r.wait(s, "cancelled", in(jobs.Cancelled))
	r.silentSince(moment, most)
	r.drained()
	r.silentSince(moment, most)
	if n, err := s.CountMessages(t.Context(), ann); err != nil || n != cancelled.Progress.Stored || n < 150 {
		t.Errorf("%d messages are kept, %v; want the %d stored", n, err, cancelled.Progress.Stored)
	}
	if m := r.fake.Meter(); m.Refetched() != 0 {
		t.Errorf("%d messages were fetched twice", m.Refetched())
	}
}

// drained waits until the queue holds no task of any kind but the archive's, which
// must be empty.
func (r *site) drained() {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); ; <-tick.C {
		q, err := inspector.GetQueueInfo("backfill")
		if err != nil {
			r.t.Fatal(err)
		}
		if q.Archived != 0 || time.Now().After(deadline) {
			r.t.Fatalf("the queue holds %+v, want it to run empty", q)
		}
		if q.Pending+q.Active+q.Scheduled+q.Retry == 0 {
			return
		}
	}
}

// TestPausingAgainAndAgainLosesAndRepeatsNothing, with another process each time
// and once with the worker stopped in the same moment.
func TestPausingAgainAndAgainLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	r := newSite(t, 400)
	a := r.run(app.RoleScheduler, app.RoleWorker)
	s := a.Store()
	r.startBackfill()
	for _, at := range []int64{60, 160, 260} {
		r.wait(s, "on the way", storedAtLeast(at))
		r.pause()
		r.wait(s, "paused", in(jobs.Paused))
		r.resume()
	}
	j := r.wait(s, "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != 400 || j.Progress.Known != 0 {
		t.Errorf("job = %+v, want 400 messages stored", j)
	}
	r.arrived(s)
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice", n)
	}
}

// TestWhatWasGivenUpIsListedAndRetried: faults that pass cost nothing, those that
// do not are listed, and when Google is repaired a retry asks for these only.
func TestWhatWasGivenUpIsListedAndRetried(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes about half a minute: an item is tried five times")
	}
	const messages = 300
	r := newSite(t, messages)
	bad := map[string]bool{}
	for i, m := range r.fake.Mailbox(ann).Messages() {
		f := fault.Fault{Method: getMessage, ID: m.ID, Reason: "backendError"}
		switch {
		case i%60 == 30:
			bad[m.ID] = true
		case i%60 == 45:
			f.Count = 3
		default:
			continue
		}
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	s := a.Store()
	r.startBackfill()
	j := r.wait(s, "ended", terminal)
	if j.State != jobs.CompletedWithFailures || j.Progress.Stored != messages-5 || j.Progress.Failed != 5 {
		t.Fatalf("job = %+v, want all but 5 stored", j)
	}
	list, err := s.Failures(t.Context(), j.ID, jobs.FailureFilter{}, "", 0)
	if err != nil || len(list) != 5 {
		t.Fatalf("failures = %+v, %v; want 5", list, err)
	}
	for _, f := range list {
		if !bad[f.ID] || f.Reason != "backendError" || f.Class != jobs.ClassTransient || f.Attempts != 5 || !f.GivenUp || f.FirstAt.IsZero() || f.LastAt.Before(f.FirstAt) {
			t.Errorf("failure = %+v", f)
		}
	}

	r.fake.ClearFaults()
	repaired := time.Now()
	r.operate(func(o *control.Control) error {
		all, err := o.RetryFailed(t.Context(), ann, jobs.FailureFilter{Reason: "backendError"})
		if len(all) != 1 || all[0].Retried != 5 {
			t.Errorf("RetryFailed = %+v", all)
		}
		return err
	})
	j = r.wait(s, "ended", in(jobs.Completed))
	if j.Progress.Stored != messages || j.Progress.Failed != 0 {
		t.Errorf("job = %+v, want all stored", j)
	}
	if list, err := s.Failures(t.Context(), j.ID, jobs.FailureFilter{}, "", 0); err != nil || len(list) != 0 {
		t.Errorf("failures = %+v, %v; want none left", list, err)
	}
	if n := r.fake.Activity(meter.Filter{Since: repaired, Method: getMessage}).Calls; n != 5 {
		t.Errorf("the retry made %d calls, want 5", n)
	}
	r.arrived(s)
}

// TestStartingAgain: a job that failed, its task in the queue's archive, starts
// over; one that completed fetches nothing when it does.
func TestStartingAgain(t *testing.T) {
	t.Parallel()
	r := newSite(t, 120)
	s := r.open()
	r.startBackfill()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	first, err := s.Job(t.Context(), jobs.BackfillID(ann))
	if err != nil {
		t.Fatal(err)
	}
	queue := jobs.Queue{Client: asynq.NewClientFromRedisClient(rdb), Name: "backfill"}
	if err := queue.Put(t.Context(), first.Ref()); err != nil {
		t.Fatal(err)
	}
	if err := asynq.NewInspectorFromRedisClient(rdb).ArchiveTask("backfill", first.Ref().TaskID()); err != nil {
		t.Fatal(err)
	}
	fail(t, s, first)
	r.run(app.RoleScheduler, app.RoleWorker)
	r.startBackfill() // checks that it is a new run
	second := r.wait(s, "ended", in(jobs.Completed))
	if second.Progress.Stored != 120 || second.Epoch != first.Epoch+1 {
		t.Errorf("the run after the failed one = %+v, want 120 stored", second)
	}
	before := r.fake.Activity(meter.Filter{Method: getMessage}).Calls
	r.startBackfill()
	third := r.wait(s, "ended again", func(j jobs.Job) bool { return j.State == jobs.Completed && j.Epoch > second.Epoch })
	if third.Progress.Known != 120 || third.Progress.Stored != 0 {
		t.Errorf("the run after the completed one = %+v, want 120 known", third)
	}
	if n := r.fake.Activity(meter.Filter{Method: getMessage}).Calls - before; n != 0 {
		t.Errorf("it fetched %d bodies, want none", n)
	}
}

// fail lets a job fail in a worker's hands.
func fail(t *testing.T, s *sqlite.Store, j jobs.Job) {
	t.Helper()
	j, err := s.Claim(t.Context(), j.Ref(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), j.Ref(), jobs.Finish{State: jobs.Failed, Error: "why"}); err != nil {
		t.Fatal(err)
	}
}
