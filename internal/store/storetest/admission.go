package storetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var admissionTests = []test{
	{"a backfill is admitted, yields and waits for its next turn", testAdmission},
	{"an account names its tenant and its class", testTenantsAndClasses},
}

// withAnn returns a store that knows ann.
func withAnn(t *T) Store {
	t.Helper()
	s := fresh(t)
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// candidate returns the one live backfill.
func candidate(t *T, s Store) jobs.Candidate {
	t.Helper()
	all := must[[]jobs.Candidate](t)(s.Candidates(t.Context()))
	if len(all) != 1 {
		t.Fatalf("%d candidates, want 1", len(all))
	}
	return all[0]
}

// The backfill waits, stays admitted from slice to slice, and waits again after the
// slice in which it yields.
func testAdmission(t *T) {
	s, ctx := withAnn(t), t.Context()
	job, _, err := s.StartBackfill(ctx, ann, jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want := jobs.Candidate{Job: job.ID, Account: ann, Project: "prod", Tenant: "example.com", Admission: jobs.NotAdmitted}
	if diff := cmp.Diff(want, candidate(t, s)); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	job = must[jobs.Job](t)(s.SetAdmission(ctx, job.ID, jobs.NotAdmitted, jobs.Admitted))
	if _, err := s.SetAdmission(ctx, job.ID, jobs.NotAdmitted, jobs.Admitted); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("a second scheduler admitted it too: %v", err)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), time.Minute))
	if err := s.Charge(ctx, job.Ref(), 120); err != nil {
		t.Fatal(err)
	}
	job = must[jobs.Job](t)(s.EndSlice(ctx, job.Ref()))
	if job.Admission != jobs.Admitted || job.Units != 120 {
		t.Errorf("after a slice: admission %q, %d units; want it to stay admitted", job.Admission, job.Units)
	}
	for _, end := range []struct {
		name  string
		of    func(jobs.TaskRef) (jobs.Job, error)
		state jobs.State
	}{
		{"its end", func(ref jobs.TaskRef) (jobs.Job, error) { return s.EndSlice(ctx, ref) }, jobs.Queued},
		{"a wait", func(ref jobs.TaskRef) (jobs.Job, error) {
			return s.Park(ctx, ref, jobs.Park{For: "quota", Until: time.Now().Add(time.Minute), Refused: true})
		}, jobs.Waiting},
	} {
		job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), time.Minute))
		must[jobs.Job](t)(s.SetAdmission(ctx, job.ID, jobs.Admitted, jobs.Yielding))
		job = must[jobs.Job](t)(end.of(job.Ref()))
		if job.Admission != jobs.NotAdmitted || job.State != end.state {
			t.Errorf("a slice that yields, at %s: admission %q, %s; want it to wait for admission, %s", end.name, job.Admission, job.State, end.state)
		}
		if c := candidate(t, s); c.WaitUntil.IsZero() != (end.state != jobs.Waiting) {
			t.Errorf("at %s: waits until %s", end.name, c.WaitUntil)
		}
	}
	if err := s.Charge(ctx, job.Ref(), 1); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("charged by nobody's slice: %v", err)
	}
	must[jobs.Job](t)(s.SetAdmission(ctx, job.ID, jobs.NotAdmitted, jobs.Admitted))
	if _, _, err := s.Cancel(ctx, job.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Candidates(ctx); err != nil || len(all) != 0 {
		t.Errorf("a cancelled job is a candidate: %+v, %v", all, err)
	}
}

func testTenantsAndClasses(t *T) {
	s, ctx := withAnn(t), t.Context()
	for _, step := range []struct {
		tenant, class         *string
		wantTenant, wantClass string
	}{
		{nil, nil, "example.com", ""},
		{new("acme"), nil, "acme", ""},
		{nil, new("urgent"), "acme", "urgent"},
		{new(""), new(""), "example.com", ""},
	} {
		if err := s.AssignAccount(ctx, ann, step.tenant, step.class); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Account(ctx, ann); err != nil || a.Tenant != step.wantTenant || a.Class != step.wantClass {
			t.Errorf("tenant %q, class %q; want %q and %q", a.Tenant, a.Class, step.wantTenant, step.wantClass)
		}
	}
	if err := s.AssignAccount(ctx, "nobody@example.com", new("t"), nil); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("nobody's tenant: %v, want ErrNotFound", err)
	}
}
