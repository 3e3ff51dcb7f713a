package main

import (
	"strings"
	"testing"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

func TestWatchesAreListed(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1")
	s.headroom("push", "list").fails(t, 1, "nothing has been stored yet")
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("push", "list", "bob@example.com").fails(t, 1, "unknown account bob@example.com")
	if r := s.headroom("push", "list", "--json"); r.code != 0 || r.stdout != "[]\n" {
		t.Errorf("push list --json = %+v, want none", r)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.dir + "/data/headroom.db", Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := db.StartCalendarSync(t.Context(), "ann@example.com")
	if err == nil {
		job, err = db.Claim(t.Context(), job.Ref(), time.Hour)
	}
	if err == nil {
		err = db.Renewed(t.Context(), job.Ref(), jobs.WatchKey{Kind: jobs.WatchMail}, 7*24*time.Hour, 24*time.Hour)
	}
	if err == nil {
		err = db.RenewalFailed(t.Context(), job.Ref(), jobs.WatchKey{Kind: jobs.WatchCalendar, Calendar: "team"}, "watch: HTTP 403", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got := decode[[]jobs.Watch](t, s.headroom("push", "list", "Ann@example.com", "--json"))
	if len(got) != 2 || got[0].Calendar != "team" || got[0].Failures != 1 || got[0].NextTry.IsZero() || got[0].LastError != "watch: HTTP 403" ||
		got[1].State != jobs.WatchActive || got[1].RenewAt.Sub(got[1].RenewedAt) != 24*time.Hour {
		t.Errorf("push list --json = %+v", got)
	}
	r := s.headroom("push", "list")
	lines := strings.Split(r.stdout, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "ACCOUNT ") || !strings.Contains(lines[1], " team ") || !strings.HasSuffix(lines[2], " 0") {
		t.Errorf("push list = %+v", r)
	}
}
