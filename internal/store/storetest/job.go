package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var jobTests = []test{
	{"of concurrent starts of a backfill one creates the job", testStartBackfillOnceAtATime},
	{"a new run starts over and knows what is stored", testRunAgainStartsOverAndKnowsWhatIsStored},
	{"a new run pins a new history id where nothing is stored", testRunAgainPinsAnewWhereNothingIsStored},
	{"a new run clears thousands of items", testRunAgainClearsManyItems},
	{"jobs that have not ended are live", testLiveJobsAreThoseNotTerminal},
}

func testStartBackfillOnceAtATime(t *T) {
	both := handles(t, 2)
	a, b := both[0], both[1]
	if err := a.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	var created atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		s := a
		if i%2 == 1 {
			s = b
		}
		wg.Go(func() {
			job, fresh, err := s.StartBackfill(t.Context(), "Ann@Example.com", jobs.Filter{})
			if err != nil {
				t.Errorf("StartBackfill = %v", err)
			}
			if job.ID != "backfill:ann@example.com" || job.Epoch != 1 || job.Slice != 0 || job.State != jobs.Queued {
				t.Errorf("StartBackfill = %+v", job)
			}
			if fresh {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	if created.Load() != 1 {
		t.Errorf("%d calls created the job, want 1", created.Load())
	}
	if _, _, err := a.StartBackfill(t.Context(), "bob@example.com", jobs.Filter{}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an unknown account = %v, want ErrNotFound", err)
	}
	if _, err := a.Job(t.Context(), "backfill:bob@example.com"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("its job = %v, want ErrNotFound", err)
	}
}

func testRunAgainStartsOverAndKnowsWhatIsStored(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	if err := s.SaveProfile(ctx, job.Ref(), jobs.Profile{Messages: 3, HistoryID: 42}); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"c", "b", "a"}}))
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{stored("c"), stored("b"),
		{ID: "a", Outcome: jobs.ItemFailed, Failure: &jobs.Failure{Phase: "fetch", Class: jobs.ClassItem, Reason: "backendError"}}}))
	ended := must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures, Error: "1 failed"}))

	again, created, err := s.StartBackfill(ctx, ann, jobs.Filter{})
	if err != nil || !created {
		t.Fatalf("StartBackfill = created %v, %v", created, err)
	}
	want := jobs.Job{ID: job.ID, Kind: jobs.MailBackfill, Account: ann, Project: "prod", State: jobs.Queued, Admission: jobs.NotAdmitted,
		Epoch: ended.Epoch + 1, CreatedAt: ended.CreatedAt, UpdatedAt: again.UpdatedAt,
		Checkpoint: jobs.Checkpoint{HistoryID: 42}} // what changed since has yet to be read
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("the new run (-want +got):\n%s", diff)
	}
	if list := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{GivenUp: true}, "", 0)); len(list) != 0 {
		t.Errorf("the new run inherits failures: %+v", list)
	}
	if _, err := s.Claim(ctx, ended.Ref(), hour); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("claiming under the old run = %v, want ErrStale", err)
	}

	job = must[jobs.Job](t)(s.Claim(ctx, again.Ref(), hour))
	if err := s.SaveProfile(ctx, job.Ref(), jobs.Profile{Messages: 3, HistoryID: 60}); err != nil {
		t.Fatal(err)
	}
	listed := must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"c", "b", "a"}}))
	if p := listed.Progress; p.Listed != 3 || p.Known != 2 || p.Stored != 0 {
		t.Errorf("progress of the new run's listing = %+v, want 2 of 3 known", p)
	}
	if listed.Checkpoint.HistoryID != 42 || listed.Progress.Expected != 3 {
		t.Errorf("the new run's history id is %d, expected %d; want the older id, 42, and 3", listed.Checkpoint.HistoryID, listed.Progress.Expected)
	}
	todo := must[[]jobs.Item](t)(s.NextItems(ctx, job.Ref(), 0, 10))
	if diff := cmp.Diff([]jobs.Item{{Seq: 3, ID: "a"}}, todo); diff != "" {
		t.Errorf("left to do (-want +got):\n%s", diff)
	}
}

func testRunAgainPinsAnewWhereNothingIsStored(t *T) {
	s, job := claimed(t)
	if err := s.SaveProfile(t.Context(), job.Ref(), jobs.Profile{Messages: 3, HistoryID: 42}); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(t.Context(), job.Ref(), jobs.Finish{State: jobs.Failed}))
	again, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{})
	if err != nil || again.Checkpoint.HistoryID != 0 {
		t.Errorf("StartBackfill = history id %d, %v; want none pinned", again.Checkpoint.HistoryID, err)
	}
}

func testRunAgainClearsManyItems(t *T) {
	s, job := claimed(t)
	ctx, all := t.Context(), ids(4001)
	for page := range slices.Chunk(all, 500) {
		must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: page, Next: "more"}))
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Failed}))
	var created atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, fresh, err := s.StartBackfill(ctx, ann, jobs.Filter{})
			if err != nil {
				t.Errorf("StartBackfill = %v", err)
			}
			if fresh {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	job = must[jobs.Job](t)(s.Job(ctx, job.ID))
	if created.Load() != 1 || job.Epoch != 2 {
		t.Errorf("%d calls started the new run, epoch %d; want 1 and 2", created.Load(), job.Epoch)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	if left := must[[]jobs.Item](t)(s.NextItems(ctx, job.Ref(), 0, 10)); len(left) != 0 {
		t.Errorf("the new run inherits items: %+v", left)
	}
}

func testLiveJobsAreThoseNotTerminal(t *T) {
	s := fresh(t)
	ctx := t.Context()
	want := []string{}
	for i, state := range []jobs.State{jobs.Queued, jobs.Running, jobs.Waiting, jobs.Blocked, jobs.Completed, jobs.CompletedWithFailures, jobs.Failed} {
		email := fmt.Sprintf("u%d@example.com", i)
		if err := s.AddAccount(ctx, jobs.Account{Email: email, Project: "prod"}); err != nil {
			t.Fatal(err)
		}
		job, _, err := s.StartBackfill(ctx, email, jobs.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if state != jobs.Queued {
			job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
		}
		if state == jobs.Waiting {
			job = must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "user-minute", Refused: true}))
		}
		if state.Terminal() {
			job = must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: state}))
		} else {
			want = append(want, job.ID)
		}
		if job.State != state {
			t.Errorf("state = %s, want %s", job.State, state)
		}
	}
	got := []string{}
	for _, j := range must[[]jobs.Job](t)(s.LiveJobs(ctx)) {
		got = append(got, j.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LiveJobs (-want +got):\n%s", diff)
	}
}
