package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"headroom/jobs"
)

var steerTests = []test{
	{"each state allows some of pause, resume and cancel", testWhatCanBeSteeredFromEachState},
	{"an unknown job cannot be paused, resumed or cancelled", testSteeringAnUnknownJob},
	{"an owner applies a requested pause or cancel", testAnOwnerBringsTheJobWhereItIsWanted},
	{"a request is applied although the owner died", testADeadOwnersJobComesWhereItIsWanted},
	{"a pause can be repeated and taken back", testSteeringTwiceAndTakingItBack},
	{"a resumed job neither loses nor repeats items", testResumeLosesAndRepeatsNothing},
	{"there is one job for each filter", testOneJobForEachFilter},
	{"a cancelled sync forgets what was asked for", testACancelledSyncForgetsWhatWasAsked},
}

// steering is pause, resume or cancel.
type steering func(Store, context.Context, string) (jobs.Job, bool, error)

var steerings = map[string]steering{"pause": (Store).Pause, "resume": (Store).Resume, "cancel": (Store).Cancel}

// inState brings ann's backfill to a state. Only a running one has an owner.
func inState(t *T, s Store, state jobs.State) jobs.Job {
	t.Helper()
	ctx := t.Context()
	if state == jobs.Queued {
		if err := s.AddAccount(ctx, jobs.Account{Email: ann, Project: "prod"}); err != nil {
			t.Fatal(err)
		}
		job, _, err := s.StartBackfill(ctx, ann, jobs.Filter{})
		return must[jobs.Job](t)(job, err)
	}
	job := start(t, s)
	switch {
	case state == jobs.Running:
		return job
	case state == jobs.Waiting:
		return must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true}))
	case state == jobs.Paused, state == jobs.Cancelled:
		job = must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
		verb := map[jobs.State]string{jobs.Paused: "pause", jobs.Cancelled: "cancel"}[state]
		job, _, err := steerings[verb](s, ctx, job.ID)
		return must[jobs.Job](t)(job, err)
	}
	return must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: state, Error: "why"}))
}

func testWhatCanBeSteeredFromEachState(t *T) {
	type outcome struct {
		State   jobs.State
		Wanted  jobs.State
		Changed bool
		Err     string // a part of it; it then leaves the job as it is
	}
	same := func(s jobs.State) outcome { return outcome{State: s} }
	to := func(s jobs.State) outcome { return outcome{State: s, Changed: true} }
	not := func(err string) outcome { return outcome{Err: err} }
	for state, want := range map[jobs.State]map[string]outcome{
		jobs.Queued:                {"pause": to(jobs.Paused), "resume": same(jobs.Queued), "cancel": to(jobs.Cancelled)},
		jobs.Waiting:               {"pause": to(jobs.Paused), "resume": same(jobs.Waiting), "cancel": to(jobs.Cancelled)},
		jobs.Paused:                {"pause": same(jobs.Paused), "resume": to(jobs.Queued), "cancel": to(jobs.Cancelled)},
		jobs.Blocked:               {"pause": not("resume it when the account has acted"), "resume": to(jobs.Queued), "cancel": to(jobs.Cancelled)},
		jobs.Completed:             {"pause": not("start it again"), "resume": not("start it again"), "cancel": not("nothing left to cancel")},
		jobs.CompletedWithFailures: {"pause": not("start it again"), "resume": not("start it again"), "cancel": not("nothing left to cancel")},
		jobs.Failed:                {"pause": not("start it again"), "resume": not("start it again"), "cancel": not("nothing left to cancel")},
		jobs.Cancelled:             {"pause": not("start it again"), "resume": not("start it again"), "cancel": same(jobs.Cancelled)},
		jobs.Running: {
			"pause":  {State: jobs.Running, Wanted: jobs.Paused, Changed: true},
			"resume": same(jobs.Running),
			"cancel": {State: jobs.Running, Wanted: jobs.Cancelled, Changed: true},
		},
	} {
		for verb, want := range want {
			t.Run(verb+" "+string(state), func(t *T) {
				s := fresh(t)
				before := inState(t, s, state)
				if before.State != state {
					t.Fatalf("the job is %s", before.State)
				}
				job, changed, err := steerings[verb](s, t.Context(), before.ID)
				after := must[jobs.Job](t)(s.Job(t.Context(), before.ID))
				if want.Err != "" {
					refused, ok := errors.AsType[*jobs.StateError](err)
					if !ok || refused.State != state || !strings.Contains(err.Error(), "cannot "+verb+" "+before.ID+", which is "+string(state)) ||
						!strings.Contains(err.Error(), want.Err) {
						t.Errorf("error = %v, want one with %q", err, want.Err)
					}
					job = before
				} else if err != nil {
					t.Fatal(err)
				} else if got := (outcome{job.State, job.Wanted, changed, ""}); got != want {
					t.Errorf("= %+v, want %+v", got, want)
				}
				if diff := cmp.Diff(job, after); diff != "" {
					t.Errorf("the row (-returned +stored):\n%s", diff)
				}
				if moved := job.State != state; moved != (job.Epoch == before.Epoch+1) {
					t.Errorf("epoch %d of a job that is %s, %d when it was %s", job.Epoch, job.State, before.Epoch, state)
				}
				if job.State.Terminal() == job.FinishedAt.IsZero() {
					t.Errorf("a job that is %s finished at %s", job.State, job.FinishedAt)
				}
				if job.State != jobs.Waiting && (job.WaitingFor != "" || !job.WaitUntil.IsZero()) {
					t.Errorf("a job that is %s waits for %q until %s", job.State, job.WaitingFor, job.WaitUntil)
				}
			})
		}
	}
}

func testSteeringAnUnknownJob(t *T) {
	s := fresh(t)
	for verb, do := range steerings {
		if _, _, err := do(s, t.Context(), "backfill:bob@example.com"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("%s = %v, want ErrNotFound", verb, err)
		}
	}
}

// However the owner ends its slice, the request takes effect, unless the job completes.
func testAnOwnerBringsTheJobWhereItIsWanted(t *T) {
	type ending func(Store, context.Context, jobs.TaskRef) (jobs.Job, error)
	finish := func(state jobs.State) ending {
		return func(s Store, ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
			return s.Finish(ctx, ref, jobs.Finish{State: state, Error: "why"})
		}
	}
	park := func(s Store, ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
		return s.Park(ctx, ref, jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true})
	}
	for name, row := range map[string]struct {
		end               ending
		paused, cancelled jobs.State
	}{
		"end slice": {(Store).EndSlice, jobs.Paused, jobs.Cancelled},
		"park":      {park, jobs.Paused, jobs.Cancelled},
		"complete":  {finish(jobs.Completed), jobs.Completed, jobs.Completed},
		"blocked":   {finish(jobs.Blocked), jobs.Blocked, jobs.Cancelled},
		"failed":    {finish(jobs.Failed), jobs.Failed, jobs.Cancelled},
	} {
		for verb, want := range map[string]jobs.State{"pause": row.paused, "cancel": row.cancelled} {
			t.Run(verb+", "+name, func(t *T) {
				s, job := claimed(t)
				ctx := t.Context()
				if _, _, err := steerings[verb](s, ctx, job.ID); err != nil {
					t.Fatal(err)
				}
				renewed := must[jobs.Job](t)(s.Renew(ctx, job.Ref(), hour))
				if renewed.Wanted == "" || !renewed.LeaseUntil.After(time.Now()) {
					t.Errorf("renewed = %+v, want the request in the row, and the lease kept to the end of the slice", renewed)
				}
				ended := must[jobs.Job](t)(row.end(s, ctx, job.Ref()))
				if ended.State != want || ended.Wanted != "" || !ended.LeaseUntil.IsZero() || !ended.WaitUntil.IsZero() {
					t.Errorf("the job = %+v, want it %s without an owner", ended, want)
				}
				if _, err := s.Claim(ctx, ended.Ref(), hour); !errors.Is(err, jobs.ErrStale) {
					t.Errorf("Claim = %v, want ErrStale", err)
				}
				if live := must[[]jobs.Job](t)(s.LiveJobs(ctx)); len(live) != 0 {
					t.Errorf("live jobs: %+v", live)
				}
			})
		}
	}
}

// Nobody waits for an owner that died before it applied the request.
func testADeadOwnersJobComesWhereItIsWanted(t *T) {
	claim := func(s Store, ctx context.Context, job jobs.Job) (jobs.Job, error) {
		got, err := s.Claim(ctx, job.Ref(), hour)
		if errors.Is(err, jobs.ErrStale) {
			return got, nil
		}
		return got, errors.Join(err, errors.New("want ErrStale"))
	}
	for name, found := range map[string]func(Store, context.Context, jobs.Job) (jobs.Job, error){
		"claim": claim,
		"take over": func(s Store, ctx context.Context, job jobs.Job) (jobs.Job, error) {
			return s.TakeOver(ctx, job)
		},
		"asked for after its death": func(s Store, ctx context.Context, job jobs.Job) (jobs.Job, error) {
			got, _, err := s.Cancel(ctx, job.ID)
			return got, err
		},
	} {
		t.Run(name, func(t *T) {
			s, job := claimed(t)
			ctx := t.Context()
			if name != "asked for after its death" {
				if _, _, err := s.Cancel(ctx, job.ID); err != nil {
					t.Fatal(err)
				}
			}
			expired := must[jobs.Job](t)(s.Renew(ctx, job.Ref(), -time.Second))
			got := must[jobs.Job](t)(found(s, ctx, expired))
			if got.State != jobs.Cancelled || got.Wanted != "" || got.Epoch != job.Epoch+1 {
				t.Errorf("the job = %+v, want it cancelled under the next epoch", got)
			}
			if _, err := s.EndSlice(ctx, job.Ref()); !errors.Is(err, jobs.ErrStale) {
				t.Errorf("the dead owner's EndSlice = %v, want ErrStale", err)
			}
		})
	}
}

func testSteeringTwiceAndTakingItBack(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	expect := func(verb string, wanted jobs.State, changed bool) {
		t.Helper()
		got, did, err := steerings[verb](s, ctx, job.ID)
		if err != nil || got.Wanted != wanted || did != changed || got.State != jobs.Running || got.Epoch != job.Epoch {
			t.Errorf("%s = wanted %q, changed %v, %v; want %q, %v", verb, got.Wanted, did, err, wanted, changed)
		}
	}
	expect("pause", jobs.Paused, true)
	expect("pause", jobs.Paused, false)
	expect("resume", "", true)
	expect("resume", "", false)
	expect("pause", jobs.Paused, true)
	expect("cancel", jobs.Cancelled, true)
	expect("cancel", jobs.Cancelled, false)
	for _, verb := range []string{"pause", "resume"} {
		if _, _, err := steerings[verb](s, ctx, job.ID); err == nil || !strings.Contains(err.Error(), "being cancelled") {
			t.Errorf("%s = %v, want it to say that the job is being cancelled", verb, err)
		}
	}
	if _, _, err := s.StartBackfill(ctx, ann, jobs.Filter{}); err == nil || !strings.Contains(err.Error(), "being cancelled") {
		t.Errorf("start = %v, want it to say that the job is being cancelled", err)
	}
}

// Pausing and resuming keeps checkpoint, items and counters; cancelling keeps
// what was stored, and a start is another run.
func testResumeLosesAndRepeatsNothing(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	if err := s.SaveProfile(ctx, job.Ref(), jobs.Profile{Messages: 4, HistoryID: 42}); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"d", "c", "b", "a"}, Next: "p2"}))
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{stored("d")}))
	running := must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
	if _, _, err := s.Pause(ctx, job.ID); err != nil {
		t.Fatal(err)
	}
	if again, created, err := s.StartBackfill(ctx, ann, jobs.Filter{}); err != nil || created || again.State != jobs.Paused {
		t.Errorf("start of a paused job = %+v, created %v, %v; want it as it is", again, created, err)
	}
	resumed, _, err := s.Resume(ctx, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	running.State, running.Admission, running.Epoch = jobs.Queued, jobs.NotAdmitted, running.Epoch+2
	if diff := cmp.Diff(running, resumed, cmpopts.IgnoreFields(jobs.Job{}, "UpdatedAt")); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, resumed.Ref(), hour))
	if items := must[[]jobs.Item](t)(s.NextItems(ctx, job.Ref(), 0, 9)); len(items) != 3 || items[0].ID != "c" {
		t.Errorf("items left = %+v, want c, b and a", items)
	}
	must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
	if _, _, err := s.Cancel(ctx, job.ID); err != nil {
		t.Fatal(err)
	}
	if n := len(must[[]jobs.Message](t)(s.Messages(ctx, ann, "", 0))); n != 1 {
		t.Errorf("%d messages are left of 1", n)
	}
	again, created, err := s.StartBackfill(ctx, ann, jobs.Filter{})
	if err != nil || !created || again.Progress.Listed != 0 || again.Checkpoint.PageToken != "" || again.Checkpoint.HistoryID != 42 {
		t.Errorf("start of a cancelled job = %+v, created %v, %v; want another run", again, created, err)
	}
}

func testOneJobForEachFilter(t *T) {
	s := fresh(t)
	ctx := t.Context()
	if err := s.AddAccount(ctx, jobs.Account{Email: ann, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	some := jobs.Filter{After: at.In(time.FixedZone("", 3600)), Labels: []string{"b", "a"}, Format: jobs.FormatRaw}
	first, created, err := s.StartBackfill(ctx, ann, some)
	if err != nil || !created {
		t.Fatalf("StartBackfill = created %v, %v", created, err)
	}
	if diff := cmp.Diff(jobs.Filter{After: at, Labels: []string{"a", "b"}}, first.Filter); diff != "" {
		t.Errorf("the stored filter (-want +got):\n%s", diff)
	}
	if again, created, err := s.StartBackfill(ctx, ann, jobs.Filter{After: at, Labels: []string{"a", "b", "a"}}); err != nil || created || again.ID != first.ID {
		t.Errorf("the same filter gives %s, created %v, %v", again.ID, created, err)
	}
	if other, created, err := s.StartBackfill(ctx, ann, jobs.Filter{First: 10}); err != nil || !created || other.ID == first.ID {
		t.Errorf("another filter gives %s, created %v, %v", other.ID, created, err)
	}
	if _, _, err := s.StartBackfill(ctx, ann, jobs.Filter{First: -1}); err == nil {
		t.Error("a filter that means nothing starts a backfill")
	}
	must[jobs.Job](t)(s.Claim(ctx, first.Ref(), hour))
	must[jobs.Job](t)(s.Finish(ctx, first.Ref(), jobs.Finish{State: jobs.Failed}))
	if again, created, err := s.StartBackfill(ctx, ann, some); err != nil || !created || !cmp.Equal(again.Filter, first.Filter) {
		t.Errorf("another run has filter %+v, created %v, %v", again.Filter, created, err)
	}
}

// A cancelled sync stays cancelled, whatever was asked of it before. Later requests
// count.
func testACancelledSyncForgetsWhatWasAsked(t *T) {
	for _, owned := range []bool{false, true} {
		ctx := t.Context()
		cancel := func(s Store, ref jobs.TaskRef) {
			t.Helper()
			if !owned {
				must[jobs.Job](t)(s.Park(ctx, ref, jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true}))
			}
			if _, _, err := s.Cancel(ctx, ref.Job); err != nil {
				t.Fatal(err)
			}
			if owned {
				must[jobs.Job](t)(s.EndSlice(ctx, ref))
			}
			if j := must[jobs.Job](t)(s.Job(ctx, ref.Job)); j.State != jobs.Cancelled {
				t.Fatalf("job = %+v", j)
			}
		}
		s, _, sync := synced(t)
		if got := pushed(t, s, 101); got != jobs.PushAsked {
			t.Fatalf("push = %s", got)
		}
		cancel(s, sync)
		if due := must[[]string](t)(s.DueSyncs(ctx)); len(due) != 0 {
			t.Errorf("owned %t: due %q, want the sync cancelled", owned, due)
		}
		if _, started, err := s.StartSync(ctx, ann); err != nil || !started {
			t.Errorf("a person's: started %t, %v", started, err)
		}

		d := newCalendarSync(t, "c")
		if err := d.AskCalendarSync(ctx, ann, true); err != nil {
			t.Fatal(err)
		}
		cancel(d.Store, d.ref)
		if due := must[[]string](t)(d.DueCalendarSyncs(ctx)); len(due) != 0 {
			t.Errorf("owned %t: due %q, want the sync of calendars cancelled", owned, due)
		}
		if err := d.AskCalendarSync(ctx, ann, false); err != nil {
			t.Fatal(err)
		}
		if due := must[[]string](t)(d.DueCalendarSyncs(ctx)); len(due) != 1 {
			t.Errorf("owned %t: due %q, want the sync that was asked for since", owned, due)
		}
	}
}
