package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/robfig/cron/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"headroom/jobs"
	"headroom/scheduler"
)

const id = "backfill:ann@example.com"

func job(change func(*jobs.Job)) jobs.Job {
	j := jobs.Job{ID: id, Kind: jobs.MailBackfill, Account: "ann@example.com", State: jobs.Running,
		Epoch: 3, Slice: 7, UpdatedAt: time.Now()}
	change(&j)
	return j
}

// run lets a scheduler with the default schedule tick for d of virtual time.
func run(t *testing.T, d time.Duration, s *testStore, q *memQueue) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	runWith(t, d, scheduler.Options{Store: s, Queue: q, Log: zaptest.NewLogger(t), Registerer: reg})
	return reg
}

func runWith(t *testing.T, d time.Duration, o scheduler.Options) {
	t.Helper()
	sched, err := scheduler.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := sched.Run(ctx); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
}

// rescues reads the counter of one cause.
func rescues(t *testing.T, reg *prometheus.Registry, want map[string]int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# HELP headroom_scheduler_rescues_total Jobs and queues rescued, by cause.\n")
	text.WriteString("# TYPE headroom_scheduler_rescues_total counter\n")
	for _, c := range []string{"lease-expired", "lease-frozen", "never-claimed", "queue-forgotten", "slice-hung",
		"task-dead", "task-late", "task-missing", "wait-too-long"} {
		fmt.Fprintf(&text, "headroom_scheduler_rescues_total{cause=%q} %d\n", c, want[c])
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text.String()), "headroom_scheduler_rescues_total"); err != nil {
		t.Error(err)
	}
}

func TestADeadOwnersJobIsBackWithinTenSeconds(t *testing.T) {
	for offset := time.Duration(0); offset < 2*time.Second; offset += 250 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s, q := newStore(), newQueue()
			var died time.Time
			go func() { // renews the lease once, then is killed
				time.Sleep(20*time.Second + offset)
				died = time.Now()
				s.Put(job(func(j *jobs.Job) { j.LeaseUntil = died.Add(5 * time.Second) }))
			}()
			run(t, time.Minute, s, q)
			if late := q.putAt[id+":4:7"].Sub(died); late < 5*time.Second || late > 10*time.Second {
				t.Errorf("died at +%s: task of the new epoch after %s, want between 5s and 10s", offset, late)
			}
		})
	}
}

func TestARowJustWrittenIsGivenASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := newStore(), newQueue()
		start := time.Now().Truncate(time.Second)
		go func() {
			time.Sleep(1500 * time.Millisecond)
			s.Put(job(func(*jobs.Job) {}))
		}()
		run(t, 7*time.Second, s, q)
		if got, want := q.putAt[id+":4:7"].Sub(start), 4*time.Second; got != want {
			t.Errorf("task put %s after the start, want %s: not by the tick half a second after the row", got, want)
		}
	})
}

func TestClaimingAfterALongWaitInTheQueueIsNoRescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(job(func(j *jobs.Job) { j.State, j.UpdatedAt = jobs.Queued, time.Now().Add(-time.Hour) }))
		q := newQueue()
		q.set(id+":3:7", scheduler.Task{State: scheduler.TaskPending})
		go func() {
			time.Sleep(3900 * time.Millisecond) // the tick at 4 s sees it active, unclaimed
			q.set(id+":3:7", scheduler.Task{State: scheduler.TaskActive})
			time.Sleep(200 * time.Millisecond)
			s.Put(job(func(j *jobs.Job) { j.LeaseUntil = time.Now().Add(time.Hour) }))
		}()
		rescues(t, run(t, 13*time.Second, s, q), nil)
	})
}

func TestTwoSchedulersMakeOneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := newStore(), newQueue()
		for i := range 50 {
			s.Put(job(func(j *jobs.Job) {
				j.ID = fmt.Sprint("job", i)
				if i%2 == 0 {
					j.LeaseUntil = time.Now().Add(3 * time.Second)
				}
			}))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, time.Minute, s, q)
		}()
		run(t, time.Minute, s, q)
		<-done
		if q.puts != 50 {
			t.Errorf("%d tasks were made for 50 jobs, want one each", q.puts)
		}
		for i := range 50 {
			want := jobs.TaskRef{Job: fmt.Sprint("job", i), Epoch: 4, Slice: 7}
			if got := q.tasks[want.TaskID()].State; got != scheduler.TaskPending {
				t.Errorf("task %s is %s, want pending", want.TaskID(), got)
			}
		}
	})
}

func TestOneFailingJobDoesNotKeepTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(job(func(j *jobs.Job) { j.ID = "bad" }), job(func(j *jobs.Job) { j.ID = "good" }))
		q := newQueue()
		q.failLook = map[string]error{"bad": errors.New("boom")}
		core, logs := observer.New(zap.ErrorLevel)
		runWith(t, 11*time.Second, scheduler.Options{Store: s, Queue: q, Log: zap.New(core), Registerer: prometheus.NewRegistry()})
		if q.tasks["good:4:7"].State != scheduler.TaskPending {
			t.Error("the good job was not rescued")
		}
		if got := logs.Len(); got != 1 {
			t.Fatalf("five failing ticks logged %d errors, want 1", got)
		}
		if got := logs.All()[0].ContextMap()["error"]; got != "job bad: boom" {
			t.Errorf("logged %q, want it to name the job and the cause", got)
		}
	})
}

func TestRunSurvivesFailingAndHangingTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := newStore(job(func(*jobs.Job) {})), newQueue()
		s.failWith(errors.New("database is locked"))
		go func() {
			time.Sleep(5 * time.Second)
			s.hold.Store(true) // hangs until the tick's bound, 30 s
			s.failWith(nil)
			time.Sleep(10 * time.Second)
			q.mu.Lock()
			puts := q.puts
			q.mu.Unlock()
			if puts != 0 {
				t.Errorf("%d tasks put while the store hung", puts)
			}
			s.hold.Store(false)
		}()
		reg := run(t, time.Minute, s, q)
		if q.puts != 1 {
			t.Errorf("%d tasks put after the store came back, want 1", q.puts)
		}
		failed := testutil.ToFloat64(counter(t, reg, "failed"))
		if failed != 3 { // at 2 s and 4 s, and the one that hung
			t.Errorf("%v ticks counted as failed, want 3", failed)
		}
	})
}

// counter returns the ticks counter of an outcome, as gathered.
func counter(t *testing.T, reg *prometheus.Registry, outcome string) prometheus.Collector {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "copy"})
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "headroom_scheduler_ticks_total" && m.GetLabel()[0].GetValue() == outcome {
				g.Set(m.GetCounter().GetValue())
			}
		}
	}
	return g
}

func TestAnOverdueTaskIsShownAndNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(job(func(j *jobs.Job) { j.State, j.WaitUntil = jobs.Waiting, time.Now() }))
		q := newQueue()
		q.set(id+":3:7", scheduler.Task{State: scheduler.TaskDelayed, Due: time.Now()})
		reg := run(t, time.Minute, s, q)
		want := `
# HELP headroom_scheduler_overdue_jobs Waiting jobs whose moment passed over 30 seconds ago and whose task still waits in the queue.
# TYPE headroom_scheduler_overdue_jobs gauge
headroom_scheduler_overdue_jobs 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headroom_scheduler_overdue_jobs"); err != nil {
			t.Error(err)
		}
		rescues(t, reg, nil)
	})
}

func TestTheScheduleSaysWhen(t *testing.T) {
	for spec, want := range map[string]int{"@every 2s": 1800, "*/10 * * * *": 6, "0 0 30 2 *": 0} {
		synctest.Test(t, func(t *testing.T) {
			schedule, err := cron.ParseStandard(spec)
			if err != nil {
				t.Fatal(err)
			}
			s, q := newStore(), newQueue()
			runWith(t, time.Hour+time.Second, scheduler.Options{Store: s, Queue: q, Schedule: schedule,
				Log: zap.NewNop(), Registerer: prometheus.NewRegistry()})
			if s.lists != want || q.registered != want {
				t.Errorf("%q ticked %d times and registered the queue %d times in an hour, want %d", spec, s.lists, q.registered, want)
			}
		})
	}
}

func TestNewRefusesWhatCannotRun(t *testing.T) {
	s, q, log := newStore(), newQueue(), zap.NewNop()
	for name, o := range map[string]scheduler.Options{
		"no store":         {Queue: q, Log: log, Registerer: prometheus.NewRegistry()},
		"no queue":         {Store: s, Log: log, Registerer: prometheus.NewRegistry()},
		"no log":           {Store: s, Queue: q, Registerer: prometheus.NewRegistry()},
		"no registerer":    {Store: s, Queue: q, Log: log},
		"negative timeout": {Store: s, Queue: q, Log: log, Registerer: prometheus.NewRegistry(), Timeout: -1},
		"negative lease":   {Store: s, Queue: q, Log: log, Registerer: prometheus.NewRegistry(), Lease: -1},
	} {
		if _, err := scheduler.New(o); err == nil {
			t.Errorf("%s: New accepted it", name)
		}
	}
}

// An outage makes one alarm for all jobs of a project, and one line at its end.
func TestJobsThatWaitForAFaultMakeOneAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(id, project string, failures int, since time.Duration) jobs.Job {
			return job(func(j *jobs.Job) {
				j.ID, j.Project, j.State, j.Failures, j.LastError = id, project, jobs.Waiting, failures, "connection refused"
				j.WaitUntil, j.FailingSince = time.Now().Add(time.Hour), time.Now().Add(-since)
			})
		}
		s := newStore(failing("backfill:a@example.com", "main", 9, 10*time.Minute), failing("backfill:b@example.com", "main", 5, 2*time.Minute),
			failing("backfill:c@example.com", "other", 1, time.Second), job(func(j *jobs.Job) { j.Project = "other" }))
		refused := failing("backfill:d@example.com", "main", 1, 3*time.Hour) // it failed once, and waits for quota since
		refused.QuotaWait = true
		s.Put(refused)
		core, logs := observer.New(zap.InfoLevel)
		reg := prometheus.NewRegistry()
		o := scheduler.Options{Store: s, Queue: newQueue(), Log: zap.New(core), Registerer: reg}
		sched, err := scheduler.New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		go func() {
			<-time.After(20 * time.Second)
			live, _ := s.Store.LiveJobs(ctx)
			for _, j := range live {
				s.Edit(j.ID, func(j *jobs.Job) { j.Failures, j.FailingSince = 0, time.Time{} })
			}
		}()
		if err := sched.Run(ctx); err != nil {
			t.Fatal(err)
		}
		alarms := logs.FilterMessageSnippet("wait for a fault to pass").FilterLevelExact(zap.ErrorLevel).All()
		if len(alarms) != 1 || alarms[0].ContextMap()["jobs"] != int64(2) || alarms[0].ContextMap()["cause"] != "connection refused" {
			t.Errorf("alarms = %v, want one for both jobs", alarms)
		}
		if n := logs.FilterMessage("no job waits for a fault to pass any more").Len(); n != 1 {
			t.Errorf("%d lines say that it is over, want one", n)
		}
	})
}
