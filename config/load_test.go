package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
)

const full = `
google:
  endpoint: http://127.0.0.1:9000
  projects:
    main:
      prices: [gmail-legacy]
      credentials: /etc/headroom/main.json
      limits:
        gmail-legacy: {user_minute: 3000}
      mode: adaptive
      lanes:
        sync: {in_flight: 6}
        backfill: {ceiling: 0.5, floor: 0.25, pace: 0}
    other: {}
redis: {url: "redis://:secret@redis.example.com:6379/1", queue_prefix: "eu-"}
worker:
  in_flight: 5
  slice: 2s
  message_bytes_in_flight: 64MiB
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headroom.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadMergesTheFileIntoTheDefaults(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, full)})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Store.Blobs = "headroom-data/blobs"
	want.Google = config.Google{
		Endpoint: "http://127.0.0.1:9000",
		Projects: map[string]config.Project{
			"main": {
				Prices:      []string{"gmail-legacy"},
				Credentials: "/etc/headroom/main.json",
				Limits:      map[string]config.Limits{"gmail-legacy": {UserMinute: 3000}},
				Mode:        "adaptive",
				Lanes: config.Lanes{
					Sync:     config.Lane{InFlight: new(6)},
					Backfill: config.BackfillLane{Ceiling: new(0.5), Floor: new(0.25), Pace: new(0.0)},
				},
			},
			"other": {Prices: []string{"gmail-2026-10", "calendar-2026-05"}, Mode: "default"},
		},
	}
	want.Redis.URL, want.Redis.QueuePrefix = "redis://:secret@redis.example.com:6379/1", "eu-"
	want.Worker.InFlight, want.Worker.Slice, want.Worker.MessageBytesInFlight = 5, 2*time.Second, 64<<20
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	path := write(t, "web: {listen: \"127.0.0.1:1\"}\nlog: {level: warn, format: json}\nredis: {queue_prefix: file-}")
	got, err := config.Load(config.Options{
		Path:    path,
		Environ: []string{"HEADROOM_WEB_LISTEN=127.0.0.1:2", "HEADROOM_LOG_LEVEL=error", "HEADROOM_REDIS_QUEUE_PREFIX=", "OTHER=1"},
		Set:     []string{"web.listen=127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Web.Listen != "127.0.0.1:3" {
		t.Errorf("web.listen = %q, want the command line's", got.Web.Listen)
	}
	if got.Log.Level != "error" {
		t.Errorf("log.level = %q, want the environment's", got.Log.Level)
	}
	if got.Log.Format != "json" {
		t.Errorf("log.format = %q, want the file's", got.Log.Format)
	}
	if got.Redis.QueuePrefix != "" {
		t.Errorf("redis.queue_prefix = %q, want the environment's empty text", got.Redis.QueuePrefix)
	}
	if want := (config.Store{Path: "headroom-data/headroom.db", Blobs: "headroom-data/blobs"}); got.Store != want {
		t.Errorf("store = %+v, want the default %+v", got.Store, want)
	}
}

func TestBlobsStandBesideTheStore(t *testing.T) {
	for want, set := range map[string][]string{
		"/srv/mail/blobs":     {"store.path=/srv/mail/headroom.db"},
		"/srv/mail/x/blobs":   {"store.path=/srv/mail/x/headroom.db", "store.blobs="},
		"/raw":                {"store.path=/srv/mail/headroom.db", "store.blobs=/raw"},
		"blobs":               {"store.path=headroom.db"},
		"headroom-data/blobs": {},
	} {
		got, err := config.Load(config.Options{Set: set})
		if err != nil || got.Store.Blobs != want {
			t.Errorf("with %q store.blobs = %q, %v, want %q", set, got.Store.Blobs, err, want)
		}
	}
}

func TestSetReachesIntoProjects(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, full), Set: []string{
		"google.projects.main.lanes.backfill.ceiling=0.25",
		"google.projects.new.prices=gmail-2026-10, calendar-2026-05",
		"worker.slice=3s",
		"worker.message_bytes_in_flight=1GiB",
	}})
	if err != nil {
		t.Fatal(err)
	}
	main := got.Google.Projects["main"]
	if *main.Lanes.Backfill.Ceiling != 0.25 || main.Limits["gmail-legacy"].UserMinute != 3000 {
		t.Errorf("main = %+v, want a ceiling of 0.25 and the file's limits", main)
	}
	if diff := cmp.Diff([]string{"gmail-2026-10", "calendar-2026-05"}, got.Google.Projects["new"].Prices); diff != "" {
		t.Errorf("prices of new (-want +got):\n%s", diff)
	}
	if got.Worker.Slice != 3*time.Second || got.Worker.MessageBytesInFlight != 1<<30 {
		t.Errorf("worker = %+v, want a slice of 3s and 1GiB", got.Worker)
	}
}

func TestLoadReportsEveryProblemAtOnce(t *testing.T) {
	path := write(t, `redis:
  url: http://redis
  pasword: x
worker:
  in_flight: many
  slice: 5
  message_bytes_in_flight: lots
google:
  projects:
    -bad-: {prices: [gmail-legacy, gmail-2026-10]}
    ok:
      mode: turbo
      lanes: {backfill: {ceiling: 1.5, floor: -1}, batch: {},
        interactive: {pace: 1}, sync: {floor: 0.5, in_flight: 0}}
      limits: {gmail-legacy: {user_minute: -1}}
web: [1]
log: {level: loud}
scheduler: {tick: "whenever"}
`)
	_, err := config.Load(config.Options{
		Path: path,
		Environ: []string{"HEADROOM_STORE_PHAT=/x", "HEADROOM_SCALE=zero", "HEADROOM_REDIS_PORT=tcp://10.0.0.1:6379", "HEADROOM_TESTDATA=/y",
			"HEADROOM_SCALLE=20", "HEADROOM_WORKERS_CONCURRENCY=3", "HEADROOM_GOOGLE_PROJECTS_MAIN_PRICES=x", "HEADROOM_=1",
			"HEADROOM_PORT=tcp://10.0.0.1:80", "HEADROOM_PORT_80_TCP_ADDR=10.0.0.1", "HEADROOM_WEB_SERVICE_PORT_HTTP=80",
			"HEADROOM_SERVICE_HOST=10.0.0.1", "HEADROOM_CONFIG=/z", "HEADROOMY=1"},
		Set: []string{"nonsense", "store=x", "store.path="},
	})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load = %v, want an InvalidError", err)
	}
	got := strings.Split(strings.ReplaceAll(errors.Join(invalid.Problems...).Error(), path, "F"), "\n")
	want := []string{
		`F:3: redis.pasword: is no setting that Headroom knows`,
		`F:5: worker.in_flight: must be a whole number, not "many"`,
		`F:6: worker.slice: must be a duration such as 5s, not "5"`,
		`F:7: worker.message_bytes_in_flight: cannot read "lots" as an amount of memory such as 128MiB`,
		`F:13: google.projects.ok.lanes.batch: is no setting that Headroom knows`,
		`F:14: google.projects.ok.lanes.sync.floor: is no setting that Headroom knows`,
		`F:16: web: must be a section with keys of its own, not a list`,
		`HEADROOM_STORE_PHAT: is no setting that Headroom knows; did you mean HEADROOM_STORE_PATH?`,
		`HEADROOM_SCALE: scale: must be a whole number, not "zero"`,
		`HEADROOM_SCALLE: is no setting that Headroom knows; did you mean HEADROOM_SCALE?`,
		`HEADROOM_WORKERS_CONCURRENCY: is no setting that Headroom knows; did you mean HEADROOM_WORKER_CONCURRENCY?`,
		`HEADROOM_GOOGLE_PROJECTS_MAIN_PRICES: is no setting that Headroom knows`,
		`HEADROOM_: is no setting that Headroom knows`,
		`--set nonsense: must be of the form key=value`,
		`--set store: is no setting that Headroom knows`,
		`F:10: google.projects.-bad-: the name must begin with a letter or digit and hold at most 127 letters, digits, dots, colons, dashes and underscores`,
		`F:10: google.projects.-bad-.prices: gmail-legacy and gmail-2026-10 are price lists of one API; keep one`,
		`F:15: google.projects.ok.limits.gmail-legacy: is not among the project's prices (gmail-2026-10, calendar-2026-05)`,
		`F:15: google.projects.ok.limits.gmail-legacy.user_minute: must be a number of units, or 0 for the list's own`,
		`F:12: google.projects.ok.mode: must be one of default, guaranteed, adaptive, not "turbo"`,
		`F:14: google.projects.ok.lanes.interactive.pace: must be 0: what people wait for is not paced`,
		`F:14: google.projects.ok.lanes.sync.in_flight: must be from 1 to 1000, not 0 (Google accepts about 10)`,
		`F:13: google.projects.ok.lanes.backfill.ceiling: must be a share of the limit above 0 and at most 1, not 1.5`,
		`F:13: google.projects.ok.lanes.backfill.floor: must be a share of the limit from 0 (the ceiling does not give way) to 1, not -1`,
		`F:2: redis.url: must be redis://, rediss:// or unix:// and an address, not "http://redis"`,
		`--set store.path: must not be empty`,
		`F:18: scheduler.tick: must be a cron specification such as "@every 2s" (expected 5 to 6 fields, found 1: [whenever])`,
		`F:17: log.level: must be one of debug, info, warn, error, not "loud"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("Load = %q, want one line", err)
	}
}

func TestTheFileItself(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := config.Load(config.Options{Path: missing, Optional: true}); err != nil {
		t.Errorf("an optional file that is missing: %v, want nil", err)
	}
	_, err := config.Load(config.Options{Path: missing})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a named file that is missing: %v, want its name and the next step", err)
	}
	if _, err := config.Load(config.Options{Path: missing + "\r"}); err == nil || !strings.Contains(err.Error(), "its name holds a carriage return") {
		t.Errorf("a name with the end of a line of Windows: %v", err)
	}
	for name, row := range map[string]struct{ text, want string }{
		"a tab":             {"scale: 1\n\tlog: x\n", "headroom.yaml:2: found a tab character"},
		"broken YAML":       {"redis: {url", "did not find"},
		"several documents": {"scale: 1\n---\nscale: 2\n", "one YAML document"},
		"a repeated key":    {"scale: 1\nscale: 2\n", `mapping key "scale" already defined`},
		"a list at the top": {"- scale\n", "must be a section"},
		"too large":         {strings.Repeat("# comment\n", 1<<17), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(config.Options{Path: write(t, row.text)})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("Load = %v, want an error with %q", err, row.want)
			}
		})
	}
	if _, err := config.Load(config.Options{Path: write(t, "worker:\nredis: ~\n")}); err != nil {
		t.Errorf("empty sections: %v, want the defaults", err)
	}
}

// FuzzLoad: whatever the file holds, Load answers with valid settings or an
// error of one line, and never shows a password that stands in a URL.
func FuzzLoad(f *testing.F) {
	f.Add(full, "redis.url=redis://u:hunter2@h")
	f.Add("a: &a [*a]", "google.projects.x.limits.y.user_minute=1")
	f.Add("scheduler: {tick: \"TZ=UTC\"}", "scheduler.tick=CRON_TZ=")
	f.Add("redis: {url: 'redis://:hunter2@%zz'}", "=")
	f.Add("google: {projects: {a: {costs: {gmail-2026-05: {x: {raw: 1}}}}}}", "google.projects.a.costs.gmail-2026-05.b.c={full: [1]}")
	f.Add("google: {projects: {a: {mode: adaptive, lanes: {backfill: {floor: 0.5}}}}}", "google.projects.a.lanes.sync.in_flight=3")
	f.Add("google: {projects: {a: ~, b: {lanes: {sync: {pace: .nan}}}}}", "google.projects.=")
	path := filepath.Join(f.TempDir(), "headroom.yaml")
	f.Fuzz(func(t *testing.T, text, set string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{Path: path, Set: []string{set}})
		if err == nil {
			err = cfg.Validate()
		} else if strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("Load = %q, want one line", err)
		}
		var invalid *config.InvalidError
		if err != nil && cfg.Scale != 0 && errors.As(err, &invalid) {
			t.Errorf("Load gave settings that do not validate: %v", err)
		}
	})
}
