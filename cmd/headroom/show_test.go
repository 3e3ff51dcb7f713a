package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/config"
	"headroom/internal/control"
	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
)

// spender is a process of the site that spends quota, with a journal of its own.
type spender struct {
	site
	ledger  *quota.Ledger
	journal *quota.Journal
}

func newSpender(t *testing.T, s site) spender {
	t.Helper()
	cfg, err := config.Load(config.Options{Path: s.file})
	if err != nil {
		t.Fatal(err)
	}
	projects, err := control.Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: realRedis.Addr}))
	t.Cleanup(func() { rdb.Close() })
	p := spender{site: s, journal: quota.NewJournal(quota.JournalOptions{Process: "host/1"})}
	p.ledger, err = quota.NewLedger(quota.Options{Redis: rdb, Projects: projects, KeyPrefix: cfg.Redis.LedgerPrefix, Fresh: true, Journal: p.journal})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spend takes units, and returns what they were charged as, or why they were not.
func (p spender) spend(user string, lane quota.Lane, units int64) (quota.Charge, *quota.DeniedError) {
	p.t.Helper()
	d, err := p.ledger.Take(p.t.Context(), quota.Caller{Project: "main", User: user, Lane: lane, MaxWait: time.Hour}, "gmail", units)
	denied, ok := errors.AsType[*quota.DeniedError](err)
	if err != nil && !ok {
		p.t.Fatal(err)
	}
	return d.Charge, denied
}

// flush writes the journal, as at the end of a process.
func (p spender) flush() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	cancel()
	if err := p.journal.Run(ctx); err != nil {
		p.t.Fatal(err)
	}
}

// has checks that a command printed all of some parts.
func (r result) has(t *testing.T, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("exit code %d, want %q in:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}

func TestQuotaShowOfAnAccount(t *testing.T) {
	w := newWorked(t)
	p := newSpender(t, w.site)
	if _, denied := p.spend("ann@example.com", quota.Backfill, 1200); denied != nil {
		t.Fatal(denied)
	}
	p.spend("ann@example.com", quota.Interactive, 3000)
	if _, denied := p.spend("ann@example.com", quota.Backfill, 1000); denied == nil {
		t.Fatal("backfill was let in above its ceiling")
	}
	p.flush()
	p.spend("ann@example.com", quota.Interactive, 60) // not yet in the journal
	w.do(w.store.Park(t.Context(), w.ref, jobs.Park{For: "user-minute (ceiling)", Until: time.Now().Add(time.Hour), Refused: true}))
	r := w.headroom("quota", "show", "ANN@example.com")
	r.has(t, "ann@example.com in project main, ", "\ngmail (gmail-2026-05)\n",
		"  user-minute     [iiiiiiiiiiiiiiiiiiiiiiiiibbbbbbbbbb?....-----+++++] 4,260 of 6,000 used\n",
		"    spent by interactive 3,000, sync 0, backfill 1,200, unknown lane 60\n",
		"    backfill     540 left    to its ceiling of 4,800 (80 %)   mode default\n",
		"    interactive  1,740 left  to its ceiling of 6,000 (100 %)  mode default\n",
		"  project-minute  [", "] 4,260 of 1,200,000 used\n",
		"  cooldown     none\n", "  in flight    0 of 10 (interactive), 8 (sync), 7 (backfill)\n",
		"  bytes, 24 h  0 B of ",
		"\nwaiting\n  backfill:ann@example.com  ", "for user-minute (ceiling)  ", " (in 1h0m0s)\n",
		"backfill, calls in place in host/1", "for user-minute of gmail (ceiling)", "refused once lately, waits of up to ",
		"\ni interactive  s sync  b backfill  ? unknown lane  . free to all  - not to backfill  + to interactive only  x to nobody\n")
	if strings.Contains(r.stdout, "\x1b") || strings.Contains(r.stdout, "set live") {
		t.Errorf("no terminal and no live settings, but:\n%s", r.stdout)
	}

	type window struct {
		Limit                string
		Units, Used, Unknown int64
		Spent                map[string]int64
		Lanes                []struct {
			Lane          string
			Ceiling, Left int64
		}
	}
	got := decode[struct {
		Account, Project string
		APIs             []struct {
			API     string
			Windows []window
			Waiting []struct {
				Lane, Limit string
				Waits       bool
				WaitSeconds float64 `json:"wait_seconds"`
			}
		}
		Jobs []struct{ Account, For string }
	}](t, w.headroom("quota", "show", "ann@example.com", "--json"))
	u := got.APIs[0].Windows[0]
	if got.Account != "ann@example.com" || u.Limit != price.UserMinute || u.Used != 4260 || u.Spent["backfill"] != 1200 || u.Unknown != 60 || u.Lanes[2].Left != 540 {
		t.Errorf("--json = %+v", got)
	}
	if n := got.APIs[0].Waiting; len(n) != 1 || n[0].Lane != "backfill" || !n[0].Waits || n[0].WaitSeconds < 50 {
		t.Errorf("waiting = %+v", n)
	}
	if len(got.Jobs) != 1 || got.Jobs[0].For != "user-minute (ceiling)" {
		t.Errorf("jobs = %+v", got.Jobs)
	}
}

func TestQuotaShowAfterGoogleRefused(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	p := newSpender(t, s)
	charge, _ := p.spend("ann@example.com", quota.Interactive, 100)
	if err := p.ledger.Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 65 * time.Second}); err != nil {
		t.Fatal(err)
	}
	p.flush()
	s.headroom("quota", "show", "ann@example.com").has(t,
		"Google refused: the account is closed to every lane until ", " (in 1m", "Google refused: the account may use ", " of its ceilings, recovering")
	s.headroom("quota", "explain", "ann@example.com").has(t,
		"  gmail: Google refused: the account is closed to every lane until ", "  gmail: nobody may go on before that\n",
		" gmail interactive: admitted once, 100 units\n", " gmail interactive: Google refused once: user, rateLimitExceeded; closed until ")
	// Its project is open to others.
	s.headroom("quota", "show", "bob@example.com", "--project", "main").has(t, "cooldown     none\n")

	// What the refusal said, and what it named if that is not all of Google.
	charge, _ = p.spend("cid@example.com", quota.Interactive, 100)
	sending := quota.Refusal{Scope: quota.ScopeBandwidth, Feature: "mail sending", Reason: "rateLimitExceeded",
		Words: "User-rate limit exceeded. Retry after later (Mail sending)", Wait: time.Hour}
	for _, r := range []quota.Refusal{sending, {Scope: quota.ScopeDay, Reason: "dailyLimitExceeded", Words: "Daily Limit Exceeded", Wait: time.Hour}} {
		if err := p.ledger.Answered(t.Context(), charge, r); err != nil {
			t.Fatal(err)
		}
	}
	p.flush()
	s.headroom("quota", "show", "cid@example.com", "--project", "main").has(t,
		"Google refused: the project is closed to every lane until ", `, by Google's limit of the project's day (dailyLimitExceeded: "Daily Limit Exceeded")`,
		"Google refused: mail sending is closed to the account until ", `(rateLimitExceeded: "User-rate limit exceeded. Retry after later (Mail sending)")`)
	s.headroom("quota", "explain", "cid@example.com", "--project", "main").has(t,
		`Google refused once: day, dailyLimitExceeded: "Daily Limit Exceeded"; closed until `, `(Mail sending)"; mail sending closed until `)
	s.headroom("quota", "show", "main", "--json").has(t, `"words":"Daily Limit Exceeded"`)
}

func TestQuotaShowOfAProject(t *testing.T) {
	w := newWorked(t)
	p := newSpender(t, w.site)
	p.spend("bob@example.com", quota.Sync, 100)
	p.spend("ann@example.com", quota.Interactive, 3000)
	p.flush()
	live := quota.Live{Revision: 1, Mode: quota.ModeGuaranteed, Changes: []quota.Change{
		{Lane: quota.Backfill, Key: quota.KeyCeiling, Value: 0.7},
		{User: "bob@example.com", Lane: quota.Sync, Key: quota.KeyCeiling, Value: 0.3},
	}}
	if _, err := p.ledger.Publish(t.Context(), "main", "gmail", live); err != nil {
		t.Fatal(err)
	}
	w.do(w.store.Park(t.Context(), w.ref, jobs.Park{For: "project-minute (pace)", Until: time.Now().Add(time.Minute), Refused: true}))
	r := w.headroom("quota", "show", "main")
	r.has(t, "project main, ", "    spent by interactive 3,000, sync 100, backfill 0\n", "] 3,100 of 1,200,000 used\n",
		"set live  mode=guaranteed, backfill.ceiling=0.7, 1 account(s) with settings of their own (revision 1)\n",
		"accounts  2 in the last minute; most by ann@example.com 3,000, bob@example.com 100\n",
		"to its ceiling of 840,000 (70 %)     set live\n", "to its ceiling of 720,000 (60 %)     mode guaranteed\n",
		"  backfill:ann@example.com  for project-minute (pace)  until ")
	if strings.Contains(r.stdout, price.UserMinute) {
		t.Errorf("a project has no windows of a user:\n%s", r.stdout)
	}
	w.headroom("quota", "show", "bob@example.com", "--project", "main").has(t,
		"to its ceiling of 1,800 (30 %)   set live for this account\n", "sync.ceiling=0.3 for bob@example.com (revision 1)\n")
}

func TestQuotaShowWatches(t *testing.T) {
	s := newSite(t, realRedis.URL())
	r := s.headroom("quota", "show", "main", "--watch", "--for", "1500ms", "--json")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 0 || len(lines) != 2 {
		t.Fatalf("%d lines, want two objects: %+v", len(lines), r)
	}
	for _, line := range lines {
		var v struct{ Project string }
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Project != "main" {
			t.Errorf("%v in %q", err, line)
		}
	}
	p := start(t, "quota", "show", "main", "--watch", "--config", s.file)
	p.line("project main, ")
	if code := p.stop(); code != 0 {
		_, stderr := p.out()
		t.Errorf("interrupted: exit code %d: %s", code, stderr)
	}
}

func TestQuotaExplain(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	p := newSpender(t, s)
	p.spend("ann@example.com", quota.Interactive, 4700)
	for range 3 {
		p.spend("ann@example.com", quota.Backfill, 200)
	}
	s.headroom("quota", "explain", "ann@example.com").has(t, "\n\nno decision is known of\n")
	p.flush()
	r := s.headroom("quota", "explain", "ann@example.com")
	r.has(t, "  gmail: open; units left now: interactive 1,300 (user-minute), sync 700 (user-minute), backfill 100 (user-minute)\n",
		" gmail interactive: admitted once, 4,700 units\n",
		" gmail backfill: refused 3 times within a second by the ceiling of user-minute (4,700 of 4,800 used), longest wait 1m")
	if r := s.headroom("quota", "explain", "ann@example.com", "--last", "1"); strings.Count(r.stdout, " gmail ") != 1 {
		t.Errorf("--last 1:\n%s", r.stdout)
	}
	got := decode[struct {
		Now       []string
		Decisions []struct {
			Text     string
			Decision struct {
				Kind, Lane, Limit, Bound string
				Calls, Used              int64
			}
		}
	}](t, s.headroom("quota", "explain", "ann@example.com", "--json"))
	if len(got.Decisions) != 2 || len(got.Now) != 1 {
		t.Fatalf("--json = %+v", got)
	}
	for _, d := range got.Decisions {
		if d.Decision.Kind == "refused" && (d.Decision.Calls != 3 || d.Decision.Bound != "ceiling" || !strings.Contains(d.Text, " +00:00 gmail backfill: refused 3 times")) {
			t.Errorf("refusal = %+v", d)
		}
	}
}

func TestQuotaShowUsage(t *testing.T) {
	s := newSite(t, realRedis.URL())
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"show", "ann@example.com"}, "unknown account ann@example.com; add it with: headroom account add ann@example.com --project main"},
		{[]string{"show", "mian"}, "unknown project mian, the settings name main, other"},
		{[]string{"show", "ann@example.com", "--project", "mian"}, "unknown project mian"},
		{[]string{"show", "main", "--project", "other"}, "main is no e-mail address; --project goes with one"},
		{[]string{"show", "main", "--for", "1s"}, "--for 1s says how long to --watch"},
		{[]string{"show"}, "usage: headroom quota show ACCOUNT|PROJECT"},
		{[]string{"explain", "main"}, `"main" is no account; for a project run: headroom quota show main`},
		{[]string{"explain", "ann@example.com", "--last", "0"}, "--last 0 is not at least 1"},
	} {
		code := 2
		if strings.HasPrefix(row.want, "unknown account") {
			code = 1
		}
		s.headroom(append([]string{"quota"}, row.args...)...).fails(t, code, row.want)
	}
	if s.stored() {
		t.Error("a look has left a store behind")
	}
	s.headroom("quota", "show", "main", "--set", "redis.url=redis://127.0.0.1:1").fails(t, 1, "no Redis at redis://127.0.0.1:1: connection refused")
}

func TestQuotaShowOnANewRedis(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("quota", "show", "main").has(t,
		"  project-minute  [+++++xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx] 0 of 1,200,000 used\n",
		"    interactive  120,000 left  to its ceiling of 120,000 (10 %)  Redis lost its data: what the background's ceilings leave, less what was spent since\n",
		"    backfill     0 left        to its ceiling of 0 (0 %)", "Redis is new or lost its data; sync and backfill hold until ", "or as long from their first call if there was none yet", "\nwaiting\n  nobody\n")
	s.headroom("quota", "explain", "ann@example.com", "--project", "main").has(t,
		"  gmail: Redis is new or lost its data, so sync and backfill hold until ", "; interactive goes on within what their ceilings leave: 600 units (user-minute)\n")
	// What is shown is what fits, to the unit.
	p := newSpender(t, s)
	if _, denied := p.spend("ann@example.com", quota.Interactive, 585); denied != nil {
		t.Fatal(denied)
	}
	s.headroom("quota", "show", "ann@example.com", "--project", "main").has(t, "    interactive  15 left  to its ceiling of 600 (10 %)")
	s.headroom("quota", "explain", "ann@example.com", "--project", "main").has(t, "within what their ceilings leave: 15 units (user-minute)\n")
	if _, denied := p.spend("ann@example.com", quota.Interactive, 16); denied == nil || denied.Bound != quota.BoundUnknown {
		t.Errorf("16 units where 15 fit: %v", denied)
	}
	if _, denied := p.spend("ann@example.com", quota.Interactive, 15); denied != nil {
		t.Errorf("15 units where 15 fit: %v", denied)
	}
	s.headroom("quota", "show", "ann@example.com", "--project", "main").has(t, "    interactive  0 left  to its ceiling of 600 (10 %)")
}

// A late context has a deadline that is past, and does not know it yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// A look that times out at the end of --for is the end, and no fault of Redis'.
func TestWatchingIsOverAtItsDeadline(t *testing.T) {
	if !over(late{context.Background()}) {
		t.Error("not over although the deadline is past")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	if over(ctx) || over(context.Background()) {
		t.Error("over before the deadline")
	}
	if cancel(); !over(ctx) {
		t.Error("not over although it was cancelled")
	}
}
