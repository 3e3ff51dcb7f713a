package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"headroom/internal/control"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const scheduleSettings = `
schedules:
  calendar-sync:
    tenants: {acme: {spec: 30 2 * * *, zone: America/New_York, spread: 0s}}
    accounts: {bob@example.com: {pause: true}}
`

// scheduled is a site with ann and bob, whose tenant is their domain, and cyd of
// acme. Ann's mailbox is known, and its sync was due an hour ago.
func scheduled(t *testing.T) site {
	t.Helper()
	s := newSite(t, "redis://127.0.0.1:1") // schedules need no Redis
	s.headroom("schedule", "list").fails(t, 1, "add an account first")
	text, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(s.file, append(text, scheduleSettings...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("account", "add", "bob@example.com", "--project", "main")
	s.headroom("account", "add", "cyd@example.com", "--project", "main", "--tenant", "acme")
	pinned(t, s)
	withDB(t, s, func(db *sqlite.Store) error {
		return db.InitSlots(t.Context(), []jobs.Slot{{Schedule: jobs.ScheduleMail, Account: "ann@example.com", Spec: "@every 5m0s", Slot: time.Now().Add(-time.Hour)}})
	})
	return s
}

func withDB(t *testing.T, s site, use func(*sqlite.Store) error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.dir + "/data/headroom.db", Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := use(db); err != nil {
		t.Fatal(err)
	}
}

// line finds what holds for the accounts with somebody's settings.
func line(t *testing.T, lines []control.ScheduleLine, schedule jobs.Schedule, of string) control.ScheduleLine {
	t.Helper()
	for _, l := range lines {
		if l.Schedule == schedule && l.SettingsOf == of {
			return l
		}
	}
	t.Fatalf("no line of %s by the settings of %s: %+v", schedule, of, lines)
	return control.ScheduleLine{}
}

func TestSchedulesAreListed(t *testing.T) {
	s := scheduled(t)
	lines := decode[[]control.ScheduleLine](t, s.headroom("schedule", "list", "--json"))
	if len(lines) != 6 { // of calendars three, of the others one
		t.Errorf("%d lines, want 6: %+v", len(lines), lines)
	}
	mail := line(t, lines, jobs.ScheduleMail, "defaults")
	if mail.Accounts != 3 || mail.Spec != "@every 5m0s" || mail.Zone != "UTC" || mail.LagSeconds < 50*60 || mail.LagSeconds > 61*60 || mail.Results["never"] != 3 || mail.Next.IsZero() {
		t.Errorf("mail: %+v", mail)
	}
	if acme := line(t, lines, jobs.ScheduleCalendar, "tenant acme"); acme.Accounts != 1 || acme.Zone != "America/New_York" || acme.LagSeconds != 0 {
		t.Errorf("calendars of acme: %+v", acme)
	}
	if bob := line(t, lines, jobs.ScheduleCalendar, "account bob@example.com"); bob.Paused != 1 || bob.PausedBy[0] != "settings" || !bob.Next.IsZero() {
		t.Errorf("bob's calendars: %+v", bob)
	}
	if r := s.headroom("schedule", "list", "--tenant", "acme"); r.code != 0 || strings.Count(r.stdout, "\n") != 5 || !strings.Contains(r.stdout, "30 2 * * *") {
		t.Errorf("list of a tenant = %+v", r)
	}
	s.headroom("schedule", "list", "--account", "eve@example.com").fails(t, 1, "unknown account eve@example.com; add it with")
	s.headroom("schedule", "list", "--tenant", "evil").fails(t, 1, "unknown tenant evil, no account belongs to it; there are acme, example.com")
	s.headroom("schedule", "list", "--tenant", "acme", "--account", "ann@example.com").fails(t, 2, "name an --account or a --tenant, not both")
}

func TestTheLastResultIsThatOfTheWork(t *testing.T) {
	s := scheduled(t)
	result := func() map[string]int {
		t.Helper()
		return line(t, decode[[]control.ScheduleLine](t, s.headroom("schedule", "list", "--account", "ann@example.com", "--json")), jobs.ScheduleMail, "defaults").Results
	}
	if r := s.headroom("schedule", "run", "mail-sync", "--account", "Ann@example.com"); r.code != 0 || r.stdout != "asked for mail-sync of ann@example.com\n" {
		t.Errorf("run = %+v", r)
	}
	if got := result(); got["asked"] != 1 {
		t.Errorf("results %v, want what was asked for", got)
	}
	withDB(t, s, func(db *sqlite.Store) error {
		job, _, err := db.StartSync(t.Context(), "ann@example.com")
		if err == nil {
			job, err = db.Claim(t.Context(), job.Ref(), time.Minute)
		}
		if err == nil {
			if got := result(); got["running"] != 1 {
				t.Errorf("results %v, want a running sync", got)
			}
			_, err = db.Finish(t.Context(), job.Ref(), jobs.Finish{State: jobs.Failed, Error: "Google is away"})
		}
		return err
	})
	if got := result(); got["failed"] != 1 {
		t.Errorf("results %v, want the failed sync", got)
	}
	if r := s.headroom("schedule", "list", "--account", "ann@example.com"); !strings.Contains(r.stdout, "  failed  ") || !strings.Contains(r.stdout, "last error of mail-sync (settings of defaults): Google is away\n") {
		t.Errorf("list = %+v", r)
	}
	s.headroom("schedule", "run", "calendar-sync", "--account", "ann@example.com").fails(t, 1, "its calendars were never synced")
	s.headroom("schedule", "run", "tea").fails(t, 2, `no schedule "tea"; there are mail-sync, calendar-sync, watch-renewal, reconciliation`)
	if ran := decode[control.ScheduleRun](t, s.headroom("schedule", "run", "mail-sync", "--json")); ran.Accounts != 3 || ran.Asked != 1 {
		t.Errorf("run for all = %+v", ran)
	}
}

// An error of Google's has a line of its own: in the table it would be hundreds of
// columns wide, and push the rest off the screen.
func TestErrorsStandBelowTheSchedules(t *testing.T) {
	var out bytes.Buffer
	err := printSchedules(&out, false, []control.ScheduleLine{
		{Schedule: "mail-sync", SettingsOf: "defaults", Results: map[string]int{"waiting": 1}, LastError: "history.list: connection refused"},
		{Schedule: "reconciliation", SettingsOf: "defaults", Results: map[string]int{"never": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || lines[3] != "last error of mail-sync (settings of defaults): history.list: connection refused" || strings.Contains(lines[1], "refused") {
		t.Errorf("schedule list = %q", lines)
	}
}

func TestSchedulesArePausedAndResumed(t *testing.T) {
	s := scheduled(t)
	for _, step := range []struct{ verb, flags, want string }{
		{"pause", "--tenant example.com", "paused mail-sync of tenant example.com\n"},
		{"pause", "--tenant example.com", "was paused already: mail-sync of tenant example.com\n"},
		{"pause", "--account Ann@example.com", "paused mail-sync of ann@example.com\n"},
		{"resume", "--account ann@example.com", "resumed mail-sync of ann@example.com\nstill paused by tenant example.com; resume it for the same, or see schedules.mail-sync.pause in the settings\n"},
		{"resume", "", "was not paused: mail-sync of all accounts\nstill paused by tenant example.com; resume it for the same, or see schedules.mail-sync.pause in the settings\n"},
	} {
		args := append([]string{"schedule", step.verb, "mail-sync"}, strings.Fields(step.flags)...)
		if r := s.headroom(args...); r.code != 0 || r.stdout != step.want {
			t.Errorf("%q = %+v, want %q", args, r, step.want)
		}
	}
	mail := line(t, decode[[]control.ScheduleLine](t, s.headroom("schedule", "list", "--json")), jobs.ScheduleMail, "defaults")
	if mail.Paused != 2 || mail.Accounts != 3 || mail.LagSeconds != 0 || mail.PausedBy[0] != "tenant example.com" {
		t.Errorf("mail: %+v", mail)
	}
	if done := decode[control.SchedulePausing](t, s.headroom("schedule", "resume", "mail-sync", "--tenant", "example.com", "--json")); !done.Changed || done.Paused {
		t.Errorf("resume = %+v", done)
	}
	s.headroom("schedule", "pause", "mail-sync", "--account", "eve@example.com").fails(t, 1, "unknown account eve@example.com")
	s.headroom("schedule", "resume", "mail-sync", "--tenant", "evil").fails(t, 1, "unknown tenant evil")
	s.headroom("schedule", "pause").fails(t, 2, "usage: headroom schedule pause SCHEDULE")
}

func TestTheNextRunsAreShown(t *testing.T) {
	s := scheduled(t)
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	runs := decode[[]control.ScheduledRun](t, s.headroom("schedule", "next", "calendar-sync", "--account", "cyd@example.com", "-n", "366", "--json"))
	if len(runs) != 366 {
		t.Fatalf("%d runs, want 366", len(runs))
	}
	offsets := map[string]bool{}
	for i, r := range runs {
		if i > 0 && r.Slot.In(zone).YearDay() == runs[i-1].Slot.In(zone).YearDay() {
			t.Errorf("two runs on one day: %s and %s", runs[i-1].Slot, r.Slot)
		}
		if !r.Due.Equal(r.Slot) || r.Paused {
			t.Errorf("run %+v, want no spread and no pause", r)
		}
		offsets[r.Slot.Format("-07:00")] = true
	}
	if !offsets["-05:00"] || !offsets["-04:00"] { // in a year the clock changes twice
		t.Errorf("the slots' zone has the offsets %v", offsets)
	}
	all := decode[[]control.ScheduledRun](t, s.headroom("schedule", "next", "--account", "ann@example.com", "--json"))
	seen := map[jobs.Schedule]int{}
	for i, r := range all {
		if seen[r.Schedule]++; i > 0 && r.Due.Before(all[i-1].Due) {
			t.Errorf("%s is due before %s", r.Due, all[i-1].Due)
		}
		if late := r.Due.Sub(r.Slot).Seconds(); late < 0 || late >= r.Spread || r.Spread == 0 {
			t.Errorf("run %+v, want it due within the spread", r)
		}
	}
	if len(all) != 10 || seen[jobs.ScheduleMail] < 6 || seen[jobs.ScheduleCalendar] < 2 {
		t.Errorf("runs of all schedules: %v", seen)
	}
	s.headroom("schedule", "pause", "mail-sync")
	if r := s.headroom("schedule", "next", "mail-sync", "-n", "1"); r.code != 0 || strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, "5m0s    yes") {
		t.Errorf("next of a paused one = %+v", r)
	}
	if r := s.headroom("schedule", "next", "mail-sync", "--set", "sync.interval=0s"); r.code != 0 || r.stdout != "none: the settings have no specification for mail-sync\n" {
		t.Errorf("next of none = %+v", r)
	}
	s.headroom("schedule", "next").fails(t, 2, "name a schedule or an --account")
	s.headroom("schedule", "next", "mail-sync", "-n", "0").fails(t, 2, "-n 0 is not from 1 to 1000")
}
