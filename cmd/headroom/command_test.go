package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"headroom/jobs"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" || c.Long == "" {
			t.Errorf("%s lacks a short or long text or an example", c.CommandPath())
		}
		if !strings.Contains(c.Long, "Exit codes: 0") {
			t.Errorf("%s does not list its exit codes", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if n := len([]rune(strings.TrimSpace(line))); n > 90 {
				t.Errorf("%s has a line of %d characters; wrap it: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	root := newRoot(io.Discard)
	check(root)
	for path := range sections() {
		if cmd, _, err := root.Find(strings.Fields(path)[1:]); err != nil || cmd.CommandPath() != path {
			t.Errorf("commands.md explains %s, which is no command", path)
		}
	}
	if r := headroom(t, "--help"); r.code != 0 || !strings.Contains(r.stdout, "Exit codes: 0 done, 1 failed, 2 wrong usage") || r.stderr != "" {
		t.Errorf("--help = %+v", r)
	}
	line := headroom(t, "--version")
	if line.code != 0 || !strings.HasPrefix(line.stdout, "headroom ") || strings.Count(line.stdout, "\n") != 1 {
		t.Errorf("--version = %+v", line)
	}
	if r := headroom(t, "version"); r != line {
		t.Errorf("version = %+v, want %+v", r, line)
	}
	for _, args := range [][]string{{"version", "--json"}, {"--version", "--json"}} {
		if b := decode[map[string]string](t, headroom(t, args...)); len(b) != 4 || b["version"] == "" || b["go"] != runtime.Version() {
			t.Errorf("%q = %v", args, b)
		}
	}
	if r := headroom(t, "completion", "bash"); r.code != 0 || !strings.Contains(r.stdout, "__start_headroom") {
		t.Errorf("completion bash = %d, %d bytes", r.code, len(r.stdout))
	}
}

func TestWrongUsageIsCode2AndOneLine(t *testing.T) {
	s := newSite(t, realRedis.URL())
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":      {[]string{"backfil"}, `unknown command "backfil"; did you mean backfill?`},
		"unknown subcommand":   {[]string{"account", "remove"}, `unknown command "remove"`},
		"no subcommand":        {[]string{"backfill"}, "needs a subcommand; see headroom backfill --help"},
		"unknown flag":         {[]string{"run", "--role", "web"}, "unknown flag: --role; see headroom run --help"},
		"unknown role":         {[]string{"run", "--roles", "web,cook"}, `--roles: no role "cook"; there are scheduler, worker and web`},
		"too many arguments":   {[]string{"account", "list", "x"}, "usage: headroom account list"},
		"no argument":          {[]string{"backfill", "start"}, "accepts 1 argument, received 0; usage: headroom backfill start ACCOUNT"},
		"no project":           {[]string{"account", "add", "ann@example.com"}, "--project is missing"},
		"too long an address":  {[]string{"account", "add", strings.Repeat("a", 3000) + "@example.com", "--project", "main"}, "3012 characters is too long"},
		"no address":           {[]string{"account", "add", "ann", "--project", "main"}, `"ann" is not an e-mail address`},
		"unknown setting":      {[]string{"account", "list", "--set", "redis.uri=x"}, "--set redis.uri: is no setting"},
		"full ledger":          {[]string{"bench", "ledger", "--full"}, "only bench lanes has a --full measurement"},
		"no such shell":        {[]string{"completion", "csh"}, `unknown command "csh"`},
		"no shell":             {[]string{"completion"}, "needs a subcommand; see headroom completion --help"},
		"time that stands":     {[]string{"fake-google", "--scale", "0"}, "--scale 0 is not at least 1"},
		"no number":            {[]string{"fake-google", "--scale", "fast"}, "see headroom fake-google --help"},
		"unknown meter":        {[]string{"fake-google", "--meter", "water"}, "water"},
		"unknown prices":       {[]string{"fake-google", "--prices", "gmail-1999"}, "gmail-1999"},
		"no mailbox":           {[]string{"fake-google", "--mailbox", "ann@example.com"}, "must be EMAIL=PATH or EMAIL=generate:N"},
		"unknown price list":   {[]string{"run", "--set", "google.projects.main.prices=gmail-1999"}, `google.projects.main.prices: unknown price list "gmail-1999"; there are`},
		"no project to fetch":  {[]string{"run", "--config", filepath.Join(s.dir, "empty.yaml")}, "google.projects: must name at least one"},
		"no credentials":       {[]string{"run", "--set", "google.endpoint="}, "google.projects.main.credentials: must name the key file"},
		"no such credentials":  {[]string{"run", "--set", "google.projects.main.credentials=/nowhere/key.json"}, "/nowhere/key.json: no such file"},
		"a folder for a file":  {[]string{"run", "--config", s.dir}, "settings file " + s.dir + ": is a directory; name a file that can be read with --config"},
		"a named file missing": {[]string{"run", "--config", "/nowhere/headroom.yaml"}, "settings file /nowhere/headroom.yaml: file does not exist; create it or name another with --config"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(s.dir, "empty.yaml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.headroom(row.args...).fails(t, 2, row.want)
		})
	}
	if s.stored() {
		t.Error("wrong usage has left a store behind")
	}
}

func TestConfigCheckListsAllProblems(t *testing.T) {
	s := newSite(t, realRedis.URL())
	if r := s.headroom("config", "check"); r.code != 0 || r.stdout != "the settings of "+s.file+" are valid\n" {
		t.Errorf("config check = %+v", r)
	}
	bad := "redis: {url: nowhere}\nworker: {in_flight: 0, slice: 5}\ncolour: blue\ngoogle: {projects: {p: {prices: [gmail-1999]}}}\n"
	if err := os.WriteFile(s.file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.headroom("config", "check")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 2 || len(lines) != 6 || !strings.Contains(r.stderr, "6 problems;") {
		t.Errorf("config check = %+v, want code 2 and six lines", r)
	}
	for i, want := range []string{":2: worker.slice", ":3: colour", "redis.url", "worker.in_flight", `google.projects.p.prices: unknown price list "gmail-1999"`, "google.projects.p.credentials"} {
		if i < len(lines) && !strings.Contains(lines[i], want) {
			t.Errorf("line %d = %q, want %q", i, lines[i], want)
		}
	}
	var v struct {
		Valid    bool
		Problems []string
	}
	r = s.headroom("config", "check", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.Valid || len(v.Problems) != 6 || r.code != 2 {
		t.Errorf("config check --json = %+v, %v", r, err)
	}
	// Every other command says all of it too, in one line.
	r = s.headroom("run")
	r.fails(t, 2, "worker.in_flight")
	r.fails(t, 2, "colour")
}

func TestConfigCheckFindsWhatRunRefuses(t *testing.T) {
	s := newSite(t, realRedis.URL())
	notKey := filepath.Join(s.dir, "key.json")
	if err := os.WriteFile(notKey, []byte(`{"type": "authorized_user"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ file, want string }{
		"no such key file":     {"google: {projects: {\n  main: {credentials: /nowhere/key.json}}}", "F:2: google.projects.main.credentials: read the service account's key: open /nowhere/key.json: no such file"},
		"no key":               {"google:\n  projects: {main: {credentials: " + notKey + "}}", "F:2: google.projects.main.credentials: "},
		"no credentials":       {"google:\n  projects:\n    example.com:mail: {}", "F:3: google.projects.example.com:mail.credentials: must name the key file"},
		"no project":           {"scale: 1", "F: google.projects: must name at least one"},
		"no project below":     {"google:\n  endpoint: http://127.0.0.1:1", "F:1: google.projects: must name at least one"},
		"unknown price list":   {"google:\n  endpoint: http://127.0.0.1:1\n  projects:\n    main:\n      prices: [gmail-1999]", `F:5: google.projects.main.prices: unknown price list "gmail-1999"`},
		"unknown method":       {"google: {endpoint: 'http://h', projects: {main: {prices: [gmail-legacy],\n costs: {gmail-legacy: {gmail.fetch: 1}}}}}", "F:2: google.projects.main.costs.gmail-legacy.gmail.fetch: "},
		"the store's a folder": {"google: {endpoint: 'http://h', projects: {main: {}}}\nstore: {path: " + s.dir + "}", "F:2: store.path: " + s.dir + " is a folder"},
		"blobs are a file":     {"google: {endpoint: 'http://h', projects: {main: {}}}\nstore: {blobs: " + notKey + "}", "F:2: store.blobs: " + notKey + " is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.file, []byte(row.file+"\nredis: {url: \""+realRedis.URL()+"\"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(row.want, "F:", s.file+":", 1)
			r := s.headroom("config", "check")
			if r.code != 2 || !strings.Contains(r.stdout, want) || !strings.Contains(r.stderr, "the settings of "+s.file+" have 1 problem;") {
				t.Errorf("config check = %+v, want %q", r, want)
			}
			if name == "the store's a folder" || name == "blobs are a file" {
				return // run finds them when it opens the store
			}
			s.headroom("run", "--set", "web.listen=127.0.0.1:0").fails(t, 2, want)
		})
	}
	if err := os.WriteFile(s.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.headroom("config", "check", "--roles", "web,scheduler", "--set", "google.endpoint=", "--set", "google.projects.main.mode=default", "--set", "store.path="+s.dir+"/d/x.db", "--set", "store.blobs="+s.dir+"/b"); r.code != 0 {
		t.Errorf("config check for a process that calls no Google = %+v", r)
	}
	t.Chdir(s.dir)
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	r := headroom(t, "config", "check")
	if r.code != 2 || !strings.Contains(r.stdout, "google.projects: must name at least one") || !strings.Contains(r.stderr, "of no file: there is no headroom.yaml here; name one with --config") {
		t.Errorf("config check without a file = %+v", r)
	}
	got := decode[verdict](t, headroom(t, "config", "check", "--json", "--set", "google.endpoint=http://127.0.0.1:1", "--set", "google.projects.example.com:mail.mode=adaptive"))
	if !got.Valid || got.File != "" {
		t.Errorf("config check --json = %+v", got)
	}
}

func TestProjectsWithDotsAndColons(t *testing.T) {
	s := newSite(t, realRedis.URL())
	const id = "example.com:mail"
	with := []string{"--set", "google.projects." + id + ".mode=adaptive", "--set", "google.projects." + id + ".lanes.backfill.ceiling=0.5"}
	for _, row := range []struct{ args, want string }{
		{"account add ann@example.com --project " + id, "in project " + id},
		{"quota prices --project " + id, "gmail-2026"},
		{"quota set " + id + " sync.ceiling=0.4", "project " + id},
		{"quota set ann@example.com backfill.ceiling=0.3", "project " + id},
		{"quota history " + id, "sync.ceiling=0.4"},
		{"quota show " + id, "project " + id},
		{"quota show ann@example.com", "in project " + id},
		{"quota explain ann@example.com", "in project " + id},
		{"backfill start ann@example.com", "started"},
		{"config show", "ceiling: 0.5"},
	} {
		if r := s.headroom(append(strings.Fields(row.args), with...)...); r.code != 0 || !strings.Contains(r.stdout, row.want) {
			t.Errorf("%s = %+v, want %q", row.args, r, row.want)
		}
	}
}

func TestConfigShowHidesPasswords(t *testing.T) {
	s := newSite(t, "redis://:hunter2@127.0.0.1:1")
	t.Setenv("HEADROOM_WORKER_IN_FLIGHT", "3")
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "--json"}} {
		r := s.headroom(args...)
		if r.code != 0 || strings.Contains(r.stdout, "hunter2") || !strings.Contains(r.stdout, "xxxxx") {
			t.Errorf("%q = %+v, want the password replaced", args, r)
		}
	}
	shown := decode[map[string]any](t, s.headroom("config", "show", "--json"))
	if got := shown["worker"].(map[string]any)["in_flight"]; got != 3.0 {
		t.Errorf("worker.in_flight = %v, want the environment's 3", got)
	}
	s.headroom("run").fails(t, 1, "no Redis at redis://:xxxxx@127.0.0.1:1: connection refused; start one (redis-server) or set redis.url (HEADROOM_REDIS_URL)")
}

func TestAccounts(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1") // accounts need no Redis
	s.headroom("account", "list").fails(t, 1, "add an account first")
	s.headroom("account", "add", "ann@example.com", "--project", "mian").fails(t, 2,
		"unknown project mian, the settings name main, other; add google.projects.mian to the settings file")
	if s.stored() {
		t.Fatal("a refused account has left a store behind")
	}
	r := s.headroom("account", "add", "Ann@example.com", "--project", "main")
	if r.code != 0 || r.stdout != "added ann@example.com in project main\nstart its backfill with: headroom backfill start ann@example.com\n" {
		t.Errorf("account add = %+v", r)
	}
	s.headroom("account", "add", "ann@example.com", "--project", "other").fails(t, 1, "exists already; start its backfill with")
	if got := decode[jobs.Account](t, s.headroom("account", "add", "bob@example.com", "--project", "other", "--json")); got.Email != "bob@example.com" || got.Project != "other" {
		t.Errorf("account add --json = %+v", got)
	}
	got := decode[[]jobs.Account](t, s.headroom("account", "list", "--json"))
	if len(got) != 2 || got[0].Email != "ann@example.com" || got[0].Project != "main" || got[1].Email != "bob@example.com" {
		t.Errorf("account list --json = %+v", got)
	}
	if r := s.headroom("account", "list"); !strings.Contains(r.stdout, "ann@example.com  main") {
		t.Errorf("account list = %+v", r)
	}
}

func TestBackfillStart(t *testing.T) {
	s := newSite(t, realRedis.URL())
	unknown := "unknown account bob@example.com; add it with: headroom account add bob@example.com --project main"
	s.headroom("backfill", "start", "bob@example.com").fails(t, 1, unknown)
	if s.stored() {
		t.Fatal("an unknown account has left a store behind")
	}
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	s.headroom("backfill", "start", "bob@example.com").fails(t, 1, unknown)
	s.headroom("backfill", "start", "ann@example.com", "--set", "redis.url=redis://127.0.0.1:1").fails(t, 1, "no Redis at redis://127.0.0.1:1")
	if got := decode[[]jobs.Job](t, s.headroom("backfill", "list", "--json")); len(got) != 0 {
		t.Errorf("without Redis a job was left behind: %+v", got)
	}
	s.headroom("backfill", "show", "ann@example.com").fails(t, 1, "no backfill of ann@example.com; start it with: headroom backfill start ann@example.com")

	type started struct {
		Job     jobs.Job
		Created bool
	}
	first := decode[started](t, s.headroom("backfill", "start", "ANN@example.com", "--json"))
	if !first.Created || first.Job.ID != "backfill:ann@example.com" || first.Job.State != jobs.Queued {
		t.Errorf("first start = %+v", first)
	}
	if again := decode[started](t, s.headroom("backfill", "start", "ann@example.com", "--json")); again.Created || again.Job.Epoch != first.Job.Epoch {
		t.Errorf("second start = %+v, want the same job", again)
	}
	r := s.headroom("backfill", "start", "ann@example.com")
	if r.stdout != "under way already: backfill:ann@example.com\nfollow it with: headroom backfill watch ann@example.com\n" {
		t.Errorf("third start = %+v", r)
	}
	if got := decode[jobs.Job](t, s.headroom("backfill", "show", "ann@example.com", "--json")); got.ID != first.Job.ID {
		t.Errorf("show --json = %+v", got)
	}
	for _, args := range [][]string{{"backfill", "list"}, {"backfill", "show", "backfill:ann@example.com"}} {
		if r := s.headroom(args...); r.code != 0 || !strings.Contains(r.stdout, "queued") || !strings.Contains(r.stdout, "ann@example.com") {
			t.Errorf("%q = %+v", args, r)
		}
	}
	// An account whose project left the settings.
	s.headroom("backfill", "start", "ann@example.com", "--config", "", "--set", "store.path="+s.dir+"/data/headroom.db").
		fails(t, 2, "account ann@example.com: unknown project main, the settings name none")
}

func TestRunRefusesWhatWillNotDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newSite(t, realRedis.URL())
	s.headroom("run", "--set", "web.listen="+taken.Addr().String()).fails(t, 1,
		"cannot listen on "+taken.Addr().String()+": address already in use; stop what uses the port, or set web.listen (HEADROOM_WEB_LISTEN)")
	s.headroom("run", "--roles", "worker", "--set", "metrics.listen="+taken.Addr().String()).fails(t, 1,
		"address already in use; stop what uses the port, or set metrics.listen (HEADROOM_METRICS_LISTEN)")
	s.headroom("run", "--set", "metrics.listen=9090").fails(t, 2, "metrics.listen: must be host:port, such as 127.0.0.1:9090, or empty")
	s.headroom("run", "--set", "redis.url=redis://127.0.0.1:1").fails(t, 1, "connection refused; start one (redis-server)")
	if s.stored() {
		t.Error("a run that was refused has left a store behind")
	}
	s.headroom("run", "--roles", "web", "--set", "store.path="+s.dir).fails(t, 1, "is a folder; name a file in it")
	s.headroom("fake-google", "--listen", taken.Addr().String()).fails(t, 1, "address already in use; choose another address with --listen")
	s.headroom("fake-google", "--mailbox", "ann@example.com="+s.dir+"/none.mbox").fails(t, 1, "none.mbox")
}

func TestRunServesUntilStopped(t *testing.T) {
	s := newSite(t, realRedis.URL())
	p := start(t, "run", "--config", s.file, "--set", "log.level=info", "--roles", "scheduler,web")
	base := p.logged("listening", "url")
	resp, err := http.Get(base + "readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err != nil || string(body) != `{"ready":true,"checks":{"redis":"ok","store":"ok"}}`+"\n" {
		t.Errorf("/readyz = %s, %v", body, err)
	}
	if code := p.stop(); code != 0 {
		_, stderr := p.out()
		t.Errorf("exit code = %d: %s", code, stderr)
	}
}

func TestAWorkerServesItsMetrics(t *testing.T) {
	s := newSite(t, realRedis.URL())
	p := start(t, "run", "--config", s.file, "--set", "log.level=info", "--roles", "worker", "--set", "metrics.listen=127.0.0.1:0")
	base := p.logged("listening", "url")
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]string{"metrics": "\nheadroom_workers_fetches_in_flight 0\n", "readyz": `{"ready":true,"checks":{"redis":"ok","store":"ok"}}`} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("/%s = %s, %v, want %q in it", path, body, err, want)
		}
	}
	if code := p.stop(); code != 0 {
		_, stderr := p.out()
		t.Errorf("exit code = %d: %s", code, stderr)
	}
}

// logged waits for a line of the log with a message, and returns a field of it.
func (p *process) logged(message, field string) string {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		_, stderr := p.out()
		for line := range strings.Lines(stderr) {
			var entry map[string]any
			if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == message {
				return entry[field].(string)
			}
		}
		select {
		case code := <-p.ended:
			p.ended <- code
			p.t.Fatalf("ended with %d: %s", code, stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.t.Fatalf("nothing logged %q within 30 s", message)
	return ""
}

func TestFakeGooglesFirstLineHasItsURL(t *testing.T) {
	p := start(t, "fake-google", "--mailbox", "ann@example.com=generate:3", "--meter", "bucket", "--scale", "10", "--jitter", "1ms")
	var first struct {
		URL       string
		Mailboxes []string
	}
	if err := json.Unmarshal([]byte(p.line("{")), &first); err != nil {
		t.Fatal(err)
	}
	if len(first.Mailboxes) != 1 || first.Mailboxes[0] != "ann@example.com" {
		t.Errorf("mailboxes = %q", first.Mailboxes)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL+"/gmail/v1/users/me/profile", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer ann@example.com")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var profile struct{ MessagesTotal int }
	err = json.NewDecoder(resp.Body).Decode(&profile)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err != nil || profile.MessagesTotal != 3 {
		t.Errorf("profile = %+v, %v, want 3 messages", profile, err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if _, stderr := p.out(); stderr != "" {
		t.Errorf("stderr = %q, want nothing", stderr)
	}
}
