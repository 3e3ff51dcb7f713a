package main

import (
	"os"
	"strings"
	"testing"

	estimates "headroom/internal/control/estimate"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

func TestDayPercentHasNoPowersOfTen(t *testing.T) {
	for p, want := range map[float64]string{0: "0", 8.75e-06: "under 0.001", 0.001: "0.001", 0.00301: "0.00301", 12.34: "12.3", 999.4: "999", 999.6: "1,000", 12345678: "12,345,678"} {
		if got := dayPercent(p); got != want {
			t.Errorf("dayPercent(%v) = %q, want %q", p, got, want)
		}
	}
}

func TestEstimateOfABackfill(t *testing.T) {
	s := newSite(t, realRedis.URL())
	fake, err := fakegoogle.New(fakegoogle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Load("ann@example.com", "generate:120"); err != nil {
		t.Fatal(err)
	}
	url, stop, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(t.Context()) })
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, []byte(strings.Replace(string(text), "http://127.0.0.1:1", url, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.headroom("backfill", "estimate", "ann@example.com").fails(t, 1, "unknown account ann@example.com; add it with: headroom account add ann@example.com")
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--sample", "11"}, "--sample 11 is not from 0 to 10"},
		{[]string{"--format", "html"}, `unknown format "html"`},
	} {
		s.headroom(append([]string{"backfill", "estimate", "ann@example.com"}, row.flags...)...).fails(t, 2, row.want)
	}
	s.headroom("backfill", "estimate", "ann@example.com", "--label", "none", "--spam-trash").fails(t, 1, "no such label: Gmail's labels are named by their ids")

	got := decode[estimates.Estimate](t, s.headroom("backfill", "estimate", "ann@example.com", "--json", "--sample", "0"))
	if got.Messages.Value != 120 || !got.Messages.Exact() || got.Bytes != nil || len(got.Prices) != 3 || got.Prices[0].Units.Value != 2407 || !got.Prices[0].Own {
		t.Errorf("estimate --json = %+v", got)
	}
	for _, args := range [][]string{{"estimate", "ann@example.com"}, {"start", "ann@example.com", "--dry-run"}} {
		r := s.headroom(append([]string{"backfill"}, args...)...)
		for _, want := range []string{"120, the profile's count less those of spam and trash", "roughly, by the sizes of 10 of them",
			"120 calls of messages.get raw", "1 call of getProfile", "2,407", "0.00301 % of 80,000,000", "31s", "user-minute", "the project's", "threads.get has no format raw"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%q does not say %q: %+v", args, want, r)
			}
		}
	}
	if all := decode[[]jobs.Job](t, s.headroom("backfill", "list", "--json")); len(all) != 0 {
		t.Errorf("estimates started %+v", all)
	}
}
