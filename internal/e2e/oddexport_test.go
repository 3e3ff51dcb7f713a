package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/export"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
)

// oddSeries is a series of an hour, with the lines of its recurrence.
func oddSeries(id, start, zone string, recurrence ...string) string {
	lines, _ := json.Marshal(recurrence)
	return fmt.Sprintf(`{"id":%q,"iCalUID":"%s@x","status":"confirmed","updated":"2026-01-01T00:00:00Z","start":{"dateTime":%q,"timeZone":%q},"end":{"dateTime":%q,"timeZone":%q},"recurrence":%s}`,
		id, id, start, zone, strings.Replace(start, ":00", ":30", 1), zone, lines)
}

// oddException is an occurrence that was moved, without the UID of its series.
func oddException(id, series, original, start, updated string) string {
	return fmt.Sprintf(`{"id":%q,"status":"confirmed","updated":%q,"recurringEventId":%q,"originalStartTime":{"dateTime":%q},"start":{"dateTime":%q},"end":{"dateTime":%q}}`,
		id, updated, series, original, start, start)
}

func oddCancelled(id, series, original string) string {
	return fmt.Sprintf(`{"id":%q,"status":"cancelled","updated":"2026-03-01T00:00:00Z","recurringEventId":%q,"originalStartTime":{"dateTime":%q}}`, id, series, original)
}

// oddCalendars are calendars with what other readers choke on or read otherwise, and
// when it takes place.
var oddCalendars = map[string]struct {
	zone   string
	events []string
	want   []string
}{
	"exceptions": {"Europe/Berlin", []string{
		oddSeries("s", "2026-12-01T09:00:00+01:00", "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=5", "EXDATE;TZID=Europe/Berlin:20261202T090000"),
		oddException("s_20261202T080000Z", "s", "2026-12-02T08:00:00Z", "2026-12-02T12:00:00Z", "2026-02-02T00:00:00Z"),
		oddException("s_twin", "s", "2026-12-02T09:00:00+01:00", "2026-12-02T15:00:00Z", "2026-02-01T00:00:00Z"),
		oddCancelled("s_20261203T080000Z", "s", "2026-12-03T08:00:00Z"),
		oddCancelled("s_gone", "s", "2026-12-04T08:00:00Z"),
		oddException("s_20261204T080000Z", "s", "2026-12-04T08:00:00Z", "2026-12-04T13:00:00Z", "2026-02-01T00:00:00Z"),
	}, []string{"s@x 2026-12-01T08:00:00Z", "s@x 2026-12-02T12:00:00Z", "s@x 2026-12-04T13:00:00Z", "s@x 2026-12-05T08:00:00Z"}},
	"series in UTC": {"Europe/Berlin", []string{
		oddSeries("u", "2026-10-18T23:00:00Z", "UTC", "RRULE:FREQ=WEEKLY;BYDAY=SU;COUNT=3"),
		oddSeries("g", "2026-10-19T09:00:00+02:00", "GMT+02:00", "RRULE:FREQ=WEEKLY;COUNT=3"),
		oddSeries("h", "2026-10-19T01:00:00+05:30", "UTC+05:30", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3"),
	}, []string{
		"g@x 2026-10-19T07:00:00Z", "g@x 2026-10-26T07:00:00Z", "g@x 2026-11-02T07:00:00Z",
		"h@x 2026-10-18T19:30:00Z", "h@x 2026-10-25T19:30:00Z", "h@x 2026-11-01T19:30:00Z",
		"u@x 2026-10-18T23:00:00Z", "u@x 2026-10-25T23:00:00Z", "u@x 2026-11-01T23:00:00Z",
	}},
	"empty series": {"UTC+05:30", []string{
		oddSeries("none", "2026-12-01T09:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=2", "EXDATE:20261201T090000Z,20261202T090000Z"),
		oddSeries("never", "2026-12-01T10:00:00Z", "UTC", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
		oddSeries("over", "2026-12-01T11:00:00Z", "UTC", "RRULE:FREQ=DAILY;UNTIL=20261101T000000Z"),
		oddSeries("moved", "2026-12-01T12:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=1", "EXDATE:20261201T120000Z"),
		oddException("moved_20261201T120000Z", "moved", "2026-12-01T12:00:00Z", "2026-12-02T12:00:00Z", "2026-02-01T00:00:00Z"),
		oddException("lost_20261201T130000Z", "lost", "2026-12-01T13:00:00Z", "2026-12-02T13:00:00Z", "2026-02-01T00:00:00Z"),
	}, []string{"never@x 2026-12-01T10:00:00Z", "over@x 2026-12-01T11:00:00Z", "moved@x 2026-12-02T12:00:00Z", "lost@google.com 2026-12-02T13:00:00Z"}},
	"far away": {"Europe/Berlin", []string{
		`{"id":"first","iCalUID":"first@x","status":"odd","start":{"dateTime":"0001-01-01T09:00:00Z","timeZone":"Europe/Berlin"}}`,
		`{"id":"last","iCalUID":"last@x","status":"confirmed","start":{"dateTime":"9999-12-31T09:00:00Z","timeZone":"Europe/Berlin"}}`,
		`{"id":"now","iCalUID":"now@x","status":"confirmed","start":{"dateTime":"2026-12-10T09:00:00+01:00","timeZone":"Europe/Berlin"},"reminders":{"overrides":[{"minutes":-5}]}}`,
	}, []string{"now@x 2026-12-10T08:00:00Z"}},
	"rules": {"Europe/Berlin", []string{
		oddSeries("two", "2026-12-01T09:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=3", "RRULE:FREQ=WEEKLY;COUNT=3"),
		oddSeries("away", "2026-12-01T10:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=4", "EXRULE:FREQ=DAILY;INTERVAL=2;COUNT=2"),
		oddSeries("outside", "2026-11-30T11:00:00Z", "UTC", "RRULE:FREQ=WEEKLY;BYDAY=TU,TH;COUNT=3"),
		`{"id":"days","iCalUID":"days@x","status":"confirmed","start":{"date":"2026-12-10"},"recurrence":["RRULE:FREQ=HOURLY;UNTIL=20261211"]}`,
		`{"id":"early","iCalUID":"early@x","status":"confirmed","start":{"date":"2026-12-10"},"end":{"date":"2026-12-08"}}`,
		`{"id":"timed","iCalUID":"timed@x","status":"confirmed","start":{"dateTime":"2026-12-10T09:00:00Z"},"end":{"dateTime":"2026-12-10T08:00:00Z"}}`,
	}, []string{
		"two@x 2026-12-01T09:00:00Z", "two@x 2026-12-02T09:00:00Z", "two@x 2026-12-03T09:00:00Z", "two@x 2026-12-08T09:00:00Z", "two@x 2026-12-15T09:00:00Z",
		"away@x 2026-12-02T10:00:00Z", "away@x 2026-12-04T10:00:00Z",
		"outside@x 2026-11-30T11:00:00Z", "outside@x 2026-12-01T11:00:00Z", "outside@x 2026-12-03T11:00:00Z", "outside@x 2026-12-08T11:00:00Z",
		"days@x 2026-12-10", "days@x 2026-12-11", "early@x 2026-12-10", "timed@x 2026-12-10T09:00:00Z",
	}},
}

// TestExportsThatOtherReadersTake: a second library finds in the files what Headroom
// does, and one file that cannot be written keeps none of the others.
func TestExportsThatOtherReadersTake(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	for name, odd := range oddCalendars {
		c, err := r.fake.AddCalendar(ann, calendar.Info{ID: name})
		if err != nil {
			t.Fatal(err)
		}
		c.SetZone(odd.zone)
		for _, event := range odd.events {
			if _, err := c.Put(json.RawMessage(event)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.calendars(r.run().Store())
	folder := t.TempDir()
	blocked := export.ICSPath(folder, ann)
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, problems, code := r.command(path, "calendar", "export", ann, "--out", folder)
	if code != 1 || !strings.Contains(problems, "1 of 6 calendars are not exported") || !strings.Contains(problems, blocked+" exists already") {
		t.Errorf("with one file in the way: exit %d, %s", code, problems)
	}
	if strings.Count(out, "exported ") != len(oddCalendars) {
		t.Errorf("exported:\n%s", out)
	}

	python := secondLibrary(t)
	var asked []askedSpan
	for name := range oddCalendars {
		asked = append(asked, askedSpan{Path: export.ICSPath(folder, name), Zone: "UTC", From: "2026-10-01", To: "2027-10-01"})
	}
	read := readings(t, python, asked)
	for name, odd := range oddCalendars {
		file := read[export.ICSPath(folder, name)]
		got := []string{}
		for _, o := range file.Occurrences {
			got = append(got, o[0]+" "+o[1])
		}
		slices.Sort(got) // twins stay
		if diff := cmp.Diff(sorted(slices.Clone(odd.want)), got); diff != "" || file.Error != "" {
			text, _ := os.ReadFile(filepath.Clean(export.ICSPath(folder, name)))
			t.Errorf("%s: %s (-Headroom +second library):\n%s\n%s", name, file.Error, diff, text)
		}
	}
}
