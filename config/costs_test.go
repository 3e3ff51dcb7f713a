package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"headroom/config"
)

const priced = `
google:
  projects:
    main:
      prices: [gmail-2026-10, calendar-2026-05]
      costs:
        gmail-2026-10:
          gmail.users.messages.get: {full: 40, raw: 40}
          gmail.users.watch: 90
      budget:
        gmail-2026-10: {daily_units: 80000000, ahead: 0.5}
        calendar-2026-05: {daily_units: 1000000, hard: true, at_end: pause}
`

func TestCostsAndBudgets(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, priced), Set: []string{
		"google.projects.main.costs.gmail-2026-10.gmail.users.watch=80",
		"google.projects.main.costs.gmail-2026-10.gmail.users.drafts.get={full: 30}",
		"google.projects.main.budget.gmail-2026-10.hard=true",
	}})
	if err != nil {
		t.Fatal(err)
	}
	main := got.Google.Projects["main"]
	costs := map[string]config.Costs{"gmail-2026-10": {
		"gmail.users.messages.get": {Formats: map[string]int64{"full": 40, "raw": 40}},
		"gmail.users.watch":        {Units: 80},
		"gmail.users.drafts.get":   {Formats: map[string]int64{"full": 30}},
	}}
	if diff := cmp.Diff(costs, main.Costs); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
	budgets := map[string]config.Budget{
		"gmail-2026-10":    {DailyUnits: new(int64(80_000_000)), Hard: true, Ahead: new(0.5)},
		"calendar-2026-05": {DailyUnits: new(int64(1_000_000)), Hard: true, AtEnd: "pause"},
	}
	if diff := cmp.Diff(budgets, main.Budget); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}

	text, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Load(config.Options{Path: write(t, string(text))})
	if diff := cmp.Diff(got, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("printed and read again: %v (-want +got):\n%s", err, diff)
	}
}

func TestWrongCostsAndBudgetsAreAllNamed(t *testing.T) {
	path := write(t, `google:
  projects:
    main:
      prices: [gmail-2026-10]
      costs:
        gmail-legacy: {gmail.users.stop: 5}
        gmail-2026-10:
          gmail.users.messages.get: {full: 0, raw: 1}
          gmail.users.messages.list: {}
          gmail.users.watch: cheap
          gmail.users.drafts.get: {full: dear}
          gmail.users.drafts.list: [5]
          gmail.users.stop: ~
          gmail.users.getProfile: 3000000000
      limits:
        gmail-2026-10: {project_minute: 3000000000}
      budget:
        calendar-2026-05: {daily_units: 5}
        gmail-2026-10:
          daily_units: -1
          hard: perhaps
          weekly_units: 7
    other:
      budget:
        gmail-2026-10: {daily_units: 0, hard: true}
        calendar-2026-05: {at_end: stop, ahead: 0, hard: true}
`)
	_, err := config.Load(config.Options{Path: path, Set: []string{
		"google.projects.other.costs.gmail-2026-10.gmail.users.stop={full",
		"google.projects.other.costs.gmail-2026-10.gmail.users.stop=",
		"google.projects.other.budget.gmail-2026-10=5",
	}})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load = %v, want an InvalidError", err)
	}
	got := unplaced(invalid)
	const costs, rule = "google.projects.main.costs.gmail-2026-10.", "must be from 1 to 2147483647 units, not "
	want := []string{
		costs + `gmail.users.watch: must be a whole number, not "cheap"`,
		costs + `gmail.users.drafts.get.full: must be a whole number, not "dear"`,
		costs + `gmail.users.drafts.list: must be a whole number, not a list`,
		`google.projects.main.budget.gmail-2026-10.hard: must be true or false, not "perhaps"`,
		`google.projects.main.budget.gmail-2026-10.weekly_units: is no setting that Headroom knows`,
		`google.projects.other.costs.gmail-2026-10.gmail.users.stop: must be a number of units or {format: units}, not "{full"`,
		`google.projects.other.costs.gmail-2026-10.gmail.users.stop: must not be empty`,
		`google.projects.other.budget.gmail-2026-10: is no setting that Headroom knows`,
		`google.projects.main.limits.gmail-2026-10.project_minute: must be a number of units, or 0 for the list's own`,
		costs + `gmail.users.getProfile: ` + rule + `3000000000`,
		costs + `gmail.users.messages.get.full: ` + rule + `0`,
		costs + `gmail.users.messages.list: must be a number of units, or name at least one format`,
		costs + `gmail.users.stop: ` + rule + `0`,
		`google.projects.main.costs.gmail-legacy: is not among the project's prices (gmail-2026-10)`,
		`google.projects.main.budget.calendar-2026-05: is not among the project's prices (gmail-2026-10)`,
		`google.projects.main.budget.gmail-2026-10.daily_units: must be from 0 (no budget) to 2147483647 units, not -1`,
		`google.projects.other.budget.calendar-2026-05.at_end: must be one of pause, alert, go_on, not "stop"`,
		`google.projects.other.budget.calendar-2026-05.hard: needs at_end: pause, or there is nothing to bind`,
		`google.projects.other.budget.calendar-2026-05.ahead: must be a share of the budget above 0 and at most 1 (not paced), not 0`,
		`google.projects.other.budget.gmail-2026-10.hard: needs daily_units beside it, or there is nothing to bind`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
