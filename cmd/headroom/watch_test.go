package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// worked is a site with one account, whose backfill the test works on in the
// worker's place.
type worked struct {
	site
	store *sqlite.Store
	ref   jobs.TaskRef
}

func newWorked(t *testing.T) worked {
	t.Helper()
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	if r := s.headroom("backfill", "start", "ann@example.com"); r.code != 0 {
		t.Fatalf("backfill start = %+v", r)
	}
	opened, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(s.dir, "data", "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	w := worked{site: s, store: opened, ref: jobs.TaskRef{Job: jobs.BackfillID("ann@example.com"), Epoch: 1}}
	w.do(opened.Claim(t.Context(), w.ref, time.Minute))
	return w
}

func (w worked) do(_ jobs.Job, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// list lists two messages, one of which is gone.
func (w worked) list() {
	w.t.Helper()
	w.do(w.store.AddListed(w.t.Context(), w.ref, jobs.Page{IDs: []string{"a", "b"}}))
	w.do(w.store.Commit(w.t.Context(), w.ref, []jobs.Result{{ID: "a", Outcome: jobs.ItemGone}}))
}

// rest deals with the other.
func (w worked) rest() {
	w.t.Helper()
	w.do(w.store.Commit(w.t.Context(), w.ref, []jobs.Result{{ID: "b", Outcome: jobs.ItemGone}}))
}

func (w worked) finish(state jobs.State, why string) {
	w.t.Helper()
	w.do(w.store.Finish(w.t.Context(), w.ref, jobs.Finish{State: state, Error: why}))
}

func TestWatchTellsOfEveryChangeAndEndsWithTheJob(t *testing.T) {
	w := newWorked(t)
	p := start(t, "backfill", "watch", "--config", w.file)
	p.line("ann@example.com 0 of ?, running")
	w.list()
	p.line("ann@example.com 1 of 2, running")
	w.do(w.store.Park(t.Context(), w.ref, jobs.Park{For: "user-minute", Until: time.Now().Add(time.Hour), Refused: true}))
	p.line("1 of 2, waiting for user-minute until ")
	w.do(w.store.Claim(t.Context(), w.ref, time.Minute))
	w.rest()
	w.finish(jobs.Completed, "")
	p.line("completed")
	if code := p.wait(); code != 0 {
		_, stderr := p.out()
		t.Errorf("exit code = %d: %s", code, stderr)
	}
	if r := w.headroom("backfill", "watch"); r.code != 0 || !strings.Contains(r.stderr, "no backfill is under way") {
		t.Errorf("watch of nothing = %+v", r)
	}
}

func TestWatchFailsWithItsJob(t *testing.T) {
	for state, next := range map[jobs.State]string{
		jobs.Failed:  "start it again with: headroom backfill start ann@example.com",
		jobs.Blocked: "when the account has acted, resume it with: headroom backfill resume ann@example.com",
	} {
		t.Run(string(state), func(t *testing.T) {
			w := newWorked(t)
			w.finish(state, "the mailbox is switched off")
			r := w.headroom("backfill", "watch", "ann@example.com")
			want := "headroom: backfill:ann@example.com is " + string(state) + ": the mailbox is switched off; " + next + "\n"
			if r.code != 1 || r.stderr != want {
				t.Errorf("watch = %+v, want code 1 and %q", r, want)
			}
			if got := decode[jobs.Job](t, w.headroom("backfill", "show", "ann@example.com", "--json")); got.State != state {
				t.Errorf("show = %+v", got)
			}
		})
	}
}

func TestWatchAsJSON(t *testing.T) {
	w := newWorked(t)
	w.list()
	w.rest()
	w.finish(jobs.CompletedWithFailures, "")
	r := w.headroom("backfill", "watch", "ann@example.com", "ANN@example.com", "--json")
	var got struct {
		jobs.Job
		Done       int64    `json:"done"`
		ETASeconds *float64 `json:"eta_seconds"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v in %q, want one object", err, r.stdout)
	}
	if r.code != 0 || got.Done != 2 || got.State != jobs.CompletedWithFailures || got.ETASeconds != nil {
		t.Errorf("watch --json = %d, %+v", r.code, got)
	}
}

func TestAListingThatIsFarTooShortIsPointedOut(t *testing.T) {
	w := newWorked(t)
	if err := w.store.SaveProfile(t.Context(), w.ref, jobs.Profile{HistoryID: 7, Messages: 200}); err != nil {
		t.Fatal(err)
	}
	w.list()
	w.rest()
	w.finish(jobs.Completed, "")
	want := "Google listed 2 messages, its profile promised 200; if the mailbox is not that empty, start the backfill again"
	for _, command := range []string{"show", "watch"} {
		if r := w.headroom("backfill", command, "ann@example.com"); r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("%s = %+v, want %q", command, r, want)
		}
	}
}

func TestWatchThatIsInterruptedSaysSo(t *testing.T) {
	w := newWorked(t)
	p := start(t, "backfill", "watch", "--config", w.file)
	p.line("running")
	if code := p.stop(); code != 130 {
		t.Errorf("exit code = %d, want 130", code)
	}
	if _, stderr := p.out(); stderr != "headroom: stopped watching; the backfill goes on by itself\n" {
		t.Errorf("stderr = %q", stderr)
	}
}

func TestWaitingSaysForWhat(t *testing.T) {
	j := jobs.Job{State: jobs.Waiting, WaitingFor: "user-minute", WaitUntil: time.Date(2026, 1, 1, 12, 0, 5, 0, time.Local)}
	want := "user-minute until " + j.WaitUntil.Format("2006-01-02 15:04:05 -07:00")
	if got := waiting(j); got != want {
		t.Errorf("Waiting = %q, want %q", got, want)
	}
	j.State = jobs.Running
	if got := waiting(j); got != "" {
		t.Errorf("Waiting of a running job = %q, want nothing", got)
	}
}
