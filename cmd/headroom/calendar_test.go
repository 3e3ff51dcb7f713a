package main

import (
	"strings"
	"testing"

	"headroom/jobs"
)

func TestACalendarSyncIsAskedFor(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("calendar", "sync", "ann@example.com").fails(t, 1, "unknown account ann@example.com; add it with")
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("calendar", "sync", "ann@example.com").fails(t, 1, "add calendar-2026-05 to google.projects.main.prices")
	s.headroom("calendar", "sync").fails(t, 2, "usage: headroom calendar sync ACCOUNT")

	s.headroom("account", "add", "bob@example.com", "--project", "other") // with the prices of Calendar too
	if r := s.headroom("calendar", "export", "bob@example.com", "--out", t.TempDir()); r.code != 0 || !strings.Contains(r.stderr, "no calendars of the account are stored yet") {
		t.Errorf("an export of nothing = %+v", r)
	}
	type answer struct {
		Job     jobs.Job
		Started bool
	}
	first := decode[answer](t, s.headroom("calendar", "sync", "Bob@example.com", "--json"))
	if !first.Started || first.Job.ID != "calendar:bob@example.com" || first.Job.State != jobs.Queued || first.Job.Kind != jobs.CalendarSync {
		t.Errorf("calendar sync --json = %+v", first)
	}
	if r := s.headroom("calendar", "sync", "bob@example.com"); r.code != 0 || r.stdout != "under way already, and to be followed by another: calendar:bob@example.com\n" {
		t.Errorf("calendar sync while one is under way = %+v", r)
	}
	if r := s.headroom("backfill", "list", "--json"); strings.Contains(r.stdout, "calendar:") {
		t.Errorf("backfill list shows syncs of calendars: %s", r.stdout)
	}
	for _, row := range []struct{ verb, state string }{{"pause", "paused"}, {"resume", "queued"}, {"cancel", "cancelled"}} {
		if r := s.headroom("backfill", row.verb, "calendar:bob@example.com", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"state":"`+row.state+`"`) {
			t.Errorf("%s = %+v", row.verb, r)
		}
		if row.verb == "pause" {
			s.headroom("calendar", "sync", "bob@example.com").fails(t, 1, "is paused; resume it with")
		}
	}
}
