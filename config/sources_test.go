package config_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headroom/config"
)

var placeForm = regexp.MustCompile(`(?m)^(\S+/headroom\.yaml:\d+: |--set )`)

// unplaced are the problems of settings without their places.
func unplaced(invalid *config.InvalidError) []string {
	return strings.Split(placeForm.ReplaceAllString(errors.Join(invalid.Problems...).Error(), ""), "\n")
}

func TestWhatSurroundsAValueIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		file     string
		env, set []string
		want     string
	}{
		"quotes in the environment":    {env: []string{`HEADROOM_SCALE="20"`}, want: `HEADROOM_SCALE: scale: the value stands in quotes`},
		"quotes of a word processor":   {set: []string{"log.level=\u201cinfo\u201d"}, want: "--set log.level: the value stands in quotes"},
		"quotes on the command line":   {set: []string{`redis.url='redis://h:1'`}, want: "--set redis.url: the value stands in quotes"},
		"quotes in quotes":             {file: `store: {path: '"data/x.db"'}`, want: "F:1: store.path: the value stands in quotes"},
		"a number in quotes":           {file: `scale: "20"`, want: `F:1: scale: must be a whole number, not the text "20"; leave out the quotes`},
		"a line end of Windows":        {env: []string{"HEADROOM_REDIS_URL=redis://:hunter2@h:1\r"}, want: `HEADROOM_REDIS_URL: redis.url: the value holds a carriage return (\r)`},
		"a blank at the end":           {file: "log:\n  level: 'info '", want: "F:2: log.level: the value ends with a blank (U+0020)"},
		"a blank at the beginning":     {env: []string{"HEADROOM_WEB_LISTEN= 127.0.0.1:1"}, want: "HEADROOM_WEB_LISTEN: web.listen: the value begins with a blank (U+0020)"},
		"a blank that does not break":  {file: "google: {projects: {a: {credentials: \"/k\u00a0\"}}}", want: "F:1: google.projects.a.credentials: the value ends with a blank (U+00A0)"},
		"a byte order mark":            {set: []string{"store.path=\ufeffx"}, want: "--set store.path: the value holds a byte order mark"},
		"a blank in a list":            {file: "web: {hosts: ['a ', b]}", want: "F:1: web.hosts: the value ends with a blank"},
		"a mark in a name":             {file: "web:\n  \ufefflisten: x", want: "the name holds a byte order mark"},
		"a port that is a typo":        {env: []string{"HEADROOM_WEB_PORT=8080"}, want: "HEADROOM_WEB_PORT: is no setting"},
		"a port of Redis":              {env: []string{"HEADROOM_REDIS_PORT=6379"}, want: "HEADROOM_REDIS_PORT: is no setting"},
		"a host of Redis":              {env: []string{"HEADROOM_REDIS_SERVICE_HOST=redis.example.com"}, want: "HEADROOM_REDIS_SERVICE_HOST: is no setting"},
		"a typo":                       {file: "worker: {concurency: 3}", want: "F:1: worker.concurency: is no setting that Headroom knows; did you mean worker.concurrency?"},
		"a typo on the command line":   {set: []string{"redis.ulr=x"}, want: "--set redis.ulr: is no setting that Headroom knows; did you mean redis.url?"},
		"a key with dots":              {file: "redis.url: x", want: "F:1: redis.url: is no setting that Headroom knows with dots; in a file write redis: and, indented below it, url:"},
		"a section repeated elsewhere": {file: "redis: &a {url: 'redis://h:1'}\nquota: *a", want: "F:2: quota.url: is no setting that Headroom knows"},
		"a list as the file":           {file: "- a", want: "F:1: the file must be a section with keys of its own, not a list"},
		"a control character":          {file: "scale: 1\nredis: {url: x\x00}", want: "F:2: holds a control character (U+0000); remove it"},
		"a password where to listen":   {set: []string{"web.listen=ann:hunter2@h:80"}, want: "--set web.listen: must be host:port"},
		"a password among names":       {set: []string{"web.hosts=a,https://ann:hunter2@h"}, want: "--set web.hosts: must be names"},
		"a password of a topic":        {set: []string{"push.gmail.topic=https://ann:hunter2@h/x"}, want: "--set push.gmail.topic: must be projects/"},
		"a password of metrics":        {env: []string{"HEADROOM_METRICS_LISTEN=http://hunter2@h:80/"}, want: "HEADROOM_METRICS_LISTEN: metrics.listen: must be"},
		"what is missing in a section": {file: "push:\n  gmail: {topic: projects/p/topics/t}", want: "F:2: push.gmail.audience: is missing"},
		"what the environment says":    {file: "scale: 5", env: []string{"HEADROOM_SCALE=0"}, want: "HEADROOM_SCALE: scale: must be from 1"},
		"what the command line says":   {env: []string{"HEADROOM_SCALE=3"}, set: []string{"scale=0"}, want: "--set scale: must be from 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := config.Options{Environ: row.env, Set: row.set}
			if row.file != "" {
				o.Path = write(t, row.file)
			}
			_, err := config.Load(o)
			var invalid *config.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Load = %v, want an InvalidError", err)
			}
			text := errors.Join(invalid.Problems...).Error()
			if o.Path != "" {
				text = strings.ReplaceAll(text, o.Path, "F")
			}
			got := strings.Split(text, "\n")
			if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, row.want) }) {
				t.Errorf("problems = %q, want one with %q", got, row.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("problems = %q, with a password", got)
			}
		})
	}
	if _, err := config.Load(config.Options{Path: write(t, "\ufeffscale: 2\r\nlog: {level: info}\r\n"), Environ: []string{
		"HEADROOM_REDIS_PORT=tcp://10.0.0.1:6379", "HEADROOM_REDIS_PORT_6379_TCP=tcp://10.0.0.1:6379", "HEADROOM_REDIS_PORT_6379_TCP_PROTO=tcp",
		"HEADROOM_REDIS_PORT_6379_TCP_PORT=6379", "HEADROOM_REDIS_PORT_6379_TCP_ADDR=10.0.0.1", "HEADROOM_REDIS_SERVICE_HOST=fd00::1",
		"HEADROOM_REDIS_SERVICE_PORT=6379", "HEADROOM_REDIS_SERVICE_PORT_REDIS=6379",
	}}); err != nil {
		t.Errorf("a file from Windows among services of Kubernetes: %v, want nil", err)
	}
}

func TestADurationOfZeroNeedsNoUnit(t *testing.T) {
	for name, o := range map[string]config.Options{
		"file":        {Path: write(t, "worker: {slice: 6s}\nsync: {interval: 0}\nschedules: {mail-sync: {spread: 0, accounts: {ann.lee@example.com: {spread: 0}}}}")},
		"environment": {Environ: []string{"HEADROOM_SYNC_INTERVAL=0"}},
		"--set":       {Set: []string{"sync.interval=0"}},
	} {
		cfg, err := config.Load(o)
		if err != nil || cfg.Sync.Interval != 0 {
			t.Errorf("%s: sync.interval = %v, %v, want 0", name, cfg.Sync.Interval, err)
		}
	}
	_, err := config.Load(config.Options{Path: write(t, "worker: {slice: 0, lease: 5}")})
	if err == nil || !strings.Contains(err.Error(), "worker.slice: must be from 100ms") || !strings.Contains(err.Error(), `worker.lease: must be a duration such as 5s, not "5"`) {
		t.Errorf("a slice of 0 and a lease of 5 = %v", err)
	}
}

func TestProjectsOfADomain(t *testing.T) {
	const text = "google: {projects: {'example.com:mail': {mode: adaptive}, 'a.lanes': {}}}"
	cfg, from, err := config.Read(config.Options{Path: write(t, text), Set: []string{
		"google.projects.example.com:mail.lanes.backfill.ceiling=0.5",
		"google.projects.a.lanes.mode=guaranteed",
		"google.projects.corp.example:new.costs.gmail-2026-10.gmail.users.messages.get=7",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.Google.Projects
	if len(p) != 3 || p["example.com:mail"].Mode != "adaptive" || *p["example.com:mail"].Lanes.Backfill.Ceiling != 0.5 ||
		p["a.lanes"].Mode != "guaranteed" || p["corp.example:new"].Costs["gmail-2026-10"]["gmail.users.messages.get"].Units != 7 {
		t.Errorf("projects = %+v", p)
	}
	located := from.Locate(&config.InvalidError{Problems: []error{errors.New("google.projects.example.com:mail.credentials: must name a file")}})
	if want := from.File + ":1: google.projects.example.com:mail.credentials: must name a file"; located.Error() != "settings: "+want {
		t.Errorf("Locate = %v, want %s", located, want)
	}
	if again := from.Locate(located); again.Error() != located.Error() {
		t.Errorf("Locate twice = %v", again)
	}
}
