package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"headroom/quota"
)

// setJSON is what the tests read of quota set --json.
type setJSON struct {
	Project, Account, Limit string
	APIs                    []struct {
		API      string
		Revision int
		Changed  bool
		Values   []struct {
			Key      string
			Old, New any
		}
		Closer []string
	}
	Unpublished string
}

// historyJSON is a row of quota history --json.
type historyJSON struct {
	API, Who, Change string
	Revision         uint32
	Live             quota.Live
}

func TestQuotaSetOfAProjectAndAnAccount(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")

	r := s.headroom("quota", "set", "main", "backfill.ceiling=0.7", "mode=adaptive")
	if want := "project main, gmail: revision 1\n  backfill.ceiling  0.8 -> 0.7\n  mode              default -> adaptive\n"; r.code != 0 || r.stdout != want || r.stderr != "" {
		t.Errorf("quota set main = %+v, want\n%s", r, want)
	}
	r = s.headroom("quota", "set", "main", "mode=adaptive", "backfill.ceiling=0.70")
	if want := "project main, gmail: set already, revision 1\n  mode              adaptive -> adaptive\n  backfill.ceiling  0.7 -> 0.7\n"; r.code != 0 || r.stdout != want {
		t.Errorf("the same again = %+v, want\n%s", r, want)
	}
	got := decode[setJSON](t, s.headroom("quota", "set", "Ann@Example.com", "backfill.ceiling=0.5", "--limit", "user-minute", "--json"))
	if a := got.APIs; got.Project != "main" || got.Account != "ann@example.com" || got.Limit != "user-minute" || len(a) != 1 ||
		a[0].Revision != 2 || !a[0].Changed || a[0].Values[0].Old != 0.7 || a[0].Values[0].New != 0.5 {
		t.Errorf("quota set of an account = %+v", got)
	}
	// What fits more closely stays, and the command says so.
	r = s.headroom("quota", "set", "main", "--unset", "backfill.ceiling", "sync.in_flight=4")
	if want := "  backfill.ceiling=0.5 of user-minute for ann@example.com stays: it counts before\n"; r.code != 0 || !strings.HasSuffix(r.stdout, want) ||
		!strings.Contains(r.stdout, "backfill.ceiling  0.7 -> 0.9\n") || !strings.Contains(r.stdout, "sync.in_flight    8 -> 4\n") {
		t.Errorf("quota set --unset = %+v", r)
	}

	var changes []string
	history := decode[[]historyJSON](t, s.headroom("quota", "history", "main", "--json"))
	for _, h := range history {
		changes = append(changes, h.Change)
		if h.API != "gmail" || !strings.Contains(h.Who, "@") || h.Revision != h.Live.Revision {
			t.Errorf("history has %+v", h)
		}
	}
	if want := []string{
		"backfill.ceiling=0.7 (was 0.8), mode=adaptive (was default)",
		"backfill.ceiling=0.5 of user-minute for ann@example.com (was 0.7)",
		"sync.in_flight=4 (was 8), backfill.ceiling unset (0.9, was 0.7)",
	}; !slices.Equal(changes, want) {
		t.Errorf("changes = %q, want %q", changes, want)
	}
	if own := decode[[]historyJSON](t, s.headroom("quota", "history", "ann@example.com", "--json")); len(own) != 1 || own[0].Revision != 2 {
		t.Errorf("the account's history = %+v, want revision 2 only", own)
	}
	if r := s.headroom("quota", "history", "main"); r.code != 0 || strings.Count(r.stdout, "\n") != 4 || !strings.HasPrefix(r.stdout, "AT ") {
		t.Errorf("history = %+v", r)
	}
	if r := s.headroom("quota", "history", "other"); r.stdout != "nothing was ever set for other\n" {
		t.Errorf("history without changes = %+v", r)
	}
}

// Project other has two price lists: a change is for those that have the limit.
func TestQuotaSetReachesTheAPIsThatItAppliesTo(t *testing.T) {
	s := newSite(t, realRedis.URL())
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "gmail calendar"},
		{[]string{"--limit", "user-minute"}, "gmail calendar"},
		{[]string{"--limit", quota.LimitUserBytes}, "gmail"},
		{[]string{"--api", "calendar"}, "calendar"},
		{[]string{"--prices", "gmail-2026-10"}, "gmail"},
	} {
		got := decode[setJSON](t, s.headroom(append([]string{"quota", "set", "other", "interactive.ceiling=0.9", "--json"}, row.args...)...))
		var apis []string
		for _, a := range got.APIs {
			apis = append(apis, a.API)
		}
		if strings.Join(apis, " ") != row.want {
			t.Errorf("%q is for %q, want %s", row.args, apis, row.want)
		}
	}
}

func TestQuotaSetReadsMinusZeroAsZero(t *testing.T) {
	s := newSite(t, realRedis.URL())
	if r := s.headroom("quota", "set", "main", "backfill.pace=-0"); r.code != 0 || !strings.HasSuffix(r.stdout, "backfill.pace  1.05 -> 0\n") {
		t.Errorf("quota set backfill.pace=-0 = %+v", r)
	}
}

func TestQuotaSetRefusesWhatCannotBe(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("quota", "set", "bob@example.com", "sync.ceiling=0.5").fails(t, 1,
		"unknown account bob@example.com; add it with: headroom account add bob@example.com --project main")
	s.headroom("quota", "set", "mian", "sync.ceiling=0.5").fails(t, 2, "unknown project mian, the settings name main, other; add google.projects.mian")
	if s.stored() {
		t.Error("an unknown project or account has left a store behind")
	}
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	for _, row := range []struct{ args, want string }{
		{"main", "nothing to set; usage: headroom quota set PROJECT|ACCOUNT KEY=VALUE..."},
		{"main backfill", `"backfill" is not of the form KEY=VALUE, such as backfill.ceiling=0.7`},
		{"main batch.ceiling=1", `unknown key "batch.ceiling"; there are mode, and for the lanes interactive, sync, backfill LANE.ceiling, LANE.floor`},
		{"main backfill.speed=1", `unknown key "backfill.speed"`},
		{"main mode=turbo", `unknown mode "turbo"; there are default, guaranteed, adaptive`},
		{"main backfill.ceiling=much", `backfill.ceiling: "much" is not a number`},
		{"main backfill.ceiling=70", "backfill.ceiling=70: ceiling 70 is not above 0 and up to 1"},
		{"main backfill.ceiling=nan", "ceiling NaN is not above 0"},
		{"main backfill.ceiling=0.5 backfill.ceiling=0.6", "backfill.ceiling is named twice"},
		{"main backfill.ceiling=0.5 --unset backfill.ceiling", "backfill.ceiling is named twice"},
		{"main --unset backfill.ceiling=0.5", "to unset backfill.ceiling, leave out its value"},
		{"main backfill.ceiling=1e-9", "backfill.ceiling 1e-09 of user-minute leaves 0 of 6000 units, less than one call costs (gmail.users.threads.get: 40); the least is 0.0067"},
		{"main backfill.ceiling=0.002", "leaves 12 of 6000 units, less than one call costs (gmail.users.threads.get: 40); the least is 0.0067"},
		{"ann@example.com sync.ceiling=0.002", "the least is 0.0067 (for ann@example.com)"},
		{"main backfill.pace=0.001", "backfill.pace 0.001 of user-minute lets less than one call through in its time"},
		{"main sync.floor=0.5", "only lane backfill has a floor"},
		{"main interactive.pace=1", "lane interactive has no pace"},
		{"main sync.in_flight=2.5", "in_flight 2.5 is not a number from 1 to 1000"},
		{"main sync.in_flight=3 --limit user-minute", "in_flight has no limit"},
		{"main mode=adaptive --limit user-minute", "a mode is for all limits; leave out --limit"},
		{"ann@example.com mode=adaptive", "a mode is for a whole project: headroom quota set main mode="},
		{"main sync.ceiling=0.5 --limit user-hour", `no limit "user-hour" here; there are project-minute, user-day-bytes, user-minute`},
		{"main sync.ceiling=0.5 --api calendar", "project main has no price list of calendar; it has gmail-2026-05 (gmail)"},
		{"main sync.ceiling=0.5 --prices gmail-legacy", "project main has no price list gmail-legacy; it has gmail-2026-05 (gmail)"},
		{"main sync.ceiling=0.5 --prices gmail-2026-05 --api gmail", "--prices names an API already; leave out --api"},
	} {
		s.headroom(append([]string{"quota", "set"}, strings.Fields(row.args)...)...).fails(t, 2, row.want)
	}
	for _, row := range []struct{ set, want string }{
		{"google.projects.main.lanes.backfill.ceiling=0.002", "google.projects.main: backfill.ceiling 0.002 of user-minute leaves 12 of 6000 units"},
		{"google.projects.main.limits.gmail-2026-05.user_minute=10", "google.projects.main: limit user-minute: 10 units are less than one call costs"},
		{"google.projects.main.costs.gmail-2026-05.gmail.users.messages.get=5000", "the least is 0.8334"},
		{"google.projects.main.budget.gmail-2026-05.daily_units=10", "google.projects.main: a day's budget of 10 units is less than one call costs"},
	} {
		if r := s.headroom("config", "check", "--set", row.set); r.code != 2 || !strings.Contains(r.stdout, row.want) {
			t.Errorf("config check of %s = %+v, want %q", row.set, r, row.want)
		}
	}
	s.headroom("quota", "history", "mian").fails(t, 2, "unknown project mian")
	if got := decode[[]historyJSON](t, s.headroom("quota", "history", "main", "--json")); len(got) != 0 {
		t.Errorf("what was refused has left %+v", got)
	}
}

func TestQuotaSetWithoutRedisIsRecorded(t *testing.T) {
	s := newSite(t, realRedis.URL())
	away := []string{"--set", "redis.url=redis://127.0.0.1:1"}
	r := s.headroom(append([]string{"quota", "set", "main", "backfill.ceiling=0.7", "--json"}, away...)...)
	if r.code != 0 || !strings.HasPrefix(r.stderr, "headroom: recorded, but not in force yet: no Redis at redis://127.0.0.1:1: connection refused; ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("quota set without Redis: code %d, stderr %q", r.code, r.stderr)
	}
	var set setJSON
	if err := json.Unmarshal([]byte(r.stdout), &set); err != nil || !set.APIs[0].Changed || !strings.HasPrefix(set.Unpublished, "no Redis at") {
		t.Errorf("quota set without Redis = %s, %v", r.stdout, err)
	}
	// The same again changes nothing, but reaches Redis.
	if again := decode[setJSON](t, s.headroom("quota", "set", "main", "backfill.ceiling=0.7", "--json")); again.Unpublished != "" || again.APIs[0].Changed || again.APIs[0].Revision != 1 {
		t.Errorf("the same with Redis = %+v", again)
	}
	// Another store on the same Redis: what it sets comes after what Redis has.
	other := decode[setJSON](t, s.headroom("quota", "set", "main", "backfill.ceiling=0.6", "--json", "--set", "store.path="+s.dir+"/other/headroom.db"))
	if a := other.APIs[0]; a.Revision != 2 || a.Values[0].Old != 0.8 || other.Unpublished != "" {
		t.Errorf("another store = %+v, want revision 2", other)
	}
	// And the first store takes its place again, although nothing changes in it.
	back := decode[setJSON](t, s.headroom("quota", "set", "main", "backfill.ceiling=0.7", "--json"))
	if a := back.APIs[0]; a.Revision != 3 || !a.Changed {
		t.Errorf("the first store again = %+v, want revision 3", back)
	}
	history := decode[[]historyJSON](t, s.headroom("quota", "history", "main", "--json"))
	if got := history[len(history)-1].Change; got != "in place of revision 2, which only Redis knew" {
		t.Errorf("the last change = %q", got)
	}
}

func TestConfigShowHasTheModesValues(t *testing.T) {
	s := newSite(t, realRedis.URL())
	type lane struct {
		Ceiling, Floor, Pace float64
		InFlight             int `json:"in_flight"`
	}
	shown := decode[struct {
		Google struct {
			Projects map[string]struct {
				Mode  string
				Lanes map[string]lane
			}
		}
	}](t, s.headroom("config", "show", "--json", "--set", "google.projects.main.mode=adaptive", "--set", "google.projects.main.lanes.backfill.pace=0"))
	main := shown.Google.Projects["main"]
	if got, want := main.Lanes["backfill"], (lane{0.9, 0.5, 0, 7}); main.Mode != "adaptive" || got != want {
		t.Errorf("project main has mode %s, backfill %+v, want adaptive and %+v", main.Mode, got, want)
	}
}
