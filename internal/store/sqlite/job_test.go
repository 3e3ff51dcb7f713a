package sqlite_test

import (
	"fmt"
	"testing"

	"headroom/jobs"
)

func TestNewestJobsAreListedFirst(t *testing.T) {
	s := fresh(t)
	for i := range 7 {
		email := fmt.Sprintf("p%d@example.com", i)
		if err := s.AddAccount(t.Context(), jobs.Account{Email: email, Project: "main"}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.StartBackfill(t.Context(), email, jobs.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newest, total, err := s.NewestJobs(t.Context(), 3)
	if err != nil || total != 7 || len(newest) != 3 {
		t.Fatalf("NewestJobs = %d of %d, %v, want 3 of 7", len(newest), total, err)
	}
	for i, j := range newest {
		if want := all[len(all)-1-i].ID; j.ID != want {
			t.Errorf("job %d = %s, want %s", i, j.ID, want)
		}
	}
}

func TestTheJobsOfAnAccountAreListed(t *testing.T) {
	s, job := claimed(t)
	part := must[jobs.Job](t)(first(s.StartBackfill(t.Context(), ann, jobs.Filter{Labels: []string{"Label_1"}})))
	all := must[[]jobs.Job](t)(s.AccountJobs(t.Context(), "Ann@example.com"))
	if len(all) != 2 || all[0].ID != job.ID || all[1].ID != part.ID {
		t.Errorf("AccountJobs = %+v, want two", all)
	}
}

func first(j jobs.Job, _ bool, err error) (jobs.Job, error) { return j, err }
