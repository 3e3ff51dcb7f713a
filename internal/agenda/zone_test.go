package agenda_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headroom/internal/agenda"
	"headroom/jobs"
)

// Names of zones that are none of IANA's, as Google gives them out.
func TestZonesByOtherNames(t *testing.T) {
	for _, row := range []struct {
		zone, start string // of the event; begun in winter
		calendar    string
		summer      string // the beginning in UTC on the first of July
		notices     int
	}{
		{"GMT+02:00", "2026-12-01T09:00:00+02:00", "Europe/Berlin", "07:00", 1},
		{"GMT+02:00", "2026-12-01T09:00:00", "Europe/Berlin", "07:00", 1},
		{"UTC-3", "2026-12-01T04:00:00-03:00", "UTC", "07:00", 1},
		{"+0530", "2026-12-01T12:30:00+05:30", "UTC", "07:00", 1},
		{"(GMT-03:00) Buenos Aires", "2026-12-01T04:00:00-03:00", "UTC", "07:00", 1},
		{"Custom/Foo", "2026-12-01T09:00:00+02:00", "Europe/Berlin", "07:00", 1},
		{"Custom/Foo", "2026-12-01T07:00:00Z", "Europe/Berlin", "07:00", 1},
		{"Local", "2026-12-01T09:00:00+02:00", "Europe/Berlin", "07:00", 1},
		{"W. Europe Standard Time", "2026-12-01T08:00:00+01:00", "UTC", "06:00", 1},
		{"pacific daylight time", "2026-11-30T23:00:00-08:00", "UTC", "06:00", 1},
		{"/freeassociation.sourceforge.net/Europe/Berlin", "2026-12-01T08:00:00+01:00", "UTC", "06:00", 1},
		{"Europe/Berlin", "2026-12-01T08:00:00+01:00", "UTC", "06:00", 0},
		{"AMERICA/port-au-prince", "2026-12-01T02:00:00-05:00", "UTC", "06:00", 1},
		{"europe/isle_of_man", "2026-12-01T07:00:00Z", "UTC", "06:00", 1},
		{"europe/berlin", "2026-12-01T08:00:00+01:00", "UTC", "06:00", 1},
		{"utc", "2026-12-01T07:00:00Z", "Europe/Berlin", "07:00", 1},
		{"", "2026-12-01T08:00:00+01:00", "EUROPE/BERLIN", "06:00", 1},
		{"", "2026-12-01T09:00:00+02:00", "Custom/Foo", "07:00", 1},
		{"", "2026-12-01T09:00:00+02:00", "GMT+02:00", "07:00", 1},
		{"Custom/Foo", "2026-12-01T09:00:00+02:00", "Custom/Foo", "07:00", 1},
		{"", "2026-12-01T08:00:00+01:00", "W. Europe Standard Time", "06:00", 1},
	} {
		t.Run(row.zone+" in "+row.calendar+" "+row.start, func(t *testing.T) {
			when := fmt.Sprintf(`{"dateTime":%q,"timeZone":%q}`, row.start, row.zone)
			single := `{"id":"a","start":` + when + `,"end":` + when + `}`
			repeated := `{"id":"m","start":` + when + `,"end":` + when + `,"recurrence":["RRULE:FREQ=DAILY","EXDATE;TZID=` + row.zone + `:20270702T090000"]}`
			a := agenda.New(jobs.Calendar{ID: "c", TimeZone: row.calendar}, stored(t, single, repeated))
			begins := map[string]string{}
			all, problems := a.Occurrences(agenda.Span{From: day("2026-12-01"), To: day("2027-07-02")})
			for _, o := range all {
				begins[o.ID[:1]+o.Start.Time.Format(" 2006-01-02")] = o.Start.Time.Format("15:04")
			}
			if begins["a 2026-12-01"] != "07:00" || begins["m 2026-12-01"] != "07:00" || begins["m 2027-07-01"] != row.summer {
				t.Errorf("begins at %s, the series too at %s, and in summer at %s; want 07:00 and %s", begins["a 2026-12-01"], begins["m 2026-12-01"],
					begins["m 2027-07-01"], row.summer)
			}
			if len(problems) != row.notices || len(problems) > 0 && !problems[0].Notice {
				t.Errorf("problems = %v, want %d notices", problems, row.notices)
			}
			ics := written(t, a)
			if row.summer == "07:00" && strings.Contains(ics, "BEGIN:DAYLIGHT") && row.calendar != "Europe/Berlin" {
				t.Errorf("the file has clocks that change:\n%s", ics)
			}
		})
	}
}

func written(t *testing.T, a *agenda.Agenda) string {
	t.Helper()
	var ics strings.Builder
	if _, err := a.WriteICS(&ics); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(ics.String(), "\r\n ", "")
}

// An end before the start is the start; a day without an end is a day.
func TestEndsBeforeTheirStart(t *testing.T) {
	for _, row := range []struct {
		start, end, want string
		span             agenda.Span
		dtend            string
	}{
		{`{"dateTime":"2026-05-01T09:00:00Z"}`, `,"end":{"dateTime":"2026-05-01T08:00:00Z"}`, "09:00-09:00", agenda.Span{}, ""},
		{`{"dateTime":"2026-05-01T09:00:00Z"}`, ``, "09:00-09:00", agenda.Span{}, ""},
		{`{"date":"2026-05-02"}`, `,"end":{"date":"2026-05-01"}`, "2026-05-02-2026-05-02", agenda.Span{}, ""},
		{`{"date":"2026-05-02"}`, `,"end":{"date":"2026-05-02"}`, "2026-05-02-2026-05-02", agenda.Span{From: day("2026-05-02").Add(time.Hour), To: day("2026-05-03")}, ""},
		{`{"date":"2026-05-02"}`, ``, "2026-05-02-2026-05-03", agenda.Span{From: day("2026-05-02").Add(time.Hour), To: day("2026-05-03")}, "DTEND;VALUE=DATE:20260503"},
		{`{"date":"2026-05-02"}`, `,"end":{"dateTime":"2026-05-03T08:00:00Z"}`, "2026-05-02-2026-05-02", agenda.Span{}, ""},
	} {
		for _, recurrence := range []string{"", `,"recurrence":["RRULE:FREQ=DAILY;COUNT=1"]`} {
			event := `{"id":"a","start":` + row.start + row.end + recurrence + `}`
			t.Run(event, func(t *testing.T) {
				a := agenda.New(jobs.Calendar{ID: "c", TimeZone: "Europe/Berlin"}, stored(t, event))
				span := row.span
				if span.To.IsZero() {
					span = agenda.Span{From: day("2026-05-01"), To: day("2026-06-01")}
				}
				all, problems := a.Occurrences(span)
				if len(all) != 1 || len(problems) > 0 {
					t.Fatalf("occurrences %v, problems %v", all, problems)
				}
				got := all[0].Start.Date + "-" + all[0].End.Date
				if got == "-" {
					got = all[0].Start.Time.Format("15:04-") + all[0].End.Time.Format("15:04")
				}
				if got != row.want {
					t.Errorf("it lasts %s, want %s", got, row.want)
				}
				if within, _ := a.Within(span); !within["a"] {
					t.Error("it is not within")
				}
				if ics := written(t, a); strings.Count(ics, "DTEND") != strings.Count(row.dtend, "DTEND") || !strings.Contains(ics, row.dtend) {
					t.Errorf("its file, which should have %q:\n%s", row.dtend, ics)
				}
			})
		}
	}
}
