package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/agenda"
	"headroom/internal/export"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const groupDomain = "@group.calendar.google.com"

// icsFolder is where real calendar files lie, if they do.
func icsFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HEADROOM_TESTDATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	dir = filepath.Join(dir, "ics")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no real calendars in %s; set HEADROOM_TESTDATA", dir)
	}
	return dir
}

// A span of two years in which a file is looked at.
type askedSpan struct {
	Path string `json:"path"`
	Zone string `json:"zone"`
	From string `json:"from"`
	To   string `json:"to"`
}

// askAbout chooses the two years in which most of a calendar's events begin.
func askAbout(path string, c calendar.State) askedSpan {
	var starts []time.Time
	for _, e := range c.Events {
		if e.Start == nil {
			continue
		}
		for layout, text := range map[string]string{time.DateOnly: e.Start.Date, time.RFC3339: e.Start.DateTime} {
			if at, err := time.Parse(layout, text); err == nil {
				starts = append(starts, at.UTC().Truncate(24*time.Hour))
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	from, most := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	for i, at := range starts {
		n, _ := slices.BinarySearchFunc(starts, at.AddDate(2, 0, -1), time.Time.Compare)
		if n-i > most {
			from, most = at.AddDate(0, 0, -1), n-i
		}
	}
	return askedSpan{Path: path, Zone: c.TimeZone, From: from.Format(time.DateOnly), To: from.AddDate(2, 0, 0).Format(time.DateOnly)}
}

// secondLibrary finds a Python that has the second library, or skips the test.
func secondLibrary(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import icalendar, recurring_ical_events").Run() == nil {
			return python
		}
	}
	t.Skip("no python3 has icalendar and recurring_ical_events; scripts/setup.sh ics brings them")
	return ""
}

// A reading is what the second library makes of a file.
type reading struct {
	Path        string      `json:"path"`
	Error       string      `json:"error"`
	Occurrences [][2]string `json:"occurrences"`
}

// readings lets the second library read files, and returns what it says by path.
func readings(t *testing.T, python string, asked []askedSpan) map[string]reading {
	t.Helper()
	in, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../../scripts/ics_occurrences.py")
	var problems bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the second library: %v\n%s", err, &problems)
	}
	found := map[string]reading{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var r reading
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		found[r.Path] = r
	}
	return found
}

func (r reading) lines() []string {
	lines := []string{}
	for _, o := range r.Occurrences {
		lines = append(lines, o[0]+" "+o[1])
	}
	return sorted(lines)
}

// ownLines is what Headroom makes of a calendar in a span; without the UIDs that
// Google made where the file has none, unless withMade.
func ownLines(t *testing.T, a *agenda.Agenda, asked askedSpan, withMade bool) []string {
	t.Helper()
	from, err := time.Parse(time.DateOnly, asked.From)
	if err != nil {
		t.Fatal(err)
	}
	to, err := time.Parse(time.DateOnly, asked.To)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := a.Occurrences(agenda.Span{From: from.AddDate(0, 0, -2), To: to.AddDate(0, 0, 2)})
	lines := []string{}
	for _, o := range all {
		start := o.Start.Date
		if start == "" {
			start = o.Start.Time.UTC().Format("2006-01-02T15:04:05Z")
		}
		uid := o.ICalUID
		if id, made := strings.CutSuffix(uid, "@google.com"); made && !withMade && (id == o.ID || id == o.Series) {
			uid = ""
		}
		if start[:10] >= asked.From && start[:10] < asked.To {
			lines = append(lines, uid+" "+start)
		}
	}
	return sorted(lines)
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// compareOccurrences holds what Headroom makes of calendars against what the second
// library makes of files. It returns the names of those that differ, with how.
func compareOccurrences(t *testing.T, agendas map[string]*agenda.Agenda, asked []askedSpan, read map[string]reading, withMade bool) map[string]string {
	t.Helper()
	differ, unread, n := map[string]string{}, []string{}, 0
	for _, a := range asked {
		name := filepath.Base(a.Path)
		r := read[a.Path]
		if r.Error != "" {
			unread = append(unread, fmt.Sprintf("%s: %s", name, r.Error))
			continue
		}
		want, got := r.lines(), ownLines(t, agendas[name], a, withMade)
		n += len(got)
		if diff := cmp.Diff(want, got); diff != "" {
			differ[name] = fmt.Sprintf("%s to %s (-second library +Headroom):\n%s", a.From, a.To, diff)
		}
	}
	t.Logf("%d files compared, %d occurrences; the second library cannot read %d:\n%s", len(asked)-len(unread), n, len(unread), strings.Join(unread, "\n"))
	return differ
}

// dumpOf is what the fake says of all of ann's calendars.
func dumpOf(fake *fakegoogle.Server) (all []calendar.State) {
	for _, c := range fake.Calendars(ann) {
		all = append(all, c.State())
	}
	return all
}

// TestRealCalendars: every real file as a calendar of one account, synced, synced
// again, changed and synced again; what takes place is what another library finds in
// the files, and in the files that are exported.
func TestRealCalendars(t *testing.T) {
	t.Parallel()
	dir := icsFolder(t)
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	problems, err := r.fake.LoadCalendars(ann, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the fake leaves out or mends %d things", len(problems))
	calendars := dumpOf(r.fake)
	s := r.run().Store()
	r.calendars(s)
	r.allInStep(s, calendars)
	t.Run("take place as the second library says", func(t *testing.T) { r.checkOccurrences(t, s, dir, calendars) })

	before, lists := r.rows(calendars), r.listCalls()
	r.calendars(s)
	if got := r.listCalls() - lists; got != int64(len(calendars))+1 {
		t.Errorf("a sync without changes took %d calls for %d calendars, want one each and one for their list", got, len(calendars))
	}
	if diff := cmp.Diff(before, r.rows(calendars)); diff != "" {
		t.Errorf("a sync without changes changed (-before +after):\n%s", diff)
	}

	done := map[string]int{}
	for _, c := range calendars {
		changeSome(t, r.fake.Calendar(ann, c.ID), done)
	}
	t.Logf("changes: %v", done)
	for _, what := range []string{"add", "move", "move occurrence", "cancel occurrence", "delete", "delete series"} {
		if done[what] < 20 {
			t.Errorf("%d times %s, want at least 20", done[what], what)
		}
	}
	lists = r.listCalls()
	r.calendars(s)
	if got := r.listCalls() - lists; got != int64(len(calendars))+1 {
		t.Errorf("a sync with changes in all of %d calendars took %d calls, want one each and one for their list", len(calendars), got)
	}
	r.allInStep(s, dumpOf(r.fake))
}

// listCalls counts the calls of events.list and calendarList.list.
func (r *site) listCalls() int64 {
	events, calendars := r.lists()
	return events + calendars
}

func (r *site) allInStep(s *sqlite.Store, calendars []calendar.State) {
	r.t.Helper()
	for _, c := range calendars {
		r.inStep(s, c.ID)
	}
}

// rows is what is stored of all events.
func (r *site) rows(calendars []calendar.State) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, c := range calendars {
		err := r.control().EachEvent(r.t.Context(), jobs.Calendar{Account: ann, ID: c.ID}, true, func(e jobs.Event) error {
			text, err := json.Marshal(e)
			all[c.ID+" "+e.ID] = string(text)
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return all
}

// changeSome changes a calendar in all ways that its events let it be changed, and
// counts them.
func changeSome(t *testing.T, c *calendar.Calendar, done map[string]int) {
	t.Helper()
	did := func(what string, err error) {
		switch {
		case err == nil:
			done[what]++
		case !errors.Is(err, calendar.ErrNoEvent): // a series may have no occurrence at its own start
			t.Errorf("%s in %s: %v", what, c.ID(), err)
		}
	}
	var singles, series []calendar.Event
	for _, e := range c.Events() {
		switch {
		case e.Status == calendar.EventCancelled || e.RecurringEventID != "":
		case len(e.Recurrence) > 0:
			series = append(series, e)
		default:
			singles = append(singles, e)
		}
	}
	moveTo := func(e calendar.Event) calendar.EventTime {
		if e.Start.Date != "" {
			return calendar.EventTime{Date: "2026-07-01"}
		}
		return calendar.EventTime{DateTime: "2026-07-01T12:00:00Z", TimeZone: e.Start.TimeZone}
	}
	for i, e := range series {
		switch occurrence := c.OccurrenceID(e.ID, *e.Start); i % 3 {
		case 0:
			did("cancel occurrence", c.Cancel(occurrence))
		case 1:
			_, err := c.Move(occurrence, moveTo(e))
			did("move occurrence", err)
		case 2:
			did("delete series", c.DeleteSeries(e.ID))
		}
	}
	for i, e := range singles {
		switch i % 4 {
		case 0:
			_, err := c.Move(e.ID, moveTo(e))
			did("move", err)
		case 1:
			did("delete", c.Delete(e.ID))
		}
	}
	_, err := c.Add(calendar.Event{Summary: "added", Start: &calendar.EventTime{Date: "2026-07-02"}, End: &calendar.EventTime{Date: "2026-07-03"}})
	did("add", err)
}

// checkOccurrences compares what takes place by what is stored with what the second
// library finds in the source files, and in those that are exported.
func (r *site) checkOccurrences(t *testing.T, s *sqlite.Store, dir string, calendars []calendar.State) {
	python := secondLibrary(t)
	exported := t.TempDir()
	agendas := map[string]*agenda.Agenda{}
	var asked, again []askedSpan
	for _, c := range calendars {
		if c.ID == ann {
			continue
		}
		stored, err := s.Calendar(t.Context(), ann, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		a, _, err := r.control().Agenda(t.Context(), stored)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(c.ID, groupDomain) + ".ics"
		agendas[name] = a
		asked = append(asked, askAbout(filepath.Join(dir, name), c))
		if _, err := export.ICSFile(a, filepath.Join(exported, name), false); err != nil {
			t.Errorf("export of %s: %v", name, err)
		}
	}
	read := readings(t, python, asked)
	excuse(t, "the file", icsDiffer, compareOccurrences(t, agendas, asked, read, false))
	for _, a := range asked {
		// What takes the second library long once is not asked for twice.
		if r := read[a.Path]; len(r.Occurrences) < 5000 && !strings.Contains(r.Error, "takes more than") {
			a.Path = filepath.Join(exported, filepath.Base(a.Path))
			again = append(again, a)
		}
	}
	read = readings(t, python, again)
	for _, r := range read {
		if r.Error != "" {
			t.Errorf("the second library cannot read the export of %s: %s", filepath.Base(r.Path), r.Error)
		}
	}
	excuse(t, "the export of", icsExportDiffer, compareOccurrences(t, agendas, again, read, true))
}

// excuse holds differences to those that are known.
func excuse(t *testing.T, what string, known, differ map[string]string) {
	t.Helper()
	for name, how := range differ {
		if known[name] == "" {
			t.Errorf("%s %s, %s", what, name, how)
		}
	}
	for name, why := range known {
		if differ[name] == "" {
			t.Errorf("%s %s is read alike, and need not be excused: %s", what, name, why)
		}
	}
}
