package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle/calendar"
)

// fakeStarted is the first line of fake-google.
type fakeStarted struct {
	URL       string
	Calendars []string
	Problems  []calendar.Problem
}

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
	var bobs calendar.AccountState
	if err := json.NewDecoder(resp.Body).Decode(&bobs); err != nil || len(bobs.Calendars) != 2 || len(bobs.Calendars[1].Events) != 3 {
		t.Errorf("bob's calendars: %+v, %v", bobs, err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code = %d", code)
	}
}
