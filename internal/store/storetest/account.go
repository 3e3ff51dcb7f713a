package storetest

import (
	"errors"
	"strings"
	"time"

	"headroom/jobs"
)

var accountTests = []test{
	{"addresses are compared without regard to case", testAccountsIgnoreCase},
	{"accounts of the same mailbox find each other", testAccountsOfOneMailbox},
}

func testAccountsIgnoreCase(t *T) {
	s := fresh(t)
	ctx := t.Context()
	for _, email := range []string{"Zoe@Example.com", ann, "Kim@example.com"} {
		if err := s.AddAccount(ctx, jobs.Account{Email: email, Project: "prod"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddAccount(ctx, jobs.Account{Email: "ANN@example.COM", Project: "other"}); !errors.Is(err, jobs.ErrExists) {
		t.Errorf("adding an address twice = %v, want ErrExists", err)
	}
	got := must[jobs.Account](t)(s.Account(ctx, "zoe@example.COM"))
	if got.Email != "zoe@example.com" || got.Project != "prod" || time.Since(got.CreatedAt).Abs() > time.Minute {
		t.Errorf("Account = %+v", got)
	}
	all := must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(ctx)).Accounts
	if len(all) != 3 || all[0].Email != ann || all[1].Email != "kim@example.com" || all[2].Email != "zoe@example.com" {
		t.Errorf("Accounts = %+v", all)
	}
	if _, err := s.Account(ctx, "bob@example.com"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an unknown account = %v, want ErrNotFound", err)
	}
	if _, err := s.Account(ctx, "\u212Aim@example.com"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("the account of a Kelvin sign = %v, want ErrNotFound: it is not kim", err)
	}
	for _, bad := range []jobs.Account{{Email: "ann", Project: "p"}, {Email: "a b@c", Project: "p"}, {Email: "@c", Project: "p"}, {Email: strings.Repeat("a", 3000) + "@example.com", Project: "p"}, {Email: "a@b"}} {
		if err := s.AddAccount(ctx, bad); err == nil {
			t.Errorf("AddAccount(%+v) succeeded", bad)
		}
	}
}

func testAccountsOfOneMailbox(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	for _, email := range []string{"alias@example.com", "bob@example.com"} {
		if err := s.AddAccount(ctx, jobs.Account{Email: email, Project: "prod"}); err != nil {
			t.Fatal(err)
		}
	}
	if others := must[[]string](t)(s.NoteMailbox(ctx, job.Ref(), "Ann@example.com")); len(others) != 0 {
		t.Errorf("NoteMailbox = %q, want no other account yet", others)
	}
	alias, _, err := s.StartBackfill(ctx, "alias@example.com", jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	alias = must[jobs.Job](t)(s.Claim(ctx, alias.Ref(), hour))
	if others := must[[]string](t)(s.NoteMailbox(ctx, alias.Ref(), ann)); len(others) != 1 || others[0] != ann {
		t.Errorf("NoteMailbox = %q, want %q", others, ann)
	}
	if a := must[jobs.Account](t)(s.Account(ctx, "alias@example.com")); a.Mailbox != ann || !a.Alias() {
		t.Errorf("Account = %+v, want an alias of %s", a, ann)
	}
}
