package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func TestSyncIsAskedFor(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("sync", "ann@example.com").fails(t, 1, "unknown account ann@example.com; add it with")
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("sync", "ann@example.com").fails(t, 1, "start it with: headroom backfill start ann@example.com")
	s.headroom("sync").fails(t, 2, "usage: headroom sync ACCOUNT")

	pinned(t, s)
	type answer struct {
		Job     jobs.Job
		Started bool
	}
	first := decode[answer](t, s.headroom("sync", "Ann@example.com", "--json"))
	if !first.Started || first.Job.ID != "sync:ann@example.com" || first.Job.State != jobs.Queued || first.Job.Kind != jobs.MailSync {
		t.Errorf("sync --json = %+v", first)
	}
	if r := s.headroom("sync", "ann@example.com"); r.code != 0 || r.stdout != "under way already, and to be followed by another: sync:ann@example.com\n" {
		t.Errorf("sync while one is under way = %+v", r)
	}
	if r := s.headroom("backfill", "show", "sync:ann@example.com"); r.code != 0 || !strings.Contains(r.stdout, "history read up to") {
		t.Errorf("show of a sync = %+v", r)
	}
	s.headroom("schedule", "run", "reconciliation", "--account", "ann@example.com")
	if r := s.headroom("backfill", "show", "sync:ann@example.com"); !strings.Contains(r.stdout, "it was asked for") {
		t.Errorf("show of a sync that is to read the mailbox as a whole = %+v, want why", r)
	}
	if r := s.headroom("backfill", "show", "sync:ann@example.com", "--json"); !strings.Contains(r.stdout, `"reconcile_reason":"asked"`) {
		t.Errorf("show --json = %+v, want the cursor", r)
	}
	if r := s.headroom("backfill", "list", "--json"); strings.Contains(r.stdout, "sync:") {
		t.Errorf("backfill list shows live syncs: %s", r.stdout)
	}
	for _, row := range []struct{ verb, state string }{{"pause", "paused"}, {"resume", "queued"}, {"cancel", "cancelled"}} {
		if r := s.headroom("backfill", row.verb, "sync:ann@example.com", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"state":"`+row.state+`"`) {
			t.Errorf("%s = %+v", row.verb, r)
		}
		if row.verb == "pause" {
			s.headroom("sync", "ann@example.com").fails(t, 1, "is paused; resume it with")
		}
	}
	if again := decode[answer](t, s.headroom("sync", "ann@example.com", "--json")); !again.Started || again.Job.State != jobs.Queued {
		t.Errorf("sync after it was cancelled = %+v", again)
	}
}

// pinned begins a backfill, as a worker would.
func pinned(t *testing.T, s site) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.dir + "/data/headroom.db", Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	job, _, err := db.StartBackfill(t.Context(), "ann@example.com", jobs.Filter{})
	if err == nil {
		job, err = db.Claim(t.Context(), job.Ref(), 1<<40)
	}
	if err == nil {
		err = db.SaveProfile(t.Context(), job.Ref(), jobs.Profile{HistoryID: 7})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchingAPausedSyncEnds(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("account", "add", "cal@example.com", "--project", "other")
	pinned(t, s)
	for _, row := range []struct{ job, args string }{
		{"sync:ann@example.com", "sync ann@example.com --watch"},
		{"calendar:cal@example.com", "calendar sync cal@example.com --watch"},
	} {
		p := start(t, append(strings.Fields(row.args), "--config", s.file)...)
		for { // it was asked for
			if r := s.headroom("backfill", "pause", row.job); r.code == 0 {
				break
			}
			if t.Context().Err() != nil {
				t.FailNow()
			}
		}
		if code := p.wait(); code != exitFailed {
			t.Errorf("%s = %d, want 1", row.args, code)
		}
		if _, stderr := p.out(); !strings.Contains(stderr, row.job+" is paused, and what was asked for waits; resume it with: headroom backfill resume "+row.job) {
			t.Errorf("%s says %q", row.args, stderr)
		}
	}
}

// A sync that waits says what for, once for each reason.
func TestAWatchedSyncTellsWhatItWaitsFor(t *testing.T) {
	var out bytes.Buffer
	waits := syncWaits{out: &out}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, j := range []jobs.Job{
		{ID: "sync:a@b.c", State: jobs.Queued},
		{ID: "sync:a@b.c", State: jobs.Waiting, WaitingFor: "user-minute", WaitUntil: at},
		{ID: "sync:a@b.c", State: jobs.Waiting, WaitingFor: "user-minute", WaitUntil: at.Add(time.Second)},
		{ID: "sync:a@b.c", State: jobs.Running},
		{ID: "sync:a@b.c", State: jobs.Waiting, WaitingFor: "project-minute\x1b[2J", WaitUntil: at},
	} {
		waits.tell(j)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || lines[0] != "sync:a@b.c waits for user-minute until "+term.Time(at) ||
		!strings.HasPrefix(lines[1], "sync:a@b.c waits for project-minute") || strings.Contains(lines[1], "\x1b") {
		t.Errorf("told %q", lines)
	}
}
