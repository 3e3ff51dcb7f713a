package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
)

// TestNumbersAreNotCut: yaml reads 7.5 into a whole number as 7.
func TestNumbersAreNotCut(t *testing.T) {
	path := write(t, `worker: {concurrency: 2.9, in_flight: &n 7.5}
scale: 1.5e0
google:
  projects:
    main:
      prices: [gmail-2026-05]
      limits: {gmail-2026-05: {user_minute: *n, project_minute: -1e300}}
      costs: {gmail-2026-05: {gmail.users.messages.get: {raw: 20.5}, gmail.users.messages.list: 5.5}}
    other: {<<: {budget: {gmail-2026-05: {daily_units: 0.5}}}}
`)
	_, err := config.Load(config.Options{
		Path: path, Environ: []string{"HEADROOM_SCALE=1.5"},
		Set: []string{"worker.slice=1e9", "worker.in_flight=7.5", "google.projects.main.costs.gmail-2026-05.gmail.users.messages.get={raw: 20.5}"},
	})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load = %v, want an InvalidError", err)
	}
	var got []string
	for _, p := range invalid.Problems {
		if text := strings.ReplaceAll(p.Error(), path, "F"); strings.Contains(text, "not \"") {
			got = append(got, text)
		}
	}
	want := []string{
		`F:1: worker.concurrency: must be a whole number, not "2.9"`,
		`F:1: worker.in_flight: must be a whole number, not "7.5"`,
		`F:2: scale: must be a whole number, not "1.5e0"`,
		`F:1: google.projects.main.limits.gmail-2026-05.user_minute: must be a whole number, not "7.5"`,
		`F:7: google.projects.main.limits.gmail-2026-05.project_minute: must be a whole number, not "-1e300"`,
		`F:8: google.projects.main.costs.gmail-2026-05.gmail.users.messages.get.raw: must be a whole number, not "20.5"`,
		`F:8: google.projects.main.costs.gmail-2026-05.gmail.users.messages.list: must be a whole number, not "5.5"`,
		`F:9: google.projects.other.budget.gmail-2026-05.daily_units: must be a whole number, not "0.5"`,
		`HEADROOM_SCALE: scale: must be a whole number, not "1.5"`,
		`--set worker.slice: must be a duration such as 5s, not "1e9"`,
		`--set worker.in_flight: must be a whole number, not "7.5"`,
		`--set google.projects.main.costs.gmail-2026-05.gmail.users.messages.get: must be a whole number, not "20.5"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestWholeNumbersMayLookLikeFractions(t *testing.T) {
	cfg, err := config.Load(config.Options{
		Path: write(t, "worker: {in_flight: 7.0, slice: 1.5s, message_bytes_in_flight: 1.5MiB}\n"),
		Set:  []string{"scale=1e1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Worker.InFlight != 7 || cfg.Scale != 10 || cfg.Worker.Slice != 1500*time.Millisecond || cfg.Worker.MessageBytesInFlight != 3<<19 {
		t.Errorf("worker %+v, scale %d, want 7 in flight, 1.5s, 1.5MiB and 10", cfg.Worker, cfg.Scale)
	}
}
