package jobs_test

import (
	"testing"
	"time"

	"headroom/jobs"
)

func TestFiltersThatMeanTheSameAreOneJob(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	a := jobs.Filter{After: at, Labels: []string{"INBOX", "CHAT", "INBOX"}, Query: " from:ann ", Format: jobs.FormatRaw}
	b := jobs.Filter{After: at.UTC().Add(time.Millisecond), Labels: []string{"CHAT", "INBOX"}, Query: "from:ann"}
	if x, y := a.BackfillID("Ann@example.com"), b.BackfillID("ann@example.com"); x != y || x == jobs.BackfillID("ann@example.com") {
		t.Errorf("ids %q and %q, want the same, and not that of the whole mailbox", x, y)
	}
	for _, f := range []jobs.Filter{{}, {Labels: []string{}}, {Format: jobs.FormatRaw}} {
		if got := f.BackfillID("ann@example.com"); got != "backfill:ann@example.com" || !f.Whole() {
			t.Errorf("%+v: id %q, whole %t", f, got, f.Whole())
		}
	}
	seen := map[string]bool{}
	for _, f := range []jobs.Filter{{}, {First: 1}, {First: 2}, {MaxSize: 1}, {SpamTrash: true}, {Before: at}, {After: at}, {Format: jobs.FormatFull}, {Query: "x"}, {Labels: []string{"x"}}} {
		id := f.BackfillID("ann@example.com")
		if seen[id] {
			t.Errorf("%+v: id %q is that of another filter", f, id)
		}
		seen[id] = true
	}
}

func TestBadFilters(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, f := range map[string]jobs.Filter{
		"a range that ends before it begins": {After: at, Before: at},
		"a negative size":                    {MaxSize: -1},
		"a negative number":                  {First: -1},
		"an unknown format":                  {Format: "mbox"},
		"an empty label":                     {Labels: []string{""}},
	} {
		if f.Validate() == nil {
			t.Errorf("%s is accepted: %+v", name, f)
		}
	}
	if err := (jobs.Filter{After: at, Before: at.Add(time.Second), First: 3, Format: jobs.FormatMetadataFirst}).Validate(); err != nil {
		t.Error(err)
	}
}
