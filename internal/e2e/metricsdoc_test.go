package e2e_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
)

// TestEveryMetricIsDocumented holds the table of docs/operations.md to what a
// process of all roles registers: the same names, each with the same labels.
func TestEveryMetricIsDocumented(t *testing.T) {
	registered, documented := registeredMetrics(t), documentedMetrics(t)
	if len(registered) == 0 {
		t.Fatal("a process of all roles registers no metric")
	}
	if diff := cmp.Diff(registered, documented); diff != "" {
		t.Errorf("metrics registered (-) and in docs/operations.md (+), with their labels:\n%s", diff)
	}
}

var descForm = regexp.MustCompile(`^Desc\{fqName: "(headroom_\w+)".* variableLabels: \{([^}]*)\}\}$`)

// registeredMetrics returns the labels of every metric of ours, by name. Metrics
// with labels are described before they have a value, but gathered only after.
func registeredMetrics(t *testing.T) map[string][]string {
	t.Helper()
	r := newSiteOf(t, fakegoogle.Options{}, nil)
	r.cfg.Push.Calendar.Address = "https://headroom.example.com/push/calendar"
	registry := prometheus.NewRegistry()
	a, err := app.New(t.Context(), r.cfg, app.Options{Log: zaptest.NewLogger(t), Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}

	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		registry.Describe(descs)
	}()
	metrics := map[string][]string{}
	for desc := range descs {
		if m := descForm.FindStringSubmatch(desc.String()); m != nil {
			metrics[m[1]] = labels(strings.Split(m[2], ","))
		} else {
			t.Errorf("cannot read %s", desc)
		}
	}
	return metrics
}

// metricCell is a cell that names a metric, and no expression of an alert.
var metricCell = regexp.MustCompile("^ `headroom_[a-z0-9_]+` $")

// documentedMetrics returns the labels of every metric in the table, by name.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !metricCell.MatchString(cells[1]) {
			continue
		}
		name := strings.Trim(cells[1], " `")
		if _, twice := metrics[name]; twice {
			t.Errorf("docs/operations.md has two rows for %s", name)
		}
		metrics[name] = labels(strings.Split(cells[3], ","))
	}
	return metrics
}

// labels is a set of names without blanks and quotes, sorted.
func labels(names []string) []string {
	set := map[string]bool{}
	for _, name := range names {
		if name = strings.Trim(name, " `"); name != "" {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
