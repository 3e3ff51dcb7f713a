package main

import (
	"strings"
	"testing"
)

// TestNoCommandPrintsCredentials: of every URL of the settings, in what is shown, in
// what is wrong and in what is logged, a call that fails included.
func TestNoCommandPrintsCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	good := []string{"--set", "google.endpoint=http://ann:hunter2@127.0.0.1:1/", "--set", "log.level=debug",
		"--set", "push.calendar.address=https://ann:hunter2@headroom.example.com/push/calendar?token=hunter2"}
	bad := []string{"--set", "google.endpoint=ftp://hunter2@127.0.0.1/?key=hunter2", "--set", "push.gmail.issuer=ann:hunter2@example.com",
		"--set", "push.calendar.address=ftp://ann:hunter2@headroom.example.com/"}
	for _, args := range [][]string{
		append([]string{"config", "show"}, good...), append([]string{"config", "show", "--json"}, good...),
		append([]string{"config", "check"}, bad...), append([]string{"config", "check", "--json"}, bad...),
		append([]string{"run"}, bad...), append([]string{"backfill", "estimate", "ann@example.com"}, good...),
	} {
		r := s.headroom(args...)
		if text := r.stdout + r.stderr; strings.Contains(text, "hunter2") || text == "" {
			t.Errorf("%q prints %s", args, text)
		}
	}
}
