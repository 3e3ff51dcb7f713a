package e2e_test

import (
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

// TestOneMailboxHasOneQuotaByWhateverName reads a mailbox by an alias and by its own
// address at the same time: that is told, and both keep to one quota.
func TestOneMailboxHasOneQuotaByWhateverName(t *testing.T) {
	t.Parallel()
	const alias = "sales@example.com"
	r := newSiteOf(t, fakegoogle.Options{Scale: 60, UserLimit: 1000}, map[string]int{ann: 60})
	if err := r.fake.AddAlias(ann, alias); err != nil {
		t.Fatal(err)
	}
	added, err := r.control().AddAccount(t.Context(), alias, "main", control.Assignment{})
	if err != nil || added.Mailbox != "" || len(added.SharedWith) > 0 {
		t.Errorf("before the first contact: %+v, %v", added, err)
	}
	core, logs := observer.New(zap.WarnLevel)
	a, err := app.New(t.Context(), r.cfg, app.Options{Roles: []app.Role{app.RoleScheduler, app.RoleWorker}, Version: "test", Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	r.runApp(a)
	s := r.open()
	r.startBackfillOf(alias)
	r.startBackfill()
	done := func(j jobs.Job) bool { return j.State == jobs.Completed && j.Progress.Stored == 60 }
	r.waitOf(alias, s, "the alias' backfill", done)
	shown := func(email string) jobs.Account {
		t.Helper()
		account, err := r.control().Account(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		return account
	}
	if got := shown(alias); got.Mailbox != ann || !got.Alias() || !slices.Equal(got.SharedWith, []string{ann}) || got.QuotaUser() != ann {
		t.Errorf("the alias is %+v, want the mailbox of %s", got, ann)
	}
	if got := shown(ann); !slices.Equal(got.SharedWith, []string{alias}) {
		t.Errorf("the account of the address itself is %+v, want it shared with %s", got, alias)
	}
	// The second is for the account that is contacted last, and for the alias if it is the first.
	for want, most := range map[string]int{"the account is another name of a mailbox": 1, "several accounts are one mailbox": 2} {
		if n := logs.FilterMessageSnippet(want).Len(); n < 1 || n > most {
			t.Errorf("the log has %q %d times, want once or %d times at most", want, n, most)
		}
	}
	r.wait(s, "the backfill by the mailbox' own address", done)
	if u := r.fake.Meter().User(ann); u.Refused > 0 || u.Calls < 120 { // of 2,400 units, at 800 a window
		t.Errorf("the fake's meter: %+v, want no refusal", u)
	}
	if other := r.fake.Meter().User(alias); other.Calls != 0 {
		t.Errorf("the fake counts %+v for the alias", other)
	}
}

// A mailbox that is added by its own address after an alias of it is told at once.
func TestAMailboxIsNotAddedTwiceWithoutAWord(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{"sales@example.com": 0})
	s := r.open()
	job, _, err := s.StartBackfill(t.Context(), "sales@example.com", jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = s.Claim(t.Context(), job.Ref(), 1e9); err != nil {
		t.Fatal(err)
	}
	if others, err := s.NoteMailbox(t.Context(), job.Ref(), "Ann@Example.com"); err != nil || len(others) > 0 {
		t.Fatalf("NoteMailbox = %v, %v", others, err)
	}
	got, err := r.control().AddAccount(t.Context(), ann, "main", control.Assignment{})
	if err != nil || !slices.Equal(got.SharedWith, []string{"sales@example.com"}) {
		t.Errorf("AddAccount = %+v, %v, want it told that its mailbox is there", got, err)
	}
}
