package scheduler_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/scheduler"
)

// clock is a wall clock that is set.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *clock) set(d time.Duration) *clock {
	c.off.Store(int64(d))
	return c
}

// own is an owner at work: it renews a lease of 5 s every second, between ticks, on
// the clock c, and works on the job, until the test is over or it has lost it.
func own(t *testing.T, s *testStore, c *clock, work func(*jobs.Job)) {
	t.Helper()
	time.Sleep(300 * time.Millisecond)
	for range 600 {
		lost := false
		s.Edit(id, func(j *jobs.Job) {
			if lost = j.Epoch != 3; lost {
				return
			}
			work(j)
			j.LeaseUntil, j.UpdatedAt = c.now().Add(5*time.Second), c.now()
		})
		if lost {
			return
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// watch lets a scheduler with the clock c look for d.
func watch(t *testing.T, d time.Duration, s *testStore, q *memQueue, c *clock, schedule cron.Schedule) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	runWith(t, d, scheduler.Options{TaskTimeout: time.Minute, Store: s, Queue: q, Schedule: schedule, Log: zap.NewNop(), Registerer: reg, NowFunc: c.now})
	return reg
}

func TestAClockThatIsSetTakesNoJobFromItsOwner(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 3 * time.Second, -3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, q, ours, theirs := newStore(job(func(*jobs.Job) {})), newQueue(), &clock{}, &clock{}
			go own(t, s, theirs, func(j *jobs.Job) { j.Units++ })
			go func() { // ours is set, and theirs half a minute later: by then they are as far apart as can be
				time.Sleep(30 * time.Second)
				ours.set(step)
				time.Sleep(30 * time.Second)
				theirs.set(step)
			}()
			rescues(t, watch(t, 2*time.Minute, s, q, ours, nil), nil)
		})
	}
}

func TestALeaseThatAClockMadeLongIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q, c := newStore(job(func(j *jobs.Job) { j.LeaseUntil = time.Now().Add(5 * time.Second) })), newQueue(), new(clock).set(-time.Hour)
		start := time.Now()
		rescues(t, watch(t, time.Minute, s, q, c, nil), map[string]int{"lease-frozen": 1})
		if took := q.putAt[id+":4:7"].Sub(start); took > 15*time.Second {
			t.Errorf("the dead owner's job was back after %s, want two leases and two ticks at most", took)
		}
	})
}

func TestASliceThatBringsNothingIsEnded(t *testing.T) {
	for name, row := range map[string]struct {
		work func(*jobs.Job)
		want map[string]int
	}{
		"it brings nothing":       {func(*jobs.Job) {}, map[string]int{"slice-hung": 1}},
		"it lists":                {func(j *jobs.Job) { j.Progress.Listed++ }, nil},
		"it stores":               {func(j *jobs.Job) { j.Progress.Stored++ }, nil},
		"it spends":               {func(j *jobs.Job) { j.Units++ }, nil},
		"its slices end":          {func(j *jobs.Job) { j.Slice++ }, nil},
		"it is refused each time": {func(j *jobs.Job) { j.Requeued++ }, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, q, c := newStore(job(func(*jobs.Job) {})), newQueue(), &clock{}
			start := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				own(t, s, c, row.work)
			}()
			t.Log(name)
			// The last seconds are the new epoch's: a task, pending.
			rescues(t, watch(t, 90*time.Second, s, q, c, nil), row.want)
			if at := q.putAt[id+":4:7"]; row.want != nil && (at.Sub(start) < time.Minute || at.Sub(start) > 75*time.Second) {
				t.Errorf("%s: ended after %s, want the minute of its task, two leases and two ticks", name, at.Sub(start))
			}
			s.Put(job(func(j *jobs.Job) { j.Epoch = 9 }))
			<-done
		})
	}
}

func TestWaitsHaveBounds(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, row := range []struct {
		name      string
		state     jobs.State
		wait, age time.Duration // of the row
		task      scheduler.TaskState
		due       time.Duration // of the task
		unlisted  bool          // the queue has lost the task's place
		want      string
	}{
		{name: "it waits for a day's budget", state: jobs.Waiting, wait: 25 * time.Hour, task: scheduler.TaskDelayed, due: 25 * time.Hour},
		{name: "it waits for a year", state: jobs.Waiting, wait: year, task: scheduler.TaskDelayed, due: year, want: "wait-too-long"},
		{name: "its task is due an hour after it", state: jobs.Waiting, wait: time.Minute, task: scheduler.TaskDelayed, due: time.Hour, want: "task-late"},
		{name: "its task backs off", state: jobs.Queued, task: scheduler.TaskDelayed, due: 2 * time.Minute},
		{name: "its task is put off for no reason", state: jobs.Queued, task: scheduler.TaskDelayed, due: time.Hour, want: "task-late"},
		{name: "no worker is free", state: jobs.Queued, task: scheduler.TaskPending},
		{name: "its task is in no list", state: jobs.Queued, task: scheduler.TaskPending, unlisted: true, want: "task-missing"},
		{name: "a clock has made the row young", state: jobs.Queued, age: -time.Hour, task: scheduler.TaskNone, want: "task-missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s, q := newStore(job(func(j *jobs.Job) {
					j.State, j.UpdatedAt = row.state, start.Add(-row.age)
					if row.wait > 0 {
						j.WaitUntil = start.Add(row.wait)
					}
				})), newQueue()
				q.set(id+":3:7", scheduler.Task{State: row.task, Due: start.Add(row.due)})
				q.unlisted[id+":3:7"] = row.unlisted
				want := map[string]int{}
				if row.want != "" {
					want[row.want] = 1
				}
				rescues(t, watch(t, 27*time.Hour, s, q, &clock{}, cron.Every(time.Minute)), want)
			})
		})
	}
}

// TestDoubtsAreLookedAtSoon: where ticks are rare, what needs a second look gets it.
func TestDoubtsAreLookedAtSoon(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  func(*jobs.Job)
		task scheduler.TaskState
		want string
	}{
		{"a lease that has ended", func(j *jobs.Job) { j.LeaseUntil = time.Now() }, scheduler.TaskActive, "lease-expired"},
		{"a row just written", func(j *jobs.Job) { j.UpdatedAt = time.Now().Add(time.Hour) }, scheduler.TaskNone, "task-missing"},
		{"a task just taken", func(*jobs.Job) {}, scheduler.TaskActive, "never-claimed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s, q := newStore(job(tt.job)), newQueue()
				q.set(id+":3:7", scheduler.Task{State: tt.task})
				reg := watch(t, time.Hour+10*time.Second, s, q, &clock{}, cron.Every(time.Hour))
				rescues(t, reg, map[string]int{tt.want: 1})
				if at := q.putAt[id+":4:7"].Sub(start); at > time.Hour+7*time.Second {
					t.Errorf("rescued after %s, want soon after the hour", at)
				}
			})
		})
	}
}

// TestARescueTooLateIsNone: while a slow tick looks, the job goes on.
func TestARescueTooLateIsNone(t *testing.T) {
	for name, goesOn := range map[string]func(*jobs.Job){
		"it is claimed":          func(j *jobs.Job) { j.LeaseUntil = time.Now().Add(time.Minute) },
		"its next slice is due":  func(j *jobs.Job) { j.Slice++ },
		"it was refused again":   func(j *jobs.Job) { j.State = jobs.Waiting },
		"another has rescued it": func(j *jobs.Job) { j.Epoch++ },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, q := newStore(job(func(*jobs.Job) {})), newQueue()
				q.onLook = func() { // the row that the tick has read is old by now, and its task gone
					s.Edit(id, func(j *jobs.Job) {
						goesOn(j)
						j.UpdatedAt = time.Now().Add(time.Millisecond)
					})
				}
				rescues(t, run(t, 3*time.Second, s, q), nil)
				if s.stale != 1 || q.puts != 0 {
					t.Errorf("%d takeovers were refused, and %d tasks put, want 1 and 0", s.stale, q.puts)
				}
			})
		})
	}
}
