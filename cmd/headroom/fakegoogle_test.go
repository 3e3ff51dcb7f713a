package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle"
)

func TestAnUnusedConnectionDoesNotFailTheStop(t *testing.T) {
	t.Parallel() // it waits for seconds
	p := start(t, "fake-google")
	var first fakeStarted
	if err := json.Unmarshal([]byte(p.line("{")), &first); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(first.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if code := p.stop(); code != 0 {
		_, stderr := p.out()
		t.Errorf("exit code = %d: %s", code, stderr)
	}
}

func TestAMailboxIsCutAfterItsAddress(t *testing.T) {
	type cut struct {
		email, from string
		ok          bool
	}
	for spec, want := range map[string]cut{
		"ann@example.com=mail.mbox":  {"ann@example.com", "mail.mbox", true},
		"ann@example.com=a=b@c.mbox": {"ann@example.com", "a=b@c.mbox", true},
		"a=b@example.com=generate:3": {"a=b@example.com", "generate:3", true},
		"ann=generate:3":             {"ann", "generate:3", true},
		"ann@example.com=":           {"ann@example.com", "", false},
		"ann@example.com":            {"ann@example.com", "", false},
		"=generate:3":                {"", "generate:3", false},
		"":                           {"", "", false},
	} {
		var got cut
		if got.email, got.from, got.ok = cutMailbox(spec); got != want {
			t.Errorf("cutMailbox(%q) = %+v, want %+v", spec, got, want)
		}
	}
}

func TestCalendarsOfFilesAreServedAndTheirProblemsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "team.ics"), []byte("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:x\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "fake-google", "--calendar", "ann@example.com="+dir, "--calendar", "bob@example.com=generate:2x3")
	var first fakeStarted
	if err := json.Unmarshal([]byte(p.line("{")), &first); err != nil {
		t.Fatal(err)
	}
	if len(first.Calendars) != 2 || len(first.Problems) != 1 || first.Problems[0].File != "team.ics" {
		t.Errorf("first line: %+v", first)
	}
	resp, err := http.Get(first.URL + "/_fake/calendar?account=bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var bobs fakegoogle.AccountCalendars
	if err := json.NewDecoder(resp.Body).Decode(&bobs); err != nil || len(bobs.Calendars) != 2 || len(bobs.Calendars[1].Events) != 3 {
		t.Errorf("bob's calendars: %+v, %v", bobs, err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code = %d", code)
	}
}
