package jobs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

const lease = 30 * time.Second

// situations are the states of a job, each with what else decides about an event:
// who holds the lease, and which state is requested.
var situations = []struct {
	name string
	job  jobs.Job
}{
	{"queued", jobs.Job{State: jobs.Queued}},
	{"running", owned("", noon.Add(time.Second))},
	{"running, pause requested", owned(jobs.Paused, noon.Add(time.Second))},
	{"running, cancel requested", owned(jobs.Cancelled, noon.Add(time.Second))},
	{"running, lease expired", owned("", noon)},
	{"lease expired, pause requested", owned(jobs.Paused, noon)},
	{"lease expired, cancel requested", owned(jobs.Cancelled, noon)},
	{"running, between slices", jobs.Job{State: jobs.Running}},
	{"waiting", jobs.Job{State: jobs.Waiting, WaitingFor: "quota", WaitUntil: noon.Add(time.Minute)}},
	{"paused", jobs.Job{State: jobs.Paused}},
	{"blocked", jobs.Job{State: jobs.Blocked, FinishedAt: noon.Add(-time.Hour)}},
	{"completed", jobs.Job{State: jobs.Completed, FinishedAt: noon.Add(-time.Hour)}},
	{"completed with failures", jobs.Job{State: jobs.CompletedWithFailures, FinishedAt: noon.Add(-time.Hour)}},
	{"cancelled", jobs.Job{State: jobs.Cancelled, FinishedAt: noon.Add(-time.Hour)}},
	{"failed", jobs.Job{State: jobs.Failed, FinishedAt: noon.Add(-time.Hour)}},
}

func owned(wanted jobs.State, until time.Time) jobs.Job {
	return jobs.Job{State: jobs.Running, Wanted: wanted, LeaseUntil: until, StartedAt: noon.Add(-time.Minute)}
}

// byOwner is an event that only the owner of the lease can bring about.
func byOwner(event func(*jobs.Job)) func(*jobs.Job) error {
	return func(j *jobs.Job) error {
		if err := j.OwnedBy(j.Ref()); err != nil {
			return err
		}
		event(j)
		return nil
	}
}

func finish(s jobs.State, pending bool) func(*jobs.Job) error {
	return byOwner(func(j *jobs.Job) { _ = j.Finish(jobs.Finish{State: s}, pending, noon) }) // all are terminal
}

type event struct {
	name  string
	apply func(*jobs.Job) error
}

// events are those of the work, and those of operators and the scheduler.
var events = [][]event{{
	{"claim", func(j *jobs.Job) error { _, err := j.Claim(j.Ref(), noon, lease); return err }},
	{"renew", byOwner(func(j *jobs.Job) { j.Renew(noon, lease) })},
	{"end slice", byOwner(func(j *jobs.Job) { j.EndSlice(noon) })},
	{"park", byOwner(func(j *jobs.Job) { j.Park(jobs.Park{For: "quota", Until: noon.Add(time.Minute), Refused: true}, noon) })},
	{"complete", finish(jobs.Completed, false)},
	{"items pending", finish(jobs.Completed, true)},
	{"complete partly", finish(jobs.CompletedWithFailures, false)},
	{"block", finish(jobs.Blocked, true)},
	{"fail", finish(jobs.Failed, true)},
}, {
	{"take over", func(j *jobs.Job) error { return j.TakeOver(*j, noon) }},
	{"pause", func(j *jobs.Job) error { _, err := j.Pause(noon); return err }},
	{"resume", func(j *jobs.Job) error { _, err := j.Resume(); return err }},
	{"cancel", func(j *jobs.Job) error { _, err := j.Cancel(noon); return err }},
	{"start", func(j *jobs.Job) error {
		ok, err := j.CanStart()
		if ok {
			j.Restart("p", true)
		}
		return err
	}},
	{"retry", func(j *jobs.Job) error {
		err := j.CanRetry()
		if err == nil {
			j.Retry()
		}
		return err
	}},
	{"admit", func(j *jobs.Job) error { return j.Admit(jobs.Admitted, jobs.Yielding) }},
}}

// outcome says what an event made of a job: "-" is no change, "+" is the next epoch,
// "→ paused" a request that the owner has yet to find, "refused" a StateError.
func outcome(before, after jobs.Job, err error) string {
	state := string(after.State)
	if after.State == jobs.CompletedWithFailures {
		state = "partly"
	}
	if after.Epoch > before.Epoch {
		state += "+"
	}
	if after.Wanted != "" && after.Wanted != before.Wanted {
		state = "→ " + string(after.Wanted)
	}
	var refused *jobs.StateError
	switch {
	case errors.As(err, &refused):
		return "refused"
	case errors.Is(err, jobs.ErrStale) && after.Epoch > before.Epoch:
		return "stale " + state
	case errors.Is(err, jobs.ErrStale):
		return "stale"
	case errors.Is(err, jobs.ErrHeld):
		return "held"
	case err != nil:
		return err.Error()
	case cmp.Equal(before, after):
		return "-"
	}
	return state
}

// transitions is the diagram of the package comment as a table: what each event
// makes of a job in each situation.
const transitions = `
                                 claim             renew    end slice  park       complete   items pending  complete partly  block      fail
queued                           running           stale    stale      stale      stale      stale          stale            stale      stale
running                          held              running  running    waiting    completed  running        partly           blocked    failed
running, pause requested         held              running  paused     paused     completed  paused         partly           blocked    failed
running, cancel requested        held              running  cancelled  cancelled  completed  cancelled      partly           cancelled  cancelled
running, lease expired           running+          running  running    waiting    completed  running        partly           blocked    failed
lease expired, pause requested   stale paused+     running  paused     paused     completed  paused         partly           blocked    failed
lease expired, cancel requested  stale cancelled+  running  cancelled  cancelled  completed  cancelled      partly           cancelled  cancelled
running, between slices          running           stale    stale      stale      stale      stale          stale            stale      stale
waiting                          running           stale    stale      stale      stale      stale          stale            stale      stale
paused                           stale             stale    stale      stale      stale      stale          stale            stale      stale
blocked                          stale             stale    stale      stale      stale      stale          stale            stale      stale
completed                        stale             stale    stale      stale      stale      stale          stale            stale      stale
completed with failures          stale             stale    stale      stale      stale      stale          stale            stale      stale
cancelled                        stale             stale    stale      stale      stale      stale          stale            stale      stale
failed                           stale             stale    stale      stale      stale      stale          stale            stale      stale

                                 take over   pause     resume   cancel       start    retry    admit
queued                           queued+     paused+   -        cancelled+   -        -        queued
running                          running+    → paused  -        → cancelled  -        -        running
running, pause requested         paused+     -         running  → cancelled  -        -        running
running, cancel requested        cancelled+  refused   refused  -            refused  -        running
running, lease expired           running+    paused+   -        cancelled+   -        -        running
lease expired, pause requested   paused+     -         running  cancelled+   -        -        running
lease expired, cancel requested  cancelled+  refused   refused  -            refused  -        running
running, between slices          running+    paused+   -        cancelled+   -        -        running
waiting                          waiting+    paused+   -        cancelled+   -        -        waiting
paused                           stale       -         queued+  cancelled+   -        -        stale
blocked                          stale       refused   queued+  cancelled+   queued+  refused  stale
completed                        stale       refused   refused  refused      queued+  queued+  stale
completed with failures          stale       refused   refused  refused      queued+  queued+  stale
cancelled                        stale       refused   refused  -            queued+  refused  stale
failed                           stale       refused   refused  refused      queued+  refused  stale
`

func TestEveryEventInEveryState(t *testing.T) {
	var table strings.Builder
	for _, group := range events {
		w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "\n")
		for _, e := range group {
			fmt.Fprint(w, "\t", e.name)
		}
		fmt.Fprint(w, "\n")
		for _, s := range situations {
			fmt.Fprint(w, s.name)
			for _, e := range group {
				before := s.job
				before.ID, before.Kind, before.Project, before.Epoch, before.Slice = "backfill:a@example.com", jobs.MailBackfill, "p", 3, 7
				after := before
				err := e.apply(&after)
				checkRow(t, e.name+" of "+s.name, before, after, err)
				fmt.Fprint(w, "\t", outcome(before, after, err))
			}
			fmt.Fprint(w, "\n")
		}
		w.Flush()
	}
	if diff := cmp.Diff(strings.Split(transitions, "\n"), strings.Split(table.String(), "\n")); diff != "" {
		t.Errorf("transitions differ (-want +got):\n%s", diff)
	}
}

// checkRow checks what holds of every row, whatever happened to it.
func checkRow(t *testing.T, what string, before, j jobs.Job, err error) {
	t.Helper()
	if err != nil && j.Epoch == before.Epoch && !cmp.Equal(before, j) {
		t.Errorf("%s failed with %v and changed the row:\n%s", what, err, cmp.Diff(before, j))
	}
	if !j.LeaseUntil.IsZero() && j.State != jobs.Running {
		t.Errorf("%s: a job that is %s has a lease", what, j.State)
	}
	if j.State.Terminal() != !j.FinishedAt.IsZero() {
		t.Errorf("%s: a job that is %s finished at %v", what, j.State, j.FinishedAt)
	}
	if j.State != jobs.Waiting && (j.WaitingFor != "" || !j.WaitUntil.IsZero()) {
		t.Errorf("%s: a job that is %s waits until %v", what, j.State, j.WaitUntil)
	}
	if j.Wanted != "" && j.LeaseUntil.IsZero() {
		t.Errorf("%s: a job without an owner is asked to be %s", what, j.Wanted)
	}
}

func TestClaimOfAnotherSliceOrEpoch(t *testing.T) {
	for _, c := range []struct {
		name         string
		epoch, slice int64
		want         error
	}{
		{"the slice that is due", 3, 7, nil},
		{"the slice before", 3, 6, jobs.ErrSliceDone},
		{"the slice after", 3, 8, jobs.ErrStale},
		{"an epoch before", 2, 7, jobs.ErrStale},
		{"an epoch to come", 4, 7, jobs.ErrStale},
	} {
		j := jobs.Job{ID: "j", State: jobs.Queued, Epoch: 3, Slice: 7}
		if _, err := j.Claim(jobs.TaskRef{Job: "j", Epoch: c.epoch, Slice: c.slice}, noon, lease); !errors.Is(err, c.want) {
			t.Errorf("Claim of %s = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestTakeOverNeedsTheRowAsSeen(t *testing.T) {
	seen := owned("", noon)
	for _, write := range []func(*jobs.Job){
		func(j *jobs.Job) { j.Touch(noon) },
		func(j *jobs.Job) { j.Renew(noon, lease) },
		func(j *jobs.Job) { j.Slice++ },
		func(j *jobs.Job) { j.Epoch++ },
	} {
		j := seen
		write(&j)
		if err := j.TakeOver(seen, noon); !errors.Is(err, jobs.ErrStale) {
			t.Errorf("TakeOver of a row written since = %v, want ErrStale", err)
		}
	}
}

func TestAYieldingJobWaitsForItsNextAdmission(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*jobs.Job)
		want jobs.State
	}{
		{"end slice", func(j *jobs.Job) { j.EndSlice(noon) }, jobs.Queued},
		{"park", func(j *jobs.Job) { j.Park(jobs.Park{Until: noon.Add(time.Minute)}, noon) }, jobs.Waiting},
		{"take over", func(j *jobs.Job) { _ = j.TakeOver(*j, noon) }, jobs.Queued},
	} {
		j := owned("", noon)
		j.Admission = jobs.Yielding
		c.end(&j)
		if j.Admission != jobs.NotAdmitted || j.State != c.want {
			t.Errorf("%s: admission %q, state %s, want %q and %s", c.name, j.Admission, j.State, jobs.NotAdmitted, c.want)
		}
		if _, err := j.Claim(j.Ref(), noon, lease); err != nil || j.Admission != jobs.Admitted {
			t.Errorf("claim after %s = %v, admission %q, want it admitted", c.name, err, j.Admission)
		}
	}
}

func TestParkCountsRefusalsAndFailuresApart(t *testing.T) {
	var j jobs.Job
	park := func(at time.Duration, p jobs.Park) {
		j.Park(p, noon.Add(at))
		j.Touch(noon.Add(at))
	}
	park(0, jobs.Park{Failure: "first"})
	park(time.Minute, jobs.Park{Failure: "second"})
	if j.Failures != 2 || !j.FailingSince.Equal(noon) || j.LastError != "second" {
		t.Errorf("after two failures: %d since %v, %q", j.Failures, j.FailingSince, j.LastError)
	}
	park(2*time.Minute, jobs.Park{Refused: true})
	if j.Failures != 2 || j.Refusals != 1 || j.Requeued != 1 || !j.QuotaWait {
		t.Errorf("after a refusal: %+v", j)
	}
	park(3*time.Minute, jobs.Park{Failure: "third"})
	if j.Failures != 3 || j.QuotaWait || !j.FailingSince.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("after a failure behind a refusal: %d failures since %v", j.Failures, j.FailingSince)
	}
	park(4*time.Minute, jobs.Park{For: "an item"})
	if j.Failures != 3 || j.Refusals != 1 {
		t.Errorf("waiting for an item counted: %+v", j)
	}
	j.Progressed()
	if j.Touch(noon); j.Failures != 0 || j.Refusals != 0 || !j.FailingSince.IsZero() {
		t.Errorf("after progress: %+v", j)
	}
}

func TestRestart(t *testing.T) {
	old := jobs.Job{ID: "j", Account: "a@example.com", Project: "old", State: jobs.Failed, Epoch: 3, Slice: 7, LastError: "e", Refusals: 1,
		Failures: 2, Units: 5, Checkpoint: jobs.Checkpoint{HistoryID: 9, PageToken: "t", Listed: true}, Progress: jobs.Progress{Listed: 4},
		CreatedAt: noon, StartedAt: noon, FinishedAt: noon}
	backfill, sync := old, old
	backfill.Kind, sync.Kind = jobs.MailBackfill, jobs.MailSync

	backfill.Restart("new", true)
	want := jobs.Job{ID: "j", Kind: jobs.MailBackfill, Account: "a@example.com", Project: "new", State: jobs.Queued, Epoch: 4,
		Admission: jobs.NotAdmitted, Checkpoint: jobs.Checkpoint{HistoryID: 9}, CreatedAt: noon}
	if diff := cmp.Diff(want, backfill); diff != "" {
		t.Errorf("a backfill with its pin (-want +got):\n%s", diff)
	}
	if backfill.Restart("new", false); backfill.Checkpoint.HistoryID != 0 {
		t.Error("a backfill keeps its pin although nothing is stored")
	}
	sync.Restart("new", false)
	want = old
	want.Kind, want.Project, want.State, want.Epoch, want.Slice = jobs.MailSync, "new", jobs.Queued, 4, 0
	want.LastError, want.Refusals, want.Failures = "", 0, 0
	want.Checkpoint.Listed, want.StartedAt, want.FinishedAt = false, time.Time{}, time.Time{}
	if diff := cmp.Diff(want, sync); diff != "" {
		t.Errorf("a sync (-want +got):\n%s", diff)
	}
}

func TestAMailSyncCompletesOnlyWhenTheHistoryWasReadSinceItWasAskedFor(t *testing.T) {
	j := owned("", noon)
	j.Kind = jobs.MailSync
	if err := j.Finish(jobs.Finish{State: jobs.Completed}, false, noon); err != nil || j.State != jobs.Running || j.Slice != 1 {
		t.Errorf("asked for again: %v, %s at slice %d", err, j.State, j.Slice)
	}
	j = owned("", noon)
	j.Kind, j.Checkpoint.Listed = jobs.MailSync, true
	if err := j.Finish(jobs.Finish{State: jobs.Completed}, false, noon); err != nil || j.State != jobs.Completed {
		t.Errorf("read to its end: %v, %s", err, j.State)
	}
	if err := j.Finish(jobs.Finish{State: jobs.Waiting}, false, noon); err == nil {
		t.Error("finished in a state that is no end")
	}
}
