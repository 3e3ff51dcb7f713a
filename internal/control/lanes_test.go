package control

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
	"headroom/quota"
)

// loadProject returns what the settings of project p make of it.
func loadProject(t *testing.T, set ...string) (config.Config, quota.Project) {
	t.Helper()
	set = append([]string{"google.projects.p.credentials="}, set...)
	cfg, err := config.Load(config.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	projects, err := Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, projects["p"]
}

func TestOnlyNamedValuesOfLanesReplaceTheModes(t *testing.T) {
	_, p := loadProject(t, "google.projects.p.mode=adaptive",
		"google.projects.p.lanes.interactive.pace=0", "google.projects.p.lanes.sync.in_flight=6",
		"google.projects.p.lanes.backfill.ceiling=0.7", "google.projects.p.lanes.backfill.pace=0")
	want := []quota.Change{
		{Lane: quota.Sync, Key: quota.KeyInFlight, Value: 6},
		{Lane: quota.Backfill, Key: quota.KeyCeiling, Value: 0.7},
		{Lane: quota.Backfill, Key: quota.KeyPace, Value: 0},
	}
	if diff := cmp.Diff(want, p.Changes); diff != "" || p.Mode != quota.ModeAdaptive || p.Lanes != nil {
		t.Errorf("mode %s, lanes %v, changes (-want +got):\n%s", p.Mode, p.Lanes, diff)
	}
	if _, p := loadProject(t); len(p.Changes) != 0 || p.Mode != quota.ModeDefault {
		t.Errorf("without settings: mode %s, changes %v", p.Mode, p.Changes)
	}
}

func TestTheShownLanesAreTheModes(t *testing.T) {
	for _, mode := range quota.Modes {
		cfg, _ := loadProject(t, "google.projects.p.mode="+string(mode), "google.projects.p.lanes.backfill.in_flight=3")
		got := WithModes(cfg).Google.Projects["p"].Lanes
		want := mode.Lanes()
		lane := func(l quota.Lane) config.Lane {
			return config.Lane{Ceiling: new(want[l].Ceiling), Pace: new(want[l].Pace), InFlight: new(want[l].InFlight)}
		}
		b := want[quota.Backfill]
		if diff := cmp.Diff(config.Lanes{
			Interactive: lane(quota.Interactive), Sync: lane(quota.Sync),
			Backfill: config.BackfillLane{Ceiling: &b.Ceiling, Floor: &b.Floor, Pace: &b.Pace, InFlight: new(3)},
		}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
		if cfg.Google.Projects["p"].Lanes.Sync.Ceiling != nil {
			t.Errorf("%s: to show the settings has changed them", mode)
		}
	}
}

// TestTheModesAreDocumented holds the table of docs/configuration.md to the modes.
func TestTheModesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string, cell func(map[quota.Lane]quota.LaneSettings) string) {
		t.Helper()
		cells := []string{name}
		for _, mode := range quota.Modes {
			cells = append(cells, cell(mode.Lanes()))
		}
		if want := "| " + strings.Join(cells, " | ") + " |\n"; !strings.Contains(string(page), want) {
			t.Errorf("docs/configuration.md has no row %s", want)
		}
	}
	row("`interactive` ceiling, in flight", func(l map[quota.Lane]quota.LaneSettings) string {
		return fmt.Sprintf("%v, %d", l[quota.Interactive].Ceiling, l[quota.Interactive].InFlight)
	})
	for _, lane := range []quota.Lane{quota.Sync, quota.Backfill} {
		row(fmt.Sprintf("`%s` ceiling, pace, in flight", lane), func(l map[quota.Lane]quota.LaneSettings) string {
			return fmt.Sprintf("%v, %v, %d", l[lane].Ceiling, l[lane].Pace, l[lane].InFlight)
		})
	}
	row("`backfill` floor", func(l map[quota.Lane]quota.LaneSettings) string { return fmt.Sprint(l[quota.Backfill].Floor) })
}
