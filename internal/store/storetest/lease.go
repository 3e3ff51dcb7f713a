package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var leaseTests = []test{
	{"a claim takes a free lease", testClaimTakesAFreeLease},
	{"a refused claim says why", testClaimTellsWhyNot},
	{"a claim fences off a run whose lease expired", testClaimFencesARunWhoseLeaseRanOut},
	{"an expired lease counts until another run takes it", testAnExpiredLeaseNobodyTookStillCounts},
	{"refusals and failures are counted apart", testParkCountsRefusalsAndFailuresApart},
	{"a finished job has ended", testFinishEndsAJob},
	{"one caller takes over a job as it was seen", testTakeOver},
	{"every write is refused to former owners", testEveryWriteIsFenced},
	{"of concurrent claims one succeeds", testOfRacingClaimsOneWins},
	{"a wait for quota is not a failure", testAWaitForQuotaIsNoFault},
}

// claimExpired claims a slice after the lease that another run holds has expired.
func claimExpired(t *T, s Store, ref jobs.TaskRef) jobs.Job {
	t.Helper()
	t.pass(hour + time.Second)
	return must[jobs.Job](t)(s.Claim(t.Context(), ref, hour))
}

func testClaimTakesAFreeLease(t *T) {
	s := fresh(t)
	before := time.Now().Add(-time.Second)
	job := start(t, s)
	if job.State != jobs.Running || job.Epoch != 1 || job.Slice != 0 {
		t.Errorf("claimed = %+v", job)
	}
	if job.StartedAt.Before(before) || job.LeaseUntil.Sub(job.StartedAt) != hour {
		t.Errorf("started %s, lease until %s: want an hour from now", job.StartedAt, job.LeaseUntil)
	}
}

func testClaimTellsWhyNot(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	job = must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	at := func(epoch, slice int64) jobs.TaskRef { return jobs.TaskRef{Job: job.ID, Epoch: epoch, Slice: slice} }
	for _, tc := range []struct {
		name string
		ref  jobs.TaskRef
		want error
	}{
		{"held", at(1, 1), jobs.ErrHeld},
		{"slice done", at(1, 0), jobs.ErrSliceDone},
		{"slice to come", at(1, 2), jobs.ErrStale},
		{"earlier epoch", at(0, 1), jobs.ErrStale},
		{"later epoch", at(2, 1), jobs.ErrStale},
	} {
		got, err := s.Claim(ctx, tc.ref, hour)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: Claim = %v, want %v", tc.name, err, tc.want)
		}
		if !cmp.Equal(got, job) {
			t.Errorf("%s: Claim returns %+v, want the row %+v", tc.name, got, job)
		}
	}
	if _, err := s.Claim(ctx, jobs.TaskRef{Job: "backfill:bob@example.com"}, hour); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an unknown job: Claim = %v, want ErrNotFound", err)
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Completed}))
	if _, err := s.Claim(ctx, job.Ref(), hour); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("an ended job: Claim = %v, want ErrStale", err)
	}
}

func testClaimFencesARunWhoseLeaseRanOut(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	taken := claimExpired(t, s, job.Ref())
	if taken.Epoch != 2 || taken.Slice != 0 || taken.StartedAt != job.StartedAt {
		t.Errorf("taken = %+v, want epoch 2 of the same run", taken)
	}
	if _, err := s.EndSlice(ctx, job.Ref()); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("the stalled run ends its slice: %v, want ErrStale", err)
	}
	if _, err := s.EndSlice(ctx, taken.Ref()); err != nil {
		t.Errorf("the new owner ends its slice: %v", err)
	}
}

func testAnExpiredLeaseNobodyTookStillCounts(t *T) {
	s, job := claimed(t)
	if _, err := s.Renew(t.Context(), job.Ref(), -time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), job.Ref(), hour); err != nil {
		t.Errorf("Renew = %v, want the lease back", err)
	}
	if _, err := s.Claim(t.Context(), job.Ref(), hour); !errors.Is(err, jobs.ErrHeld) {
		t.Errorf("Claim = %v, want ErrHeld", err)
	}
}

func testParkCountsRefusalsAndFailuresApart(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	until := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	job = must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "user-minute", Until: until, Refused: true}))
	if job.State != jobs.Waiting || job.WaitingFor != "user-minute" || job.WaitUntil != until || !job.LeaseUntil.IsZero() || job.Slice != 0 {
		t.Errorf("parked = %+v", job)
	}
	if job.Refusals != 1 || job.Requeued != 1 || job.Failures != 0 {
		t.Errorf("refusals %d, requeued %d, failures %d; want 1, 1, 0", job.Refusals, job.Requeued, job.Failures)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	if job.State != jobs.Running || job.WaitingFor != "" || !job.WaitUntil.IsZero() || job.Refusals != 1 {
		t.Errorf("claimed again = %+v", job)
	}
	job = must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "backendError", Until: until, Failure: "500\x00 \xff"}))
	if job.Refusals != 1 || job.Requeued != 1 || job.Failures != 1 || job.LastError != "500 \uFFFD" {
		t.Errorf("after a fault = %+v", job)
	}
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); !cmp.Equal(got, job) {
		t.Errorf("Job = %+v, want what Park returned: %+v", got, job)
	}
	must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	job = must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "the retry of 2 messages", Until: until}))
	if job.Refusals != 1 || job.Requeued != 1 || job.Failures != 1 || job.LastError != "500 \uFFFD" {
		t.Errorf("waiting for an item changed a count: %+v", job)
	}
}

func testFinishEndsAJob(t *T) {
	s, job := claimed(t)
	if _, err := s.Finish(t.Context(), job.Ref(), jobs.Finish{State: jobs.Waiting}); err == nil {
		t.Error("Finish accepts a state that is not terminal")
	}
	job = must[jobs.Job](t)(s.Finish(t.Context(), job.Ref(), jobs.Finish{State: jobs.Blocked, Error: "token revoked"}))
	if job.State != jobs.Blocked || job.LastError != "token revoked" || job.FinishedAt.IsZero() || !job.LeaseUntil.IsZero() {
		t.Errorf("finished = %+v", job)
	}
}

func testTakeOver(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	renewed := must[jobs.Job](t)(s.Renew(ctx, job.Ref(), 2*hour))
	if _, err := s.TakeOver(ctx, job); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("TakeOver of a job as it was before its owner renewed the lease = %v, want ErrStale", err)
	}
	taken := must[jobs.Job](t)(s.TakeOver(ctx, renewed))
	if taken.Epoch != 2 || !taken.LeaseUntil.IsZero() || taken.State != jobs.Running {
		t.Errorf("taken over = %+v", taken)
	}
	if _, err := s.TakeOver(ctx, renewed); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("a second TakeOver = %v, want ErrStale", err)
	}
	if _, err := s.Renew(ctx, job.Ref(), hour); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("the old owner renews: %v, want ErrStale", err)
	}
	taken = must[jobs.Job](t)(s.Claim(ctx, taken.Ref(), hour))
	ended := must[jobs.Job](t)(s.Finish(ctx, taken.Ref(), jobs.Finish{State: jobs.Failed}))
	if _, err := s.TakeOver(ctx, ended); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("TakeOver of an ended job = %v, want ErrStale", err)
	}
	if _, err := s.TakeOver(ctx, jobs.Job{ID: "backfill:bob@example.com", Epoch: 1}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("TakeOver of no job = %v, want ErrNotFound", err)
	}
}

// Everything an owner may do is refused to whoever is not the owner any more.
func testEveryWriteIsFenced(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"a"}, Next: "p2"}))
	ref := must[jobs.Job](t)(s.EndSlice(ctx, job.Ref())).Ref() // slice 1, nobody's
	parked := must[jobs.Job](t)(s.Claim(ctx, ref, hour))
	must[jobs.Job](t)(s.Park(ctx, parked.Ref(), jobs.Park{For: "user-minute", Refused: true}))
	unowned := must[jobs.Job](t)(s.Job(ctx, job.ID))

	calls := map[string]func(ref jobs.TaskRef) error{
		"Renew":          func(r jobs.TaskRef) error { _, err := s.Renew(ctx, r, hour); return err },
		"SaveProfile":    func(r jobs.TaskRef) error { return s.SaveProfile(ctx, r, jobs.Profile{Messages: 9, HistoryID: 9}) },
		"AddListed":      func(r jobs.TaskRef) error { _, err := s.AddListed(ctx, r, jobs.Page{IDs: []string{"b"}}); return err },
		"RestartListing": func(r jobs.TaskRef) error { _, err := s.RestartListing(ctx, r, time.Time{}); return err },
		"NextPass":       func(r jobs.TaskRef) error { _, err := s.NextPass(ctx, r); return err },
		"NextItems":      func(r jobs.TaskRef) error { _, err := s.NextItems(ctx, r, 0, 1); return err },
		"NextDue":        func(r jobs.TaskRef) error { _, err := s.NextDue(ctx, r); return err },
		"Commit":         func(r jobs.TaskRef) error { _, err := s.Commit(ctx, r, []jobs.Result{stored("a")}); return err },
		"EndSlice":       func(r jobs.TaskRef) error { _, err := s.EndSlice(ctx, r); return err },
		"BeginCalendars": func(r jobs.TaskRef) error { _, err := s.BeginCalendars(ctx, r); return err },
		"RoundCalendars": func(r jobs.TaskRef) error { _, err := s.RoundCalendars(ctx, r); return err },
		"ApplyEvents":    func(r jobs.TaskRef) error { _, err := s.ApplyEvents(ctx, r, "c", jobs.EventPage{}); return err },
		"ExpireCalendar": func(r jobs.TaskRef) error { _, err := s.ExpireCalendar(ctx, r, "c", ""); return err },
		"EndCalendars":   func(r jobs.TaskRef) error { _, err := s.EndCalendars(ctx, r); return err },
		"Park":           func(r jobs.TaskRef) error { _, err := s.Park(ctx, r, jobs.Park{}); return err },
		"Finish":         func(r jobs.TaskRef) error { _, err := s.Finish(ctx, r, jobs.Finish{State: jobs.Failed}); return err },
	}
	refs := map[string]jobs.TaskRef{
		"an earlier epoch": {Job: job.ID, Epoch: 0, Slice: 1},
		"a later epoch":    {Job: job.ID, Epoch: 2, Slice: 1},
		"an earlier slice": {Job: job.ID, Epoch: 1, Slice: 0},
		"a later slice":    {Job: job.ID, Epoch: 1, Slice: 2},
		"no lease":         {Job: job.ID, Epoch: 1, Slice: 1},
	}
	check := func(what string, ref jobs.TaskRef, want error) {
		for name, call := range calls {
			if err := call(ref); !errors.Is(err, want) {
				t.Errorf("%s with %s = %v, want %v", name, what, err, want)
			}
		}
	}
	for what, ref := range refs {
		check(what, ref, jobs.ErrStale)
	}
	check("no such job", jobs.TaskRef{Job: "backfill:bob@example.com"}, jobs.ErrNotFound)
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); !cmp.Equal(got, unowned) {
		t.Errorf("refused writes changed the job: %+v, was %+v", got, unowned)
	}
	if n := len(must[[]jobs.Message](t)(s.Messages(ctx, ann, "", 0))); n != 0 {
		t.Errorf("refused writes stored %d messages", n)
	}

	last := must[jobs.Job](t)(s.Claim(ctx, ref, hour))
	must[jobs.Job](t)(s.Finish(ctx, last.Ref(), jobs.Finish{State: jobs.Completed}))
	check("an ended job", last.Ref(), jobs.ErrStale)
}

func testOfRacingClaimsOneWins(t *T) {
	stores := handles(t, 2)
	job := start(t, stores[0])
	ctx := t.Context()
	for range 10 {
		job = must[jobs.Job](t)(stores[0].EndSlice(ctx, job.Ref()))
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := stores[i%2].Claim(ctx, job.Ref(), hour)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, jobs.ErrHeld):
					t.Errorf("a losing Claim = %v, want ErrHeld", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("slice %d: %d claims won, want 1", job.Slice, won.Load())
		}
	}
}

// A job that waits for quota after a failure shows no error, and the next failure
// counts as the first of a new row.
func testAWaitForQuotaIsNoFault(t *T) {
	s := fresh(t)
	ref := start(t, s).Ref()
	park := func(p jobs.Park) jobs.Job {
		t.Helper()
		p.Until = time.Now()
		j := must[jobs.Job](t)(s.Park(t.Context(), ref, p))
		must[jobs.Job](t)(s.Claim(t.Context(), ref, time.Hour))
		return j
	}
	first := park(jobs.Park{For: "connection refused", Failure: "connection refused"})
	if first.Trouble() != "connection refused" || first.FailingSince.IsZero() {
		t.Errorf("after a fault: trouble %q since %s", first.Trouble(), first.FailingSince)
	}
	if j := park(jobs.Park{For: "user-minute", Refused: true}); !j.QuotaWait || j.Trouble() != "" || j.Failures != 1 {
		t.Errorf("after a refusal: %+v, want no trouble, and the failure counted", j)
	}
	if j := park(jobs.Park{For: "reset", Failure: "reset"}); j.QuotaWait || j.Trouble() != "reset" || !j.FailingSince.Equal(j.UpdatedAt) {
		t.Errorf("after another fault: %+v, want it to begin anew", j)
	}
}
