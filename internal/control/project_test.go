package control

import (
	"errors"
	"strings"
	"testing"

	"headroom/config"
	"headroom/quota/price"
)

func TestProjectsBecomeTheLedgers(t *testing.T) {
	cfg := config.Default()
	cfg.Google.Projects = map[string]config.Project{"p": {
		Prices: []string{"gmail-legacy", "calendar-2026-05"},
		Limits: map[string]config.Limits{"gmail-legacy": {UserMinute: 300}},
	}}
	got, err := Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lists := got["p"].Lists
	if len(lists) != 2 || lists[0].Name != "gmail-legacy" || lists[1].Name != "calendar-2026-05" {
		t.Fatalf("lists = %v", lists)
	}
	if units := lists[0].Limits[price.UserMinute].Units; units != 300 {
		t.Errorf("user-minute = %d, want 300", units)
	}
	original, err := price.Load("gmail-legacy")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lists[0].Limits[price.ProjectMinute].Units, original.Limits[price.ProjectMinute].Units; got != want {
		t.Errorf("project-minute = %d, want the list's own %d", got, want)
	}
}

func TestUnknownPriceListsAreAllNamed(t *testing.T) {
	cfg := config.Default()
	cfg.Google.Projects = map[string]config.Project{
		"a": {Prices: []string{"gmail-1999"}}, "b": {Prices: []string{"mail"}},
	}
	_, err := Projects(cfg)
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 {
		t.Fatalf("Projects = %v, want two problems", err)
	}
	for i, want := range []string{`google.projects.a.prices: unknown price list "gmail-1999"; there are`, "google.projects.b.prices"} {
		if !strings.Contains(invalid.Problems[i].Error(), want) {
			t.Errorf("problem %d = %v, want %s", i, invalid.Problems[i], want)
		}
	}
}

func TestCostsAndBudgetsReachTheLedger(t *testing.T) {
	cfg := config.Default()
	cfg.Google.Projects = map[string]config.Project{"p": {
		Prices: []string{"gmail-2026-10", "calendar-2026-05"},
		Costs: map[string]config.Costs{"gmail-2026-10": {
			"gmail.users.messages.get": {Formats: map[string]int64{"full": 40, "minimal": 2}},
			"gmail.users.drafts.get":   {Units: 9},
		}},
		Budget: map[string]config.Budget{
			"gmail-2026-10": {DailyUnits: new(int64(70_000_000)), Hard: true}, "calendar-2026-05": {},
		},
	}}
	got, err := Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	gmail := got["p"].Lists[0]
	for _, row := range []struct {
		method, format string
		want           int64
	}{
		{"gmail.users.messages.get", "", 40}, {"gmail.users.messages.get", "full", 40},
		{"gmail.users.messages.get", "raw", 60}, {"gmail.users.messages.get", "minimal", 2},
		{"gmail.users.drafts.get", "full", 9}, {"gmail.users.messages.list", "", 5},
	} {
		if units, known := gmail.Cost(row.method, row.format); units != row.want || !known {
			t.Errorf("%s of %q costs %d, want %d", row.method, row.format, units, row.want)
		}
	}
	if b := got["p"].Budgets; len(b) != 1 || b[0] != (price.Budget{API: "gmail", Units: 70_000_000, Hard: true, AtEnd: price.AtEndPause, Ahead: 0.25}) {
		t.Errorf("budgets = %+v, want the one of gmail", b)
	}
}

func TestUnknownMethodsAreAllNamed(t *testing.T) {
	cfg := config.Default()
	cfg.Google.Projects = map[string]config.Project{"p": {
		Prices: []string{"gmail-2026-10"},
		Costs: map[string]config.Costs{"gmail-2026-10": {
			"gmail.users.messages.fetch": {Units: 5},
			"gmail.users.messages.get":   {Formats: map[string]int64{"pdf": 5, "full": 5}},
			"gmail.users.messages.list":  {Formats: map[string]int64{"full": 5}},
		}},
	}}
	_, err := Projects(cfg)
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatalf("Projects = %v, want three problems", err)
	}
	for i, want := range []string{
		`messages.fetch: price list gmail-2026-10 has no method "gmail.users.messages.fetch"; headroom quota prices gmail-2026-10 shows`,
		`messages.get: gmail.users.messages.get has no format "pdf"`,
		`messages.list: gmail.users.messages.list has no formats`,
	} {
		if got := invalid.Problems[i].Error(); !strings.HasPrefix(got, "google.projects.p.costs.gmail-2026-10.gmail.users."+want) {
			t.Errorf("problem %d = %s, want %s", i, got, want)
		}
	}
}
