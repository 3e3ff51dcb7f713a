package storetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// askTests are about when a sync may start, and when it is due.
var askTests = []test{
	{"a sync that starts again keeps its failures", testASyncStartsAgainWithItsFailures},
	{"a sync needs a cursor", testASyncNeedsACursor},
	{"a sync is due when it was asked for", testWhatIsDue},
	{"a sync that was stopped starts only when somebody asks for it", testASyncThatRestsIsStartedOnlyWhenAskedFor},
	{"the history is read every hour while a backfill runs", testTheHistoryIsReadEveryHourOfABackfill},
}

func testASyncStartsAgainWithItsFailures(t *T) {
	s, _, sync := synced(t)
	ctx := t.Context()
	apply(t, s, sync, record(110, jobs.MessageAdded, "a", "INBOX"), record(120, jobs.MessageAdded, "b", "INBOX"))
	fetched(t, s, sync, "a", 110, "INBOX")
	fault := &jobs.Failure{Phase: "fetch", Class: jobs.ClassTransient, Reason: "backendError"}
	must[jobs.Job](t)(s.Commit(ctx, sync, []jobs.Result{{ID: "b", Outcome: jobs.ItemFailed, Failure: fault}}))
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	job, started, err := s.StartSync(ctx, ann)
	if err != nil || started || job.Epoch != sync.Epoch {
		t.Fatalf("StartSync while one runs = %+v, %t, %v", job, started, err)
	}
	job = must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: jobs.CompletedWithFailures}))
	if !job.State.Live() || job.Slice != 1 {
		t.Fatalf("the end of a sync while another is asked for = %+v, want its next slice", job)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	if c := must[jobs.Cursor](t)(s.BeginSync(ctx, job.Ref())); c.HistoryID != 120 {
		t.Errorf("BeginSync = %+v, want to go on at 120", c)
	}
	if c := must[jobs.Cursor](t)(s.Cursor(ctx, ann)); !c.AskedAt.IsZero() {
		t.Errorf("cursor = %+v, want what was asked for answered", c)
	}
	if _, _, err := s.EndSync(ctx, job.Ref()); err != nil {
		t.Fatal(err)
	}
	job = must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures}))
	if job.State != jobs.CompletedWithFailures {
		t.Fatalf("Finish = %+v", job)
	}
	again := startSync(t, s)
	if again.Epoch != job.Epoch+1 || again.Checkpoint.Listed || again.Progress.Stored != 1 || again.Progress.Failed != 1 {
		t.Errorf("the next sync = %+v, want the counters to go on", again)
	}
	if f := must[[]jobs.Failure](t)(s.Failures(ctx, again.ID, jobs.FailureFilter{}, "", 10)); len(f) != 1 || f[0].ID != "b" {
		t.Errorf("failures = %+v, want b, still", f)
	}
}

func testASyncNeedsACursor(t *T) {
	s, job := claimed(t)
	if _, _, err := s.StartSync(t.Context(), ann); !errors.Is(err, jobs.ErrNoCursor) {
		t.Errorf("StartSync before the profile = %v, want ErrNoCursor", err)
	}
	if _, _, err := s.StartSync(t.Context(), "bob@example.com"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("StartSync of nobody = %v, want ErrNotFound", err)
	}
	part, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{Query: "from:bob"})
	if err != nil {
		t.Fatal(err)
	}
	part = must[jobs.Job](t)(s.Claim(t.Context(), part.Ref(), hour))
	for _, row := range []struct {
		ref  jobs.TaskRef
		want error
	}{{part.Ref(), jobs.ErrNoCursor}, {job.Ref(), nil}} {
		if err := s.SaveProfile(t.Context(), row.ref, jobs.Profile{HistoryID: 7}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Cursor(t.Context(), ann); !errors.Is(err, row.want) {
			t.Errorf("Cursor after the profile of %s: %v, want %v", row.ref.Job, err, row.want)
		}
	}
}

func testWhatIsDue(t *T) {
	s, backfill, sync := synced(t)
	ctx := t.Context()
	due := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, must[[]string](t)(s.DueSyncs(ctx))); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", what, diff)
		}
	}
	ask := func() jobs.SlotResult {
		t.Helper()
		if _, err := s.RunSchedule(ctx, jobs.ScheduleMail, []string{ann}, time.Now()); err != nil {
			t.Fatal(err)
		}
		return must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(ctx)).Slots[0].Result
	}
	if err := s.InitSlots(ctx, []jobs.Slot{{Schedule: jobs.ScheduleMail, Account: ann, Slot: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	ask()
	due("while one runs")
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: jobs.Completed}))
	due("after it, as another was asked for meanwhile", ann)
	job := startSync(t, s)
	if _, _, err := s.EndSync(ctx, job.Ref()); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Completed}))
	due("when none was asked for")
	must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
	due("after the backfill", ann)

	job = startSync(t, s)
	if _, err := s.ExpireCursor(ctx, job.Ref(), jobs.HistoryTooOld); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Blocked, Error: "no grant"}))
	if result := ask(); result != jobs.SlotNothing {
		t.Errorf("asked while the account must act: %s", result)
	}
	due("while the account must act")
	job = startSync(t, s)
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Failed, Error: "too often"}))
	ask()
	due("after it failed", ann)
}

// Neither the end of a backfill nor an earlier request starts it.
func testASyncThatRestsIsStartedOnlyWhenAskedFor(t *T) {
	for _, state := range []jobs.State{jobs.Cancelled, jobs.Blocked, jobs.Paused} {
		t.Run(string(state), func(t *T) {
			s, backfill, sync := synced(t)
			ctx := t.Context()
			if _, started, err := s.StartSync(ctx, ann); err != nil || started {
				t.Fatalf("StartSync while one runs: %t, %v", started, err)
			}
			switch state {
			case jobs.Paused:
				if _, _, err := s.Pause(ctx, sync.Job); err != nil {
					t.Fatal(err)
				}
				must[jobs.Job](t)(s.EndSlice(ctx, sync))
			default:
				must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: state, Error: "no grant"}))
			}
			must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
			if due := must[[]string](t)(s.DueSyncs(ctx)); len(due) != 0 {
				t.Errorf("due after the end of a backfill: %q, want none", due)
			}
			if state == jobs.Paused {
				return // only resumed
			}
			if job, started, err := s.StartDueSync(ctx, ann); err != nil || started || job.State != state {
				t.Errorf("StartDueSync by one who saw it due before = %s, %t, %v", job.State, started, err)
			}
			if job, started, err := s.StartSync(ctx, ann); err != nil || !started || job.State != jobs.Queued {
				t.Errorf("StartSync = %s, %t, %v, want it started", job.State, started, err)
			}
		})
	}
}

// A backfill may take longer than Google keeps the history that its messages need.
func testTheHistoryIsReadEveryHourOfABackfill(t *T) {
	s, job := claimed(t)
	ctx, backfill := t.Context(), job.Ref()
	if err := s.SaveProfile(ctx, backfill, jobs.Profile{HistoryID: 100}); err != nil {
		t.Fatal(err)
	}
	due := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, must[[]string](t)(s.DueSyncs(ctx))); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", what, diff)
		}
	}
	end := func(ref jobs.TaskRef, state jobs.State) {
		t.Helper()
		must[jobs.Job](t)(s.Finish(ctx, ref, jobs.Finish{State: state, Error: "no grant"}))
	}
	t.pass(59 * time.Minute)
	due("within the hour")
	t.pass(2 * time.Minute)
	due("after an hour", ann)
	sync := startSync(t, s).Ref()
	due("while it is read")
	readWhole(t, s, sync)
	if _, err := s.ExpireCursor(ctx, sync, jobs.HistoryTooOld); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	end(sync, jobs.Completed)
	due("right after it was read")
	t.pass(61 * time.Minute)
	due("when it is too old again on the same day")
	sync = startSync(t, s).Ref()
	if _, err := s.BeginSnapshot(ctx, sync, jobs.Profile{HistoryID: 200}); err != nil {
		t.Fatal(err)
	}
	if c := must[jobs.Cursor](t)(s.MergeSnapshot(ctx, sync)); !c.Snapshot.Gap {
		t.Fatalf("cursor = %+v, want a gap before the snapshot", c)
	}
	end(sync, jobs.Failed)
	t.pass(61 * time.Minute)
	due("when the history is read beside the reading of the whole mailbox", ann)
	end(startSync(t, s).Ref(), jobs.Blocked)
	t.pass(61 * time.Minute)
	due("while the account must act")
	sync = startSync(t, s).Ref()
	readWhole(t, s, sync)
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	end(sync, jobs.Completed)
	t.pass(61 * time.Minute)
	due("once it has", ann)
	end(backfill, jobs.Cancelled)
	due("when the backfill has ended")
}
