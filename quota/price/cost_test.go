package price_test

import (
	"slices"
	"strings"
	"testing"

	"headroom/quota/price"
)

func list(t *testing.T, name string) *price.List {
	t.Helper()
	l, err := price.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// cost is what a call costs by a list, which must know it.
func cost(t *testing.T, l *price.List, method, format string) int64 {
	t.Helper()
	units, known := l.Cost(method, format)
	if !known {
		t.Errorf("%s does not know %s", l.Name, method)
	}
	return units
}

const get, stop = "gmail.users.messages.get", "gmail.users.stop"

func TestWithCost(t *testing.T) {
	october := list(t, "gmail-2026-10")
	flat, err := october.WithCost(get, "", 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"", "full", "minimal"} {
		if got := cost(t, flat, get, format); got != 7 {
			t.Errorf("a flat price of 7: %q costs %d", format, got)
		}
	}
	if got := cost(t, october, get, ""); got != 60 {
		t.Errorf("the original costs %d, want 60 as before", got)
	}

	may := list(t, "gmail-2026-05")
	full, err := may.WithCost(get, "FULL", 70)
	if err == nil {
		full, err = full.WithCost(get, "metadata", 3)
	}
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]int64{"": 70, "full": 70, "metadata": 3, "minimal": 20, "raw": 20} {
		if got := cost(t, full, get, format); got != want {
			t.Errorf("%q costs %d, want %d", format, got, want)
		}
	}
	if c := full.Costs[get]; c.Verified || c.Note == "" || may.Costs[get].Formats != nil {
		t.Errorf("cost = %+v, want it marked as the operator's, and the original unchanged", c)
	}
	metadata, err := may.WithCost(get, "metadata", 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := cost(t, metadata, get, ""); got != 20 {
		t.Errorf("without a format: %d, want the 20 of full", got)
	}
}

// TestWithCostKeepsUnknownMethodsMostExpensive: no method is cheaper for being unknown.
func TestWithCostKeepsUnknownMethodsMostExpensive(t *testing.T) {
	dear, err := list(t, "gmail-2026-05").WithCost(get, "raw", 500)
	if err != nil {
		t.Fatal(err)
	}
	if units, known := dear.Cost("gmail.users.novelty", ""); units != 500 || known {
		t.Errorf("an unknown method costs %d (known %t), want 500 as the most expensive", units, known)
	}
	cheap, err := dear.WithCost(get, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if units, _ := cheap.Cost("gmail.users.novelty", ""); units != 100 {
		t.Errorf("an unknown method costs %d, want 100 again", units)
	}
}

func TestWithCostRefuses(t *testing.T) {
	may := list(t, "gmail-2026-05")
	for _, row := range []struct {
		method, format string
		units          int64
		want           string
	}{
		{"gmail.users.novelty", "", 5, "headroom quota prices gmail-2026-05"},
		{"calendar.events.list", "", 5, "has no method"},
		{get, "", 0, "not from 1"},
		{get, "", 1 << 31, "not from 1"},
		{get, "pdf", 5, "there are full, html, metadata, minimal, raw"},
		{stop, "full", 5, "has no formats"},
	} {
		if _, err := may.WithCost(row.method, row.format, row.units); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("WithCost(%q, %q, %d) = %v, want %q", row.method, row.format, row.units, err, row.want)
		}
	}
}

func TestDiff(t *testing.T) {
	legacy, may, october := list(t, "gmail-legacy"), list(t, "gmail-2026-05"), list(t, "gmail-2026-10")
	got, err := may.Diff(october)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []price.Difference{
		{Kind: "cost", Name: get, Old: 20, New: 60},
		{Kind: "cost", Name: get, Format: "full", Old: 20, New: 60},
		{Kind: "cost", Name: "gmail.users.drafts.get", Format: "html", Old: 20, New: 60},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the differences lack %+v:\n%+v", want, got)
		}
	}
	for _, d := range got {
		if d.Format == "metadata" || d.Old == d.New || !strings.HasSuffix(d.Name, ".get") {
			t.Errorf("%+v is no difference", d)
		}
	}
	got, err = legacy.Diff(may)
	if err != nil || !slices.Contains(got, price.Difference{Kind: "limit", Name: price.UserMinute, Old: 15000, New: 6000}) {
		t.Errorf("Diff = %+v, %v", got, err)
	}
	smaller := *may
	smaller.Costs = map[string]price.Cost{get: may.Costs[get]}
	smaller.Billing = nil
	got, err = smaller.Diff(may)
	if want := len(may.Costs) - 1 + len(may.Billing); err != nil || len(got) != want || got[0] != (price.Difference{Kind: "billing", Name: "project-day", New: 80_000_000}) {
		t.Errorf("against a list of one method: %d differences beginning with %+v, %v, want %d", len(got), got[0], err, want)
	}
	if got, err := may.Diff(may); err != nil || len(got) != 0 {
		t.Errorf("with itself: %+v, %v", got, err)
	}
	if _, err := may.Diff(list(t, "calendar-2026-05")); err == nil || !strings.Contains(err.Error(), "calendar-2026-05 of calendar") {
		t.Errorf("across APIs: got %v", err)
	}
}
