package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headroom/internal/control"
	"headroom/jobs"
)

func TestSteeringABackfillThatNobodyOwns(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("backfill", "pause", "ann@example.com").fails(t, 1, "no backfill of ann@example.com; start it with: headroom backfill start ann@example.com")
	s.headroom("backfill", "pause", "backfill:bob@example.com").fails(t, 1, "no backfill backfill:bob@example.com; headroom backfill list names all")
	s.headroom("backfill", "start", "ann@example.com")
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"pause", "ann@example.com"}, "paused backfill:ann@example.com; go on with: headroom backfill resume ann@example.com\n"},
		{[]string{"pause", "ann@example.com"}, "already so: paused backfill:ann@example.com"},
		{[]string{"start", "ann@example.com"}, "paused: backfill:ann@example.com\nresume it with: headroom backfill resume backfill:ann@example.com\n"},
		{[]string{"show", "ann@example.com"}, "paused"},
		{[]string{"list"}, "paused"},
		{[]string{"resume", "Ann@example.com"}, "resumed backfill:ann@example.com; follow it with: headroom backfill watch ann@example.com\n"},
		{[]string{"resume", "backfill:ann@example.com"}, "already so: resumed"},
		{[]string{"cancel", "ann@example.com"}, "cancelled backfill:ann@example.com; what was stored stays\n"},
		{[]string{"cancel", "ann@example.com"}, "already so: cancelled"},
	} {
		if r := s.headroom(append([]string{"backfill"}, row.args...)...); r.code != 0 || !strings.Contains(r.stdout, row.want) || r.stderr != "" {
			t.Errorf("%q = %+v, want %q", row.args, r, row.want)
		}
	}
	s.headroom("backfill", "resume", "ann@example.com").fails(t, 1, "cannot resume backfill:ann@example.com, which is cancelled; start it again")
	watchFails := func(want string) {
		t.Helper()
		if r := s.headroom("backfill", "watch", "ann@example.com"); r.code != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("watch = %+v, want %q", r, want)
		}
	}
	watchFails("is cancelled; start it again with: headroom backfill start ann@example.com")
	// Pause and cancel go through the store alone.
	s.headroom("backfill", "start", "ann@example.com")
	down := "redis.url=redis://127.0.0.1:1"
	got := decode[[]control.Steered](t, s.headroom("backfill", "pause", "ann@example.com", "--json", "--set", down))
	if len(got) != 1 || !got[0].Changed || got[0].Job.State != jobs.Paused {
		t.Errorf("pause --json without Redis = %+v", got)
	}
	s.headroom("backfill", "resume", "ann@example.com", "--set", down).fails(t, 1, "no Redis at redis://127.0.0.1:1")
	watchFails("is paused; resume it with: headroom backfill resume ann@example.com")
}

func TestSteeringABackfillAtWork(t *testing.T) {
	w := newWorked(t)
	if r := w.headroom("backfill", "pause", "ann@example.com"); r.code != 0 || !strings.Contains(r.stdout, "pausing backfill:ann@example.com: its worker makes no more calls within 5 s") {
		t.Errorf("pause = %+v", r)
	}
	if r := w.headroom("backfill", "show", "ann@example.com"); !strings.Contains(r.stdout, "running, being paused") {
		t.Errorf("show = %+v", r)
	}
	w.headroom("backfill", "cancel", "ann@example.com")
	w.headroom("backfill", "start", "ann@example.com").fails(t, 1, "it is being cancelled; start it again once it is")
	w.do(w.store.EndSlice(t.Context(), w.ref))
	if r := w.headroom("backfill", "list"); !strings.Contains(r.stdout, "cancelled") {
		t.Errorf("list = %+v", r)
	}
}

func TestBackfillsWithFilters(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	started := decode[control.Started](t, s.headroom("backfill", "start", "ann@example.com", "--json", "--after", "2025-01-01", "--zone", "Europe/Berlin",
		"--before", "2025-02-01T00:00:00Z", "--label", "B", "--label", "A", "--query", " from:bob ", "--spam-trash", "--max-size", "10MB",
		"--first", "100", "--format", "metadata-first"))
	want := jobs.Filter{After: time.Date(2024, 12, 31, 23, 0, 0, 0, time.UTC), Before: time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC),
		Labels: []string{"A", "B"}, Query: "from:bob", SpamTrash: true, MaxSize: 10_000_000, First: 100, Format: jobs.FormatMetadataFirst}
	if !started.Created || started.Job.ID != want.BackfillID("ann@example.com") || started.Job.ID == jobs.BackfillID("ann@example.com") {
		t.Errorf("started = %+v, want the backfill %s", started, want.BackfillID("ann@example.com"))
	}
	local := func(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05 -07:00") }
	text := "newest 100, from " + local(time.Date(2024, 12, 31, 23, 0, 0, 0, time.UTC)) + ", before " + local(time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC)) + `, label A, label B, query "from:bob", at most 9.5 MiB, with spam and trash, metadata-first`
	// The account's only backfill goes by its name.
	for _, args := range [][]string{{"show", "ann@example.com"}, {"list"}} {
		if r := s.headroom(append([]string{"backfill"}, args...)...); !strings.Contains(r.stdout, text) {
			t.Errorf("%q = %+v, want %q", args, r, text)
		}
	}
	second := decode[control.Started](t, s.headroom("backfill", "start", "ann@example.com", "--json", "--first", "5"))
	s.headroom("backfill", "show", "ann@example.com").fails(t, 1, "ann@example.com has 2 backfills, name one of them: "+started.Job.ID+", "+second.Job.ID)
	s.headroom("backfill", "cancel", second.Job.ID)
	// What an account's name stands for: all that can be.
	got := decode[[]control.Steered](t, s.headroom("backfill", "pause", "ann@example.com", "--json"))
	if len(got) != 1 || got[0].Job.ID != started.Job.ID {
		t.Errorf("pause of two, one of them cancelled = %+v, want the other", got)
	}
	if r := s.headroom("backfill", "start", "ann@example.com"); !strings.HasPrefix(r.stdout, "started backfill:ann@example.com\n") {
		t.Errorf("start without a filter = %+v", r)
	}
	if got := decode[jobs.Job](t, s.headroom("backfill", "show", "ann@example.com", "--json")); got.ID != jobs.BackfillID("ann@example.com") {
		t.Errorf("show shows %s, want the whole mailbox's", got.ID)
	}
	for _, row := range []struct {
		flag, value, want string
	}{
		{"--after", "January", "--after January is no time; give a day such as 2025-01-31"},
		{"--before", "2025-13-01", "--before 2025-13-01 is no time"},
		{"--zone", "Europe/Nowhere", "--zone Europe/Nowhere: no such time zone"},
		{"--max-size", "-1", "--max-size -1 is no size"},
		{"--max-size", "20EB", "--max-size 20EB is no size"},
		{"--first", "-1", "the number of messages is negative"},
		{"--format", "html", `unknown format "html"`},
		{"--label", "", "an empty label"},
	} {
		s.headroom("backfill", "start", "ann@example.com", row.flag, row.value).fails(t, 2, row.want)
	}
	s.headroom("backfill", "start", "ann@example.com", "--after", "2025-01-02", "--before", "2025-01-01").fails(t, 2, "is not before")
}

func TestFailuresAreListedExportedAndRetried(t *testing.T) {
	w := newWorked(t)
	failed := func(id string, class jobs.Class, reason string) jobs.Result {
		return jobs.Result{ID: id, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{Phase: "fetch", Class: class, Reason: reason}}
	}
	w.do(w.store.AddListed(t.Context(), w.ref, jobs.Page{IDs: []string{"a", "b", "c"}}))
	w.do(w.store.Commit(t.Context(), w.ref, []jobs.Result{failed("a", jobs.ClassTransient, "backendError"),
		failed("b", jobs.ClassTransient, "a, \"b\"\nc"), failed("c", jobs.ClassItem, "invalidArgument")}))
	w.finish(jobs.CompletedWithFailures, "")
	if r := w.headroom("backfill", "failures", "ann@example.com"); r.code != 0 || strings.Count(r.stdout, "given up") != 3 || !strings.Contains(r.stdout, "invalidArgument") {
		t.Errorf("failures = %+v", r)
	}
	if got := decode[[]jobs.Failure](t, w.headroom("backfill", "failures", "ann@example.com", "--json", "--class", "transient", "--reason", "backendError")); len(got) != 1 || got[0].ID != "a" || !got[0].GivenUp {
		t.Errorf("failures --json by class and reason = %+v", got)
	}
	if got := decode[[]jobs.Failure](t, w.headroom("backfill", "failures", "ann@example.com", "--json", "--class", "gone")); got == nil || len(got) != 0 {
		t.Errorf("failures of a class that there is not = %+v, want an empty list", got)
	}
	file := filepath.Join(w.dir, "failures.csv")
	w.headroom("backfill", "failures", "ann@example.com", "--csv", file)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"file": string(written), "stdout": w.headroom("backfill", "failures", "ann@example.com", "--csv", "-").stdout} {
		rows, err := csv.NewReader(bytes.NewReader([]byte(text))).ReadAll()
		if err != nil || len(rows) != 4 || rows[2][1] != "b" || rows[2][6] != "a, \"b\"\nc" || rows[0][1] != "id" {
			t.Errorf("CSV in %s = %q, %v", name, rows, err)
		}
	}
	w.headroom("backfill", "failures", "ann@example.com", "--csv", "-", "--json").fails(t, 2, "choose one")
	w.headroom("backfill", "failures", "ann@example.com", "--csv", w.dir+"/none/x.csv").fails(t, 1, "no such file or directory")

	got := decode[[]control.Retried](t, w.headroom("backfill", "retry-failed", "ann@example.com", "--id", "a", "--id", "c", "--class", "item", "--json"))
	if len(got) != 1 || got[0].Retried != 1 || got[0].Job.State != jobs.Queued || got[0].Job.Progress.Failed != 2 {
		t.Errorf("retry-failed --json = %+v", got)
	}
	if r := w.headroom("backfill", "show", "ann@example.com"); !strings.Contains(r.stdout, "c: to be tried again after 1 attempts") || !strings.Contains(r.stdout, "try these again with: headroom backfill retry-failed ann@example.com") {
		t.Errorf("show = %+v", r)
	}
	if r := w.headroom("backfill", "retry-failed", "ann@example.com"); r.code != 0 || !strings.HasPrefix(r.stdout, "2 messages of backfill:ann@example.com are tried again; follow it with") {
		t.Errorf("retry-failed = %+v", r)
	}
	if r := w.headroom("backfill", "retry-failed", "ann@example.com"); r.code != 0 || !strings.HasPrefix(r.stdout, "0 messages") {
		t.Errorf("retry-failed again = %+v", r)
	}
	w.headroom("backfill", "cancel", "ann@example.com")
	w.headroom("backfill", "retry-failed", "ann@example.com").fails(t, 1, "cannot retry failed items of backfill:ann@example.com, which is cancelled; start it again")
	w.headroom("backfill", "retry-failed", "ann@example.com", "--id", "").fails(t, 2, "an empty id")
}

// TestTwoProcessesStartOneBackfill: two commands, each with a store and a Redis
// connection of its own, at the same time.
func TestTwoProcessesStartOneBackfill(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	for _, args := range [][]string{nil, {"--first", "10"}} {
		args = append([]string{"backfill", "start", "ann@example.com", "--json", "--config", s.file}, args...)
		both := []*process{start(t, args...), start(t, args...)}
		var got [2]control.Started
		created := 0
		for i, p := range both {
			if code := p.wait(); code != 0 {
				_, stderr := p.out()
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			stdout, _ := p.out()
			if err := json.Unmarshal([]byte(stdout), &got[i]); err != nil {
				t.Fatal(err)
			}
			if got[i].Created {
				created++
			}
		}
		if created != 1 || got[0].Job.ID != got[1].Job.ID || got[0].Job.Epoch != got[1].Job.Epoch {
			t.Errorf("two starts = %+v, want one job, created once", got)
		}
	}
}

// TestSteeringAllBackfills chooses them by state, tenant and project.
func TestSteeringAllBackfills(t *testing.T) {
	s := newSite(t, realRedis.URL())
	for _, account := range []struct{ email, tenant string }{{"ann@example.com", "acme"}, {"bob@example.com", "acme"}, {"cyd@example.com", "other"}} {
		s.headroom("account", "add", account.email, "--project", "main", "--tenant", account.tenant)
	}
	for _, step := range []struct {
		args string
		want string
	}{
		{"start --all --tenant nobody", "no backfill was to be started\n"},
		{"start --all --state failed", "no backfill was to be started\n"},
		{"start --all --tenant acme", "started: backfill:ann@example.com\nstarted: backfill:bob@example.com\n2 backfills started\n"},
		{"start --all", "started: backfill:cyd@example.com\n1 backfill started\n"},
		{"start --all", "no backfill was to be started\n"},
		{"pause ann@example.com", "paused"},
		{"pause cyd@example.com", "paused"},
		{"resume --all --state blocked", "no backfill was to be resumed\n"},
		{"resume --all --tenant acme --project main", "resumed backfill:ann@example.com; follow it with: headroom backfill watch ann@example.com\n1 backfill resumed\n"},
		{"resume --all", "resumed backfill:cyd@example.com; follow it with: headroom backfill watch cyd@example.com\n1 backfill resumed\n"},
		{"cancel bob@example.com", "cancelled"},
		{"start --all --state cancelled --project other", "no backfill was to be started\n"},
		{"start --all --state cancelled", "started: backfill:bob@example.com\n1 backfill started\n"},
		{"retry --all", "no backfill was to be retried\n"},
		{"resume --all --json", "[]\n"},
	} {
		if r := s.headroom(append([]string{"backfill"}, strings.Fields(step.args)...)...); r.code != 0 || !strings.Contains(r.stdout, step.want) {
			t.Errorf("%s = %+v, want %q", step.args, r, step.want)
		}
	}
	s.headroom("backfill", "resume", "--all", "ann@example.com").fails(t, 2, "name none with it")
	s.headroom("backfill", "resume", "--state", "blocked").fails(t, 2, "give --all with them")
	s.headroom("backfill", "start", "--all", "--state", "blokked").fails(t, 2, "unknown state")

	// An account whose project was taken out of the settings keeps nobody from his own.
	s.headroom("account", "add", "al@example.com", "--project", "gone", "--set", "google.projects.gone.mode=default")
	s.headroom("account", "add", "dan@example.com", "--project", "main")
	r := s.headroom("backfill", "start", "--all")
	if r.code != 2 || r.stdout != "started: backfill:dan@example.com\n1 backfill started\n" ||
		!strings.Contains(r.stderr, "headroom: account al@example.com: unknown project gone") {
		t.Errorf("start --all beside an account that cannot = %+v", r)
	}
}
