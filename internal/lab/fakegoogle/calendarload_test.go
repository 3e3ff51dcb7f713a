package fakegoogle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
)

// writeICS puts calendars into a folder, by their files' names.
func writeICS(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "\n", "\r\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// calendarText wraps events, a property a line, into a calendar.
func calendarText(events ...string) string {
	return "BEGIN:VCALENDAR\nVERSION:2.0\n" + strings.Join(events, "") + "END:VCALENDAR\n"
}

func eventText(lines string) string { return "BEGIN:VEVENT\n" + lines + "\nEND:VEVENT\n" }

func TestEventsOfAFileAreAsGoogleHasThem(t *testing.T) {
	const holidays = "en.usa#holiday@group.v.calendar.google.com"
	server, _ := start(t, fakegoogle.Options{})
	problems, err := server.LoadCalendars(ann, writeICS(t, map[string]string{
		"primary.ics": calendarText(
			"X-WR-TIMEZONE:Europe/Berlin\n",
			eventText("UID:s\nRECURRENCE-ID;TZID=Europe/Berlin:20260309T090000\nDTSTART;TZID=Europe/Berlin:20260309T100000\nDURATION:PT1H\nSUMMARY:later"),
			eventText("UID:s\nDTSTART;TZID=Europe/Berlin:20260302T090000\nDTEND;TZID=Europe/Berlin:20260302T100000\nSUMMARY:weekly\\, at nine\n"+
				"RRULE:FREQ=WEEKLY\nEXDATE;TZID=Europe/Berlin:20260316T090000\nSEQUENCE:2\n"+
				"ORGANIZER;CN=Bob:mailto:bob@example.com\nATTENDEE;PARTSTAT=ACCEPTED:MAILTO:Ann@example.com"),
			eventText("UID:s\nRECURRENCE-ID;TZID=Europe/Berlin:20260323T090000\nDTSTART;TZID=Europe/Berlin:20260323T090000\nSTATUS:CANCELLED"),
			eventText("UID:twice\nDTSTART;TZID=W. Europe Standard Time:20260302T120000\nDTEND;TZID=W. Europe Standard Time:20260302T130000"),
			eventText("UID:twice\nDTSTART:20260302T120000Z\nDTEND:20260302T130000Z"),
			eventText("UID:broken\nDTSTART:tomorrow"),
		),
		holidays + ".ics": calendarText(eventText("UID:day\nDTSTART;VALUE=DATE:20260812\nRRULE:FREQ=YEARLY"),
			eventText("UID:day\nRECURRENCE-ID;VALUE=DATE:20270812\nDTSTART;VALUE=DATE:20270813")),
		"nonsense.ics": "nothing of the kind",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, p := range problems {
		files = append(files, p.File)
	}
	if !slices.Contains(files, "primary.ics") || !slices.Contains(files, "nonsense.ics") || slices.Contains(files, holidays+".ics") {
		t.Errorf("problems %+v", problems)
	}

	events := server.Calendar(ann, "primary").Events()
	if len(events) != 5 {
		t.Fatalf("%d events, want 5: %+v", len(events), events)
	}
	series, first, second, later, cancelled := events[0], events[1], events[2], events[3], events[4]
	if diff := cmp.Diff(calendar.Event{
		Kind: series.Kind, Etag: series.Etag, ID: series.ID, Status: "confirmed", Created: series.Created, Updated: series.Updated,
		Summary: "weekly, at nine", ICalUID: "s", Sequence: 2, EventType: "default", Reminders: series.Reminders,
		Start:      &calendar.EventTime{DateTime: "2026-03-02T09:00:00+01:00", TimeZone: "Europe/Berlin"},
		End:        &calendar.EventTime{DateTime: "2026-03-02T10:00:00+01:00", TimeZone: "Europe/Berlin"},
		Recurrence: []string{"RRULE:FREQ=WEEKLY", "EXDATE;TZID=Europe/Berlin:20260316T090000"},
		Creator:    &calendar.EventPerson{Email: ann, Self: true},
		Organizer:  &calendar.EventPerson{Email: "bob@example.com", DisplayName: "Bob"},
		Attendees:  []calendar.EventAttendee{{Email: "Ann@example.com", Self: true, ResponseStatus: "accepted"}},
	}, series, cmpopts.IgnoreUnexported(calendar.Event{})); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if first.ID == second.ID || first.ICalUID != "twice" || second.ICalUID != "twice" ||
		*first.Start != (calendar.EventTime{DateTime: "2026-03-02T12:00:00+01:00", TimeZone: "Europe/Berlin"}) ||
		*second.Start != (calendar.EventTime{DateTime: "2026-03-02T13:00:00+01:00", TimeZone: "UTC"}) {
		t.Errorf("two of the same UID: %+v and %+v", first, second)
	}
	if later.ID != series.ID+"_20260309T080000Z" || later.RecurringEventID != series.ID || later.OriginalStartTime.DateTime != "2026-03-09T09:00:00+01:00" ||
		later.Start.DateTime != "2026-03-09T10:00:00+01:00" || later.End.DateTime != "2026-03-09T11:00:00+01:00" {
		t.Errorf("moved occurrence: %+v", later)
	}
	if cancelled.ID != series.ID+"_20260323T080000Z" || cancelled.Status != "cancelled" || cancelled.Start != nil || cancelled.OriginalStartTime == nil {
		t.Errorf("cancelled occurrence: %+v", cancelled)
	}
	days := server.Calendar(ann, holidays).Events()
	if len(days) != 2 || *days[0].End != (calendar.EventTime{Date: "2026-08-13"}) || days[1].ID != days[0].ID+"_20270812" || *days[1].OriginalStartTime != (calendar.EventTime{Date: "2027-08-12"}) {
		t.Errorf("days: %+v", days)
	}
}

func TestZonesOfAFileGetIANANames(t *testing.T) {
	zone := func(lines string) string { return "BEGIN:VTIMEZONE\n" + lines + "\nEND:VTIMEZONE\n" }
	part := func(name, begin, offset string) string {
		return "BEGIN:" + name + "\nDTSTART:" + begin + "T020000\nTZOFFSETFROM:+0000\nTZOFFSETTO:" + offset + "\nEND:" + name
	}
	for id, test := range map[string]struct{ definition, want string }{
		"America/New_York":                      {"", "America/New_York"},
		"/mozilla.org/20050126_1/America/Boise": {"", "America/Boise"},
		"Mine":                                  {"X-LIC-LOCATION:Asia/Tokyo", "Asia/Tokyo"},
		"Pacific Standard Time":                 {"", "America/Los_Angeles"},
		"East":                                  {part("DAYLIGHT", "20070311", "-0400") + "\n" + part("STANDARD", "20071104", "-0500"), "America/New_York"},
		"South":                                 {part("DAYLIGHT", "20081005", "+1100") + "\n" + part("STANDARD", "20080406", "+1000"), "Australia/Sydney"},
		"Fixed":                                 {part("STANDARD", "19700101", "+0200"), "Etc/GMT-2"},
		"Nowhere/Middle":                        {"", "Europe/Berlin"}, // the calendar's, and reported
	} {
		text := "X-WR-TIMEZONE:Europe/Berlin\n"
		if test.definition != "" {
			text += zone("TZID:" + id + "\n" + test.definition)
		}
		server, _ := start(t, fakegoogle.Options{})
		problems, err := server.LoadCalendars(ann, writeICS(t, map[string]string{"primary.ics": calendarText(text, eventText("UID:x\nDTSTART;TZID="+id+":20260302T090000"))}))
		if err != nil {
			t.Fatal(err)
		}
		events := server.Calendar(ann, "primary").Events()
		if len(events) != 1 || events[0].Start.TimeZone != test.want || (len(problems) == 1) != (id == "Nowhere/Middle") {
			t.Errorf("%s: %+v, problems %+v; want zone %s", id, events, problems, test.want)
		}
	}
}

// A definition's name is text with escapes; times name it as a parameter, quoted
// or with the same escapes.
func TestZonesWithACommaInTheirNameAreFound(t *testing.T) {
	definition := "BEGIN:VTIMEZONE\nTZID:Kuala Lumpur\\, Singapore\nBEGIN:STANDARD\nDTSTART:19700101T000000\n" +
		"TZOFFSETFROM:+0800\nTZOFFSETTO:+0800\nEND:STANDARD\nEND:VTIMEZONE\n"
	for _, param := range []string{`"Kuala Lumpur, Singapore"`, `Kuala Lumpur\, Singapore`, `Kuala Lumpur, Singapore`} {
		server, _ := start(t, fakegoogle.Options{})
		problems, err := server.LoadCalendars(ann, writeICS(t, map[string]string{"primary.ics": calendarText(definition,
			eventText("UID:x\nDTSTART;TZID="+param+":20260302T090000\nDTEND;TZID="+param+":20260302T100000\n"+
				"RRULE:FREQ=DAILY;COUNT=2\nEXDATE;TZID="+param+":20260303T090000"))}))
		if err != nil {
			t.Fatal(err)
		}
		events := server.Calendar(ann, "primary").Events()
		if len(events) != 1 || len(problems) != 0 ||
			*events[0].Start != (calendar.EventTime{DateTime: "2026-03-02T01:00:00Z", TimeZone: "Etc/GMT-8"}) ||
			!slices.Contains(events[0].Recurrence, "EXDATE;TZID=Etc/GMT-8:20260303T090000") {
			t.Errorf("TZID=%s: %+v, problems %+v", param, events, problems)
		}
	}
}

func TestAnUnreadableEndCostsTheEndAlone(t *testing.T) {
	for lines, want := range map[string]calendar.EventTime{
		"DTSTART:20260302T090000Z\nDTEND:soon":                       {DateTime: "2026-03-02T09:00:00Z", TimeZone: "UTC"},
		"DTSTART:20260302T090000Z\nDTEND;TZID=UTC:20261302T090000":   {DateTime: "2026-03-02T09:00:00Z", TimeZone: "UTC"},
		"DTSTART;VALUE=DATE:20260302\nDTEND;VALUE=DATE:2026-03-03":   {Date: "2026-03-03"},
		"DTSTART:20260302T090000Z\nDTEND:":                           {DateTime: "2026-03-02T09:00:00Z", TimeZone: "UTC"},
		"DTSTART:20260302T090000Z\nDURATION:an hour\nDTEND:nonsense": {DateTime: "2026-03-02T09:00:00Z", TimeZone: "UTC"},
	} {
		server, _ := start(t, fakegoogle.Options{})
		problems, err := server.LoadCalendars(ann, writeICS(t, map[string]string{"primary.ics": calendarText(eventText("UID:x\n" + lines))}))
		if err != nil {
			t.Fatal(err)
		}
		events := server.Calendar(ann, "primary").Events()
		if len(events) != 1 || *events[0].End != want || len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Cause, "its end cannot be read") {
			t.Errorf("%q: %+v, problems %+v; want one event that ends %+v", lines, events, problems, want)
		}
	}
}

func TestMadeUpCalendarsAreTheSameEachTime(t *testing.T) {
	var before [][]string
	for range 2 {
		server, _ := start(t, fakegoogle.Options{Seed: 7})
		if _, err := server.LoadCalendars(ann, "generate:3x40"); err != nil {
			t.Fatal(err)
		}
		var all [][]string
		for _, c := range server.Calendars(ann) {
			var events []string
			for _, e := range c.Events() {
				when := ""
				if e.Start != nil {
					when = e.Start.Date + e.Start.DateTime
				}
				events = append(events, strings.Join([]string{e.ID, e.Status, e.Summary, when}, " "))
			}
			if len(events) != 40 {
				t.Errorf("%s has %d events, want 40", c.ID(), len(events))
			}
			all = append(all, events)
		}
		if before != nil && cmp.Diff(before, all) != "" || len(all) != 3 {
			t.Errorf("%d calendars, that differ: %s", len(all), cmp.Diff(before, all))
		}
		before = all
	}
	server, _ := start(t, fakegoogle.Options{})
	for _, spec := range []string{"generate:x", "generate:0x3", "generate:-1", "generate:2000000", t.TempDir(), "no/such/folder"} {
		if _, err := server.LoadCalendars(ann, spec); err == nil {
			t.Errorf("%s is taken", spec)
		}
	}
}
