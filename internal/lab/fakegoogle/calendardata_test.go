package fakegoogle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle"
)

// icsFolder is where real calendar files lie, if they do.
func icsFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HEADROOM_TESTDATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	dir = filepath.Join(dir, "ics")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no real calendars in %s; set HEADROOM_TESTDATA", dir)
	}
	return dir
}

// Every event of every real file is served, or is reported by the file's name.
func TestNothingOfRealFilesIsLostSilently(t *testing.T) {
	dir := icsFolder(t)
	server, url := start(t, fakegoogle.Options{})
	problems, err := server.LoadCalendars(ann, dir)
	if err != nil {
		t.Fatal(err)
	}
	reported := map[string][]string{}
	for _, p := range problems {
		reported[p.File] = append(reported[p.File], p.Cause)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.ics"))
	if err != nil {
		t.Fatal(err)
	}
	service := calendarClient(t, url, ann)
	events := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		id := strings.TrimSuffix(name, ".ics") + "@group.calendar.google.com"
		c := server.Calendar(ann, id)
		if c == nil {
			t.Errorf("%s is no calendar", name)
			continue
		}
		want := bytes.Count(bytes.ToUpper(text), []byte("BEGIN:VEVENT"))
		if got := len(c.Events()); got != want && len(reported[name]) == 0 {
			t.Errorf("%s: %d events, want %d", name, got, want)
		}
		events += len(c.Events())
		if strings.Count(id, "") > 0 && len(c.Events()) > 0 && len(c.Events()) < 30 {
			if _, err := service.Events.List(id).SingleEvents(true).TimeMax("2027-01-01T00:00:00Z").Do(); err != nil && !strings.Contains(err.Error(), "403") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	t.Logf("%d files, %d events, %d problems", len(files), events, len(problems))
	for _, p := range problems {
		t.Logf("%s: %s", p.File, p.Cause)
	}
}
