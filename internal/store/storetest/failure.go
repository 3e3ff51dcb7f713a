package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"headroom/jobs"
)

var failureTests = []test{
	{"thousands of failures are listed and retried", testThousandsOfFailuresListAndReplay},
	{"failed items can be retried in some states only", testRetryFailedInEachState},
	{"a job does not complete while items are to be retried", testAJobDoesNotCompleteWhileItemsAreToBeRetried},
	{"a filter of failures names a bounded number of ids", testAFailureFilterHasABound},
}

// failing gives up n items of ann's backfill in batches, for one reason after
// another, and returns the job, claimed.
func failing(t *T, s Store, n int, reasons ...string) jobs.Job {
	t.Helper()
	job := start(t, s)
	all := ids(n)
	must[jobs.Job](t)(s.AddListed(t.Context(), job.Ref(), jobs.Page{IDs: all}))
	var batch []jobs.Result
	for i, id := range all {
		class := jobs.ClassTransient
		if i%10 == 0 {
			class = jobs.ClassItem
		}
		batch = append(batch, jobs.Result{ID: id, Outcome: jobs.ItemFailed,
			Failure: &jobs.Failure{Phase: "fetch", Class: class, Reason: reasons[i%len(reasons)]}})
	}
	for len(batch) > 0 {
		n := min(1000, len(batch))
		job = must[jobs.Job](t)(s.Commit(t.Context(), job.Ref(), batch[:n]))
		batch = batch[n:]
	}
	return job
}

// listed reads a failure list in pages.
func listed(t *T, s Store, id string, f jobs.FailureFilter, limit int) (all []jobs.Failure) {
	t.Helper()
	for after := ""; ; {
		page := must[[]jobs.Failure](t)(s.Failures(t.Context(), id, f, after, limit))
		if len(page) == 0 {
			return all
		}
		all, after = append(all, page...), page[len(page)-1].ID
	}
}

func testThousandsOfFailuresListAndReplay(t *T) {
	const n = 5_000
	s := fresh(t)
	ctx := t.Context()
	job := failing(t, s, n, "backendError", "internalError")
	job = must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures}))
	for _, tc := range []struct {
		filter jobs.FailureFilter
		want   int
	}{
		{jobs.FailureFilter{}, n},
		{jobs.FailureFilter{GivenUp: true}, n},
		{jobs.FailureFilter{Class: jobs.ClassItem}, n / 10},
		{jobs.FailureFilter{Reason: "internalError"}, n / 2},
		{jobs.FailureFilter{Class: jobs.ClassItem, Reason: "internalError"}, 0},
		{jobs.FailureFilter{Reason: "internal"}, 0},
		{jobs.FailureFilter{IDs: []string{"18c00000001", "18c00000002", "none"}}, 2},
	} {
		if got := listed(t, s, job.ID, tc.filter, 999); len(got) != tc.want {
			t.Errorf("%+v lists %d, want %d", tc.filter, len(got), tc.want)
		}
	}

	some, k, err := s.RetryFailed(ctx, job.ID, jobs.FailureFilter{Class: jobs.ClassItem})
	if err != nil || k != n/10 || some.State != jobs.Queued || some.Epoch != job.Epoch+1 || some.Progress.Failed != n-n/10 {
		t.Fatalf("RetryFailed by class = %+v, %d, %v", some, k, err)
	}
	if got := listed(t, s, job.ID, jobs.FailureFilter{GivenUp: true}, 0); len(got) != n-n/10 {
		t.Errorf("%d given up, want %d", len(got), n-n/10)
	}
	// The job is queued: the others join without another epoch.
	all, k, err := s.RetryFailed(ctx, job.ID, jobs.FailureFilter{})
	if err != nil || k != n-n/10 || all.State != jobs.Queued || all.Epoch != some.Epoch || all.Progress.Failed != 0 || !all.FinishedAt.IsZero() {
		t.Fatalf("RetryFailed = %+v, %d, %v", all, k, err)
	}
	if _, k, err := s.RetryFailed(ctx, job.ID, jobs.FailureFilter{}); k != 0 || err != nil {
		t.Errorf("RetryFailed again = %d, %v; want none left", k, err)
	}
	if _, err := s.Claim(ctx, job.Ref(), hour); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("the old epoch's task = %v, want ErrStale", err)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, all.Ref(), hour))
	items := must[[]jobs.Item](t)(s.NextItems(ctx, job.Ref(), 0, n+1))
	if len(items) != n || items[0].Attempts != 0 {
		t.Errorf("%d items to try, the first after %d attempts; want %d, as if never tried", len(items), items[0].Attempts, n)
	}
	// One succeeds and leaves the list, one fails again and keeps its first time.
	one := items[1].ID
	before := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{IDs: []string{one}}, "", 0))
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{stored(items[0].ID),
		{ID: one, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{Phase: "fetch", Class: jobs.ClassItem, Reason: "again"}}}))
	got := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{IDs: []string{items[0].ID, one}}, "", 0))
	if len(got) != 1 || got[0].Reason != "again" || got[0].Attempts != 1 || !got[0].GivenUp || !got[0].FirstAt.Equal(before[0].FirstAt) {
		t.Errorf("the list of two after one succeeded = %+v, want the other, failed again and first at %s", got, before[0].FirstAt)
	}
}

func testRetryFailedInEachState(t *T) {
	for _, tc := range []struct {
		state jobs.State
		want  jobs.State // empty: not possible
		next  string
	}{
		{jobs.Running, jobs.Running, ""},
		{jobs.Waiting, jobs.Waiting, ""},
		{jobs.Paused, jobs.Paused, ""},
		{jobs.CompletedWithFailures, jobs.Queued, ""},
		{jobs.Failed, "", "start it again"},
		{jobs.Cancelled, "", "start it again"},
		{jobs.Blocked, "", "resume it when the account has acted"},
	} {
		t.Run(string(tc.state), func(t *T) {
			s := fresh(t)
			ctx := t.Context()
			job := failing(t, s, 3, "backendError")
			switch {
			case tc.state == jobs.Waiting:
				must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "x", Until: time.Now().Add(hour)}))
			case tc.state == jobs.Paused, tc.state == jobs.Cancelled:
				must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
				verb := map[jobs.State]string{jobs.Paused: "pause", jobs.Cancelled: "cancel"}[tc.state]
				if _, _, err := steerings[verb](s, ctx, job.ID); err != nil {
					t.Fatal(err)
				}
			case tc.state.Terminal():
				must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: tc.state}))
			}
			got, n, err := s.RetryFailed(ctx, job.ID, jobs.FailureFilter{})
			if tc.want == "" {
				if _, ok := errors.AsType[*jobs.StateError](err); !ok || !strings.Contains(err.Error(), tc.next) {
					t.Errorf("RetryFailed = %v, want a StateError with %q", err, tc.next)
				}
				return
			}
			if err != nil || n != 3 || got.State != tc.want || got.Progress.Failed != 0 {
				t.Errorf("RetryFailed = %+v, %d, %v; want 3, and %s", got, n, err, tc.want)
			}
		})
	}
}

// An owner that has just seen that nothing is left cannot know that somebody
// wants items retried.
func testAJobDoesNotCompleteWhileItemsAreToBeRetried(t *T) {
	s := fresh(t)
	ctx := t.Context()
	job := failing(t, s, 3, "backendError")
	if due := must[time.Time](t)(s.NextDue(ctx, job.Ref())); !due.IsZero() {
		t.Fatalf("items are left: %s", due)
	}
	if _, _, err := s.RetryFailed(ctx, job.ID, jobs.FailureFilter{}); err != nil {
		t.Fatal(err)
	}
	got := must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures}))
	if !got.State.Live() || got.Slice != job.Slice+1 || !got.LeaseUntil.IsZero() {
		t.Errorf("Finish = %+v, want the next slice due", got)
	}
	must[jobs.Job](t)(s.Claim(ctx, got.Ref(), hour))
}

func testAFailureFilterHasABound(t *T) {
	s, job := claimed(t)
	ids := make([]string, jobs.MaxFailureIDs+1)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	for _, f := range []jobs.FailureFilter{{IDs: ids}, {IDs: []string{""}}} {
		if _, err := s.Failures(t.Context(), job.ID, f, "", 0); err == nil {
			t.Errorf("Failures of %d ids = nil", len(f.IDs))
		}
		if _, _, err := s.RetryFailed(t.Context(), job.ID, f); err == nil {
			t.Errorf("RetryFailed of %d ids = nil", len(f.IDs))
		}
	}
	if _, err := s.Failures(t.Context(), job.ID, jobs.FailureFilter{IDs: ids[1:]}, "", 0); err != nil {
		t.Errorf("Failures of %d ids = %v", jobs.MaxFailureIDs, err)
	}
	if _, _, err := s.RetryFailed(t.Context(), "backfill:bob@example.com", jobs.FailureFilter{}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("RetryFailed of an unknown job = %v, want ErrNotFound", err)
	}
}
