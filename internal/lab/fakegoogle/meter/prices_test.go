package meter

import (
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle/discovery"
)

func TestPrices(t *testing.T) {
	for _, test := range []struct {
		list, method, format string
		want                 int64
	}{
		{"gmail-legacy", "gmail.users.messages.get", "raw", 5},
		{"gmail-2026-05", "gmail.users.messages.get", "raw", 20},
		{"gmail-2026-05", "gmail.users.messages.get", "minimal", 20},
		{"gmail-2026-10", "gmail.users.messages.get", "raw", 60},
		{"gmail-2026-10", "gmail.users.messages.get", "", 60},
		{"gmail-2026-10", "gmail.users.messages.get", "metadata", 20},
		{"gmail-2026-10", "gmail.users.messages.get", "RAW?", 60},
		{"gmail-2026-10", "gmail.users.messages.list", "", 5},
		{"gmail-2026-05", "gmail.users.getProfile", "", 1},
		{"gmail-2026-05", "gmail.users.history.list", "", 2},
		{"gmail-2026-05", "gmail.users.labels.list", "", 1},
		{"gmail-legacy", "gmail.users.threads.get", "full", 10},
		{"gmail-2026-05", "gmail.users.threads.get", "", 40},
		{"gmail-2026-10", "gmail.users.threads.get", "metadata", 40},
		{"gmail-2026-10", "gmail.users.threads.get", "", 120},
		{"gmail-2026-05", "gmail.users.threads.list", "", 10},
		{"gmail-2026-05", "gmail.users.messages.attachments.get", "", 20},
		{"gmail-2026-05", "gmail.users.messages.eat", "", 100},
	} {
		list, err := GmailPriceList(test.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := list.of(test.method, test.format); got != test.want {
			t.Errorf("%s: %s %s costs %d, want %d", test.list, test.method, test.format, got, test.want)
		}
	}
	legacy, _ := GmailPriceList("gmail-legacy")
	if legacy.UserMinute != 15_000 || legacy.ProjectMinute != 1_200_000 {
		t.Errorf("legacy limits = %d, %d", legacy.UserMinute, legacy.ProjectMinute)
	}
	if _, err := GmailPriceList("gmail-2031"); err == nil || !strings.Contains(err.Error(), "gmail-2026-10, gmail-legacy") {
		t.Errorf("unknown list: %v, want the names there are", err)
	}
	for _, text := range []string{"list a b\nm 1", "list a\nm x", "list a\nm 1,full", "list a\nm 1,full=x"} {
		if _, err := readPrices(text); err == nil {
			t.Errorf("readPrices(%q) = nil error", text)
		}
	}
}

// Every row must be a method of Google's own description of the API.
func TestPricedMethodsExist(t *testing.T) {
	known := map[string]bool{}
	discovery.Read(t, "gmail", "v1").Walk(func(m discovery.Method) { known[m.ID] = true })
	lists, err := parsePrices()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		if len(list.costs) != 59 {
			t.Errorf("%s has %d methods, want 59", list.name, len(list.costs))
		}
		for method := range list.costs {
			if !known[methodPrefix+method] {
				t.Errorf("%s prices %s, which the API has not", list.name, method)
			}
		}
	}
}
