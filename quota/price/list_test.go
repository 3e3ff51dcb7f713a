package price_test

import (
	"strings"
	"testing"

	"headroom/quota/price"
)

func TestCosts(t *testing.T) {
	tests := []struct {
		list, method, format string
		want                 int64
		known                bool
	}{
		{"gmail-legacy", "gmail.users.messages.get", "raw", 5, true},
		{"gmail-legacy", "gmail.users.threads.get", "", 10, true},
		{"gmail-2026-05", "gmail.users.messages.get", "raw", 20, true},
		{"gmail-2026-05", "gmail.users.messages.get", "", 20, true},
		{"gmail-2026-05", "gmail.users.messages.list", "", 5, true},
		{"gmail-2026-05", "gmail.users.threads.get", "full", 40, true},
		{"gmail-2026-10", "gmail.users.messages.get", "", 60, true}, // full is the default format
		{"gmail-2026-10", "gmail.users.messages.get", "RAW", 60, true},
		{"gmail-2026-10", "gmail.users.messages.get", "metadata", 20, true},
		{"gmail-2026-10", "gmail.users.drafts.get", "minimal", 20, true},
		{"gmail-2026-05", "gmail.users.novelty", "", 100, false}, // as much as the dearest
		{"gmail-2026-10", "", "", 120, false},
		{"calendar-2026-05", "calendar.events.list", "", 1, true},
	}
	for _, test := range tests {
		list, err := price.Load(test.list)
		if err != nil {
			t.Fatal(err)
		}
		if got, known := list.Cost(test.method, test.format); got != test.want || known != test.known {
			t.Errorf("%s: %s %s costs %d (known %t), want %d (%t)", test.list, test.method, test.format, got, known, test.want, test.known)
		}
	}
}

func TestParseReportsEverything(t *testing.T) {
	_, err := price.Parse([]byte(`
name: mine
api: mail
date: yesterday
limits:
  user-minute: {units: 0, per: user, period: 60s, verified: true}
costs:
  gmail.users.stop: {units: 5, source: hearsay, verified: true}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"api", "date", "limits.user-minute.units", "limits.project-minute: missing", `source "hearsay"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q:\n%v", want, err)
		}
	}
	if _, err := price.Parse([]byte("name: x\ncolour: red\n")); err == nil || !strings.Contains(err.Error(), "colour") {
		t.Errorf("an unknown key: got %v", err)
	}
	if _, err := price.Load("gmail-1999"); err == nil || !strings.Contains(err.Error(), "gmail-2026-05") {
		t.Errorf("an unknown list: got %v, want the names of those there are", err)
	}
}

func TestWithLimit(t *testing.T) {
	list, err := price.Load("gmail-2026-05")
	if err != nil {
		t.Fatal(err)
	}
	small, err := list.WithLimit(price.UserMinute, 375)
	if err != nil {
		t.Fatal(err)
	}
	if got, old := small.Limits[price.UserMinute].Units, list.Limits[price.UserMinute].Units; got != 375 || old != 6000 {
		t.Errorf("limits are %d and %d, want 375 in the copy and 6000 in the original", got, old)
	}
	for _, units := range []int64{0, -1, 1 << 31} {
		if _, err := list.WithLimit(price.UserMinute, units); err == nil {
			t.Errorf("a limit of %d units was accepted", units)
		}
	}
	if _, err := list.WithLimit("user-hour", 5); err == nil {
		t.Error("an unknown limit was accepted")
	}
}
