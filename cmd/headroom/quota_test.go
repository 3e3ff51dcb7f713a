package main

import (
	"os"
	"strings"
	"testing"

	"headroom/quota/price"
)

// priceJSON is what the tests read of a printed price list.
type priceJSON struct {
	Name, API, Date string
	Sources         map[string]struct{ URL, Date string }
	Limits          map[string]struct {
		Units               int64
		Per, Period, Source string
		Verified            bool
		Note                string
	}
	Billing map[string]struct{ Units int64 }
	Costs   map[string]struct {
		Units    int64
		Formats  map[string]int64
		Source   string
		Verified bool
		Note     string
	}
}

func TestQuotaPricesShowsLists(t *testing.T) {
	r := headroom(t, "quota", "prices", "gmail-2026-10")
	for _, want := range []string{"gmail-2026-10: gmail as of 2026-10-15", "full 60 (default), html 60, raw 60", "user-minute", "6000", "80000000",
		"as in gmail-2026-05", "https://developers.google.cn/gmail/api/reference/quota"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("exit code %d, want %q in:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	all := headroom(t, "quota", "prices").stdout
	for _, name := range price.Names() {
		if !strings.Contains(all, name+": ") {
			t.Errorf("without a LIST, %s is missing", name)
		}
	}
	for _, row := range decode[[]priceJSON](t, headroom(t, "quota", "prices", "--json")) {
		list, err := price.Load(row.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(row.Costs) != len(list.Costs) || row.API != list.API || row.Date != list.Date {
			t.Errorf("%s has %d costs, want %d", row.Name, len(row.Costs), len(list.Costs))
		}
		for method, c := range row.Costs {
			if units, _ := list.Cost(method, "minimal"); c.Units != units || row.Sources[c.Source].URL == "" {
				t.Errorf("%s of %s = %+v, want %d units and a source", method, row.Name, c, units)
			}
		}
		if l := row.Limits["user-minute"]; l.Units != list.Limits["user-minute"].Units || l.Period != "1m0s" || l.Source != "docs" {
			t.Errorf("%s: limit %+v", row.Name, l)
		}
	}
	one := decode[priceJSON](t, headroom(t, "quota", "prices", "calendar-2026-05", "--json"))
	if one.API != "calendar" || one.Costs["calendar.events.list"].Units != 1 || one.Billing["project-day"].Units != 1_000_000 {
		t.Errorf("one list as JSON = %+v", one)
	}
}

func TestQuotaPricesOfAProject(t *testing.T) {
	s := newSite(t, realRedis.URL())
	text := `google: {projects: {main: {prices: [gmail-2026-10],
  limits: {gmail-2026-10: {user_minute: 3000}},
  costs: {gmail-2026-10: {gmail.users.messages.get: {full: 45}, gmail.users.watch: 7}}}}}`
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lists := decode[[]priceJSON](t, s.headroom("quota", "prices", "--project", "main", "--json"))
	if len(lists) != 1 || lists[0].Limits["user-minute"].Units != 3000 {
		t.Fatalf("lists = %+v", lists)
	}
	if c := lists[0].Costs["gmail.users.messages.get"]; c.Formats["full"] != 45 || c.Formats["raw"] != 60 || c.Verified || c.Note != "set by the operator" {
		t.Errorf("messages.get = %+v, want the project's own", c)
	}
	r := s.headroom("quota", "prices", "gmail-2026-10", "--project", "main")
	if r.code != 0 || !strings.Contains(r.stdout, "full 45 (default), html 60, raw 60") || !strings.Contains(r.stdout, "set by the operator") {
		t.Errorf("got %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.headroom("quota", "prices", "--project", "p").fails(t, 2, "unknown project p, the settings name main")
	s.headroom("quota", "prices", "gmail-legacy", "--project", "main").fails(t, 2, `project main has no price list "gmail-legacy"; it has gmail-2026-10`)
	s.headroom("quota", "prices", "--project", "main", "--set", "google.projects.main.costs.gmail-2026-10.gmail.users.fetch=3").
		fails(t, 2, `google.projects.main.costs.gmail-2026-10.gmail.users.fetch: price list gmail-2026-10 has no method`)
	s.headroom("quota", "prices", "--project", "main", "--set", "google.projects.main.budget.gmail-2026-10.daily_units=-1").
		fails(t, 2, "google.projects.main.budget.gmail-2026-10.daily_units: must be from 0")
}

func TestQuotaPricesDiff(t *testing.T) {
	r := headroom(t, "quota", "prices", "--diff", "gmail-2026-05", "gmail-2026-10")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 0 || len(lines) != 13 || strings.Join(strings.Fields(lines[0]), " ") != "WHAT NAME FORMAT gmail-2026-05 gmail-2026-10" {
		t.Fatalf("got %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if got := strings.Join(strings.Fields(lines[5]), " "); got != "cost gmail.users.messages.get none given 20 60" {
		t.Errorf("line 5 = %s", got)
	}
	diff := decode[struct {
		Old, New    string
		Differences []price.Difference
	}](t, headroom(t, "quota", "prices", "--json", "--diff", "gmail-legacy", "gmail-2026-05"))
	if diff.Old != "gmail-legacy" || diff.New != "gmail-2026-05" || diff.Differences[0] != (price.Difference{Kind: "limit", Name: "user-minute", Old: 15000, New: 6000}) {
		t.Errorf("diff = %+v", diff)
	}
	if r := headroom(t, "quota", "prices", "--diff", "gmail-legacy", "gmail-legacy"); r.code != 0 || !strings.Contains(r.stdout, "do not differ") {
		t.Errorf("a list with itself: %+v", r)
	}
}

func TestQuotaPricesUsage(t *testing.T) {
	names := strings.Join(price.Names(), ", ")
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"gmail-1999"}, `unknown price list "gmail-1999"; there are ` + names},
		{[]string{"--diff", "gmail-1999", "gmail-legacy"}, `unknown price list "gmail-1999"; there are ` + names},
		{[]string{"--diff", "gmail-legacy", "gmail-1999"}, `unknown price list "gmail-1999"; there are ` + names},
		{[]string{"--diff", "gmail-legacy"}, "--diff needs two price lists; there are " + names},
		{[]string{"--diff", "gmail-legacy", "calendar-2026-05"}, "nothing to compare"},
		{[]string{"--diff", "gmail-legacy", "gmail-2026-05", "--project", "p"}, "leave out --project"},
		{[]string{"gmail-legacy", "gmail-2026-05"}, "--diff gmail-legacy gmail-2026-05"},
	} {
		headroom(t, append([]string{"quota", "prices"}, row.args...)...).fails(t, 2, row.want)
	}
	headroom(t, "quota").fails(t, 2, "needs a subcommand")
}
