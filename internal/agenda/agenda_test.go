package agenda_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/agenda"
	"headroom/jobs"
)

// stored makes stored events of JSON as Google gives it.
func stored(t *testing.T, texts ...string) (all []jobs.Event) {
	t.Helper()
	for _, text := range texts {
		var e struct {
			ID, Status, ICalUID, RecurringEventID string
			Deleted                               bool
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		one := jobs.Event{Calendar: "c", ID: e.ID, Status: e.Status, ICalUID: e.ICalUID, Series: e.RecurringEventID, JSON: json.RawMessage(text),
			Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		if e.Deleted {
			one.DeletedAt = one.Updated
		}
		all = append(all, one)
	}
	return all
}

func day(text string) time.Time {
	t, err := time.Parse("2006-01-02", text)
	if err != nil {
		panic(err)
	}
	return t
}

// series is the JSON of a timed series of an hour.
func series(start, zone string, recurrence ...string) string {
	begin, err := time.Parse(time.RFC3339, start)
	if err != nil {
		panic(err)
	}
	lines, err := json.Marshal(recurrence)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"id":"m","iCalUID":"m@x","summary":"Stand-up","start":{"dateTime":%q,"timeZone":%q},"end":{"dateTime":%q,"timeZone":%q},"recurrence":%s}`,
		start, zone, begin.Add(time.Hour).Format(time.RFC3339), zone, lines)
}

// begins lists the starts of what takes place, as ids' ends and times.
func begins(t *testing.T, zone string, span agenda.Span, texts ...string) []string {
	t.Helper()
	all, problems := agenda.New(jobs.Calendar{ID: "c", TimeZone: zone}, stored(t, texts...)).Occurrences(span)
	for _, p := range problems {
		t.Errorf("problem: %s", p)
	}
	got := []string{}
	for _, o := range all {
		if o.Start.Date != "" {
			got = append(got, o.Start.Date)
			continue
		}
		got = append(got, o.Start.Time.UTC().Format("01-02T15:04"))
	}
	return got
}

func TestWhenEventsTakePlace(t *testing.T) {
	year := agenda.Span{From: day("2026-01-01"), To: day("2027-01-01")}
	tests := []struct {
		name   string
		events []string
		span   agenda.Span // 2026 if zero
		want   string
	}{
		{"an event that does not repeat",
			[]string{`{"id":"a","start":{"dateTime":"2026-03-10T10:00:00+01:00"},"end":{"dateTime":"2026-03-10T11:00:00+01:00"}}`},
			agenda.Span{}, "03-10T09:00"},
		{"an event that began before the span and has not ended",
			[]string{`{"id":"a","start":{"date":"2025-12-20"},"end":{"date":"2026-01-02"}}`}, agenda.Span{}, "2025-12-20"},
		{"an event whose last day is before the span",
			[]string{`{"id":"a","start":{"date":"2025-12-20"},"end":{"date":"2026-01-01"}}`}, agenda.Span{}, ""},
		{"a weekly series keeps its time of day when the clocks change",
			[]string{series("2026-10-26T09:00:00-04:00", "America/New_York", "RRULE:FREQ=WEEKLY;COUNT=2")}, agenda.Span{}, "10-26T13:00 11-02T14:00"},
		{"a time that the clocks skip is read with the offset before the gap",
			[]string{series("2026-03-07T02:30:00-05:00", "America/New_York", "RRULE:FREQ=DAILY;COUNT=3")}, agenda.Span{}, "03-07T07:30 03-08T07:30 03-09T06:30"},
		{"a time that clocks in the west skip, too",
			[]string{series("2026-03-28T02:30:00+01:00", "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3")}, agenda.Span{}, "03-28T01:30 03-29T01:30 03-30T00:30"},
		{"a time that the clocks show twice is the first",
			[]string{series("2026-10-31T01:30:00-04:00", "America/New_York", "RRULE:FREQ=DAILY;COUNT=3")}, agenda.Span{}, "10-31T05:30 11-01T05:30 11-02T06:30"},
		{"an end of a rule counts, in UTC",
			[]string{series("2026-11-01T23:00:00-05:00", "America/New_York", "RRULE:FREQ=DAILY;UNTIL=20261104T040000Z")}, agenda.Span{}, "11-02T04:00 11-03T04:00 11-04T04:00"},
		{"an end that is a day holds all of it",
			[]string{series("2026-11-02T23:00:00-05:00", "America/New_York", "RRULE:FREQ=DAILY;UNTIL=20261103")}, agenda.Span{}, "11-03T04:00 11-04T04:00"},
		{"days are days wherever",
			[]string{`{"id":"m","start":{"date":"2026-08-12"},"end":{"date":"2026-08-13"},"recurrence":["RRULE:FREQ=WEEKLY;UNTIL=20260826T000000Z","EXDATE;VALUE=DATE:20260819"]}`},
			agenda.Span{}, "2026-08-12 2026-08-26"},
		{"dates and other zones in lists",
			[]string{series("2026-05-01T09:00:00+02:00", "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=5", "EXDATE;TZID=America/New_York:20260502T030000",
				"EXDATE:20260503T070000Z,20260504T090000", "RDATE:20260601T100000", "RDATE;VALUE=DATE:20260602", "EXDATE;VALUE=DATE:20260504")},
			agenda.Span{}, "05-01T07:00 05-05T07:00 06-01T08:00 06-02T07:00"},
		{"the first occurrence is there though its rule has it not, and twice named is once there",
			[]string{series("2026-05-01T09:00:00+02:00", "Europe/Berlin", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2", "RDATE:20260504T070000Z")}, agenda.Span{}, "05-01T07:00 05-04T07:00 05-11T07:00"},
		{"two rules, and one that takes away",
			[]string{series("2026-05-01T09:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=4", "RRULE:FREQ=MONTHLY;COUNT=2", "EXRULE:FREQ=DAILY;INTERVAL=2;COUNT=2")}, agenda.Span{},
			"05-02T09:00 05-04T09:00 06-01T09:00"},
		{"moved, cancelled and stray exceptions",
			[]string{series("2026-05-01T09:00:00Z", "UTC", "RRULE:FREQ=DAILY;COUNT=3"),
				`{"id":"m_20260502T090000Z","recurringEventId":"m","start":{"dateTime":"2026-05-09T12:00:00Z"},"end":{"dateTime":"2026-05-09T13:00:00Z"},"originalStartTime":{"dateTime":"2026-05-02T11:00:00+02:00"}}`,
				`{"id":"m_20260503T090000Z","recurringEventId":"m","status":"cancelled","originalStartTime":{"dateTime":"2026-05-03T09:00:00Z"}}`,
				`{"id":"m_20260603T090000Z","recurringEventId":"m","start":{"dateTime":"2026-06-03T12:00:00Z"},"end":{"dateTime":"2026-06-03T13:00:00Z"},"originalStartTime":{"dateTime":"2026-06-03T09:00:00Z"}}`},
			agenda.Span{}, "05-01T09:00 05-09T12:00 06-03T12:00"},
		{"what was deleted, and a cancelled event",
			[]string{`{"id":"a","deleted":true,"start":{"date":"2026-05-01"},"end":{"date":"2026-05-02"}}`, `{"id":"b","status":"cancelled"}`}, agenda.Span{}, ""},
		{"an endless series far from its beginning",
			[]string{series("1970-01-01T09:00:00+01:00", "Europe/Berlin", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;WKST=SU")},
			agenda.Span{From: day("2026-07-01"), To: day("2026-07-20")}, "07-02T07:00 07-13T07:00 07-16T07:00"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.span.To.IsZero() {
				test.span = year
			}
			got := begins(t, "Australia/Brisbane", test.span, test.events...)
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSkippingAheadChangesNothing(t *testing.T) {
	for _, rule := range []string{
		"FREQ=WEEKLY;INTERVAL=3;BYDAY=SU,WE;WKST=SU", "FREQ=DAILY;INTERVAL=5;BYMONTH=1,7", "FREQ=HOURLY;INTERVAL=7;BYDAY=MO",
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,FR;BYSETPOS=-1", "FREQ=MINUTELY;INTERVAL=95;BYHOUR=9,10",
		"FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY;BYMONTH=3;BYDAY=2SU",
	} {
		t.Run(rule, func(t *testing.T) {
			master := series("2020-01-01T09:00:00+01:00", "Europe/Berlin", "RRULE:"+rule)
			whole := agenda.Span{From: day("2019-01-01"), To: day("2024-01-01")}
			var want []string
			all, _ := agenda.New(jobs.Calendar{ID: "c"}, stored(t, master)).Occurrences(whole)
			from := day("2023-02-15")
			for _, o := range all {
				if o.End.Time.After(from) {
					want = append(want, o.ID)
				}
			}
			var got []string
			later, _ := agenda.New(jobs.Calendar{ID: "c"}, stored(t, master)).Occurrences(agenda.Span{From: from, To: whole.To})
			for _, o := range later {
				got = append(got, o.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%d occurrences (-from the beginning +skipped ahead):\n%s", len(got), diff)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsSaid(t *testing.T) {
	a := agenda.New(jobs.Calendar{ID: "c", TimeZone: "Nowhere/Atoll"}, stored(t,
		series("2026-05-01T09:00:00Z", "UTC", "RRULE:FREQ=SOMETIMES", "RDATE:20260502T090000Z,never"),
		`{"id":"n","start":{"dateTime":"noon"},"end":{"dateTime":"noon"}}`,
		`{"id":"z","start":{"dateTime":"2026-05-01T09:00:00Z","timeZone":"Nowhere/Atoll"},"end":{"dateTime":"2026-05-01T10:00:00Z"},"recurrence":["RRULE:FREQ=DAILY"]}`))
	all, problems := a.Occurrences(agenda.Span{From: day("2026-01-01"), To: day("2027-01-01")})
	all = slices.DeleteFunc(all, func(o agenda.Occurrence) bool { return o.Series == "z" })
	if len(all) != 2 {
		t.Errorf("occurrences = %+v, want the first one and the one of a list", all)
	}
	var text strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&text, p)
	}
	for _, want := range []string{"calendar c: its time zone", "event m of calendar c: rule", "never", "event n of"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("problems have no %q:\n%s", want, &text)
		}
	}
	// Every second for two years is nothing to list.
	_, problems = agenda.New(jobs.Calendar{ID: "c"}, stored(t, series("2026-05-01T09:00:00Z", "UTC", "RRULE:FREQ=SECONDLY"))).
		Occurrences(agenda.Span{From: day("2026-01-01"), To: day("2028-01-01")})
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 100000 occurrences") {
		t.Errorf("problems = %v", problems)
	}
}

// A thin tombstone may have nothing but its id, from which the store knows which
// occurrence it cancels.
func TestAThinTombstoneCancelsItsOccurrence(t *testing.T) {
	span := agenda.Span{From: day("2026-03-01"), To: day("2026-04-01")}
	for _, row := range []struct{ series, start, want string }{
		{series("2026-03-09T15:00:00Z", "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3"), "2026-03-10T15:00:00Z", "9 11"},
		{`{"id":"m","start":{"date":"2026-03-09"},"end":{"date":"2026-03-10"},"recurrence":["RRULE:FREQ=DAILY;COUNT=3"]}`, "2026-03-10", "9 11"},
	} {
		events := append(stored(t, row.series), jobs.Event{ID: "m_x", Status: jobs.EventCancelled, Series: "m", OriginalStart: row.start,
			JSON: json.RawMessage(`{"id":"m_x","status":"cancelled"}`)})
		all, problems := agenda.New(jobs.Calendar{ID: "c", TimeZone: "UTC"}, events).Occurrences(span)
		var got []string
		for _, o := range all {
			got = append(got, strings.TrimPrefix(o.Start.Date, "2026-03-"))
			if o.Start.Date == "" {
				got[len(got)-1] = o.Start.Time.Format("2")
			} else {
				got[len(got)-1] = strings.TrimPrefix(got[len(got)-1], "0")
			}
		}
		if strings.Join(got, " ") != row.want || len(problems) > 0 {
			t.Errorf("without %s: days %v, problems %v; want %s", row.start, got, problems, row.want)
		}
	}
}

// Files have what other readers take, each line that some read otherwise left out.
func TestFilesForOtherReaders(t *testing.T) {
	const (
		daily     = "2026-12-01T09:00:00+01:00"
		exception = `{"id":%q,"recurringEventId":"m","updated":"x","originalStartTime":{"dateTime":"2026-12-02T08:00:00Z"},"start":{"dateTime":"2026-12-02T12:00:00Z"},"end":{"dateTime":"2026-12-02T13:00:00Z"}%s}`
		cancelled = `{"id":"m_x","recurringEventId":"m","status":"cancelled","originalStartTime":{"dateTime":"2026-12-02T08:00:00Z"}}`
	)
	for _, row := range []struct {
		name, zone string
		events     []string
		has, lacks []string
	}{
		{"an exception has the UID of its series", "UTC", []string{series(daily, "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3"), fmt.Sprintf(exception, "m_20261202T080000Z", "")},
			[]string{"RECURRENCE-ID;TZID=Europe/Berlin:20261202T090000\r\n"}, []string{"m_20261202T080000Z@google.com", "EXDATE"}},
		{"an exception takes place although its series leaves it out", "UTC",
			[]string{series(daily, "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;TZID=Europe/Berlin:20261202T090000,20261203T090000"), fmt.Sprintf(exception, "m_1", ""), cancelled},
			[]string{"EXDATE;TZID=Europe/Berlin:20261203T090000\r\n"}, []string{"EXDATE;TZID=Europe/Berlin:20261202T090000"}},
		{"of twins one stands", "UTC",
			[]string{series(daily, "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3"), fmt.Sprintf(exception, "m_1", `,"summary":"first"`), fmt.Sprintf(exception, "m_2", `,"sequence":2,"summary":"second"`)},
			[]string{"SUMMARY:second"}, []string{"SUMMARY:first"}},
		{"a date is left out once", "UTC", []string{series(daily, "Europe/Berlin", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE:20261202T080000Z"), cancelled},
			[]string{"EXDATE;TZID=Europe/Berlin:20261202T090000\r\nRRULE"}, nil},
		{"two rules", "UTC", []string{series(daily, "UTC", "RRULE:FREQ=DAILY;COUNT=2", "RRULE:FREQ=WEEKLY")},
			[]string{"RRULE:FREQ=WEEKLY\r\n", "RDATE:20261202T080000Z\r\n"}, []string{"DAILY"}},
		{"no zone that moves series in UTC", "Europe/Berlin", []string{series(daily, "UTC", "RRULE:FREQ=DAILY")}, nil, []string{"X-WR-TIMEZONE"}},
		{"a zone that moves nothing", "Europe/Berlin", []string{series(daily, "Europe/Berlin", "RRULE:FREQ=DAILY")}, []string{"X-WR-TIMEZONE;VALUE=TEXT:Europe/Berlin"}, nil},
		{"no zone that nobody knows", "UTC+05:30", nil, []string{"BEGIN:VTIMEZONE"}, []string{"X-WR-TIMEZONE"}},
		{"a series of nothing", "UTC", []string{series(daily, "UTC", "RRULE:FREQ=DAILY;COUNT=1", "EXDATE:20261201T080000Z")}, nil, []string{"VEVENT"}},
		{"a rule of nothing", "UTC", []string{series(daily, "UTC", "RRULE:FREQ=DAILY;INTERVAL=0;BYMONTH=2;BYMONTHDAY=30")}, []string{"VEVENT"}, []string{"RRULE", "RDATE"}},
		{"no interval of nothing", "UTC", []string{series(daily, "UTC", "RRULE:FREQ=DAILY;INTERVAL=0;COUNT=2")}, []string{"RRULE:FREQ=DAILY;COUNT=2\r\n"}, nil},
		{"series of days within days", "UTC", []string{`{"id":"m","start":{"date":"2026-12-01"},"recurrence":["RRULE:FREQ=SECONDLY;BYDAY=MO"]}`}, []string{"RRULE:FREQ=DAILY;BYDAY=MO\r\n"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			ics := written(t, agenda.New(jobs.Calendar{ID: "c", TimeZone: row.zone}, stored(t, row.events...)))
			for _, text := range row.has {
				if !strings.Contains(ics, text) {
					t.Errorf("it lacks %q:\n%s", text, ics)
				}
			}
			for _, text := range row.lacks {
				if strings.Contains(ics, text) {
					t.Errorf("it has %q:\n%s", text, ics)
				}
			}
		})
	}
}
