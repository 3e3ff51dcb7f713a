package fakegoogle_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lab/fakegoogle"
	fakecalendar "headroom/internal/lab/fakegoogle/calendar"
)

var daysOnly = strings.NewReplacer("T090000Z", "", "T235959Z", "", "T000000Z", "", "DATE:", "DATE;VALUE=DATE:")

// days are the days of the month on which events begin.
func days(events []*calendar.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, (e.Start.Date + e.Start.DateTime)[len("2026-03-"):len("2026-03-02")])
	}
	return all
}

// A series begins with its start, whether its rule has it or not.
func TestTheStartOfASeriesIsItsFirstOccurrence(t *testing.T) {
	for _, test := range []struct {
		recurrence []string
		want       []string // days of March 2026, which begins on a Sunday
	}{
		{[]string{"RRULE:FREQ=WEEKLY;BYDAY=TU,TH,SA;COUNT=5"}, []string{"02", "03", "05", "07", "10", "12"}},
		{[]string{"RRULE:FREQ=WEEKLY;BYDAY=MO,TH;COUNT=3"}, []string{"02", "05", "09"}},
		{[]string{"RRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20260310T235959Z"}, []string{"02", "03", "10"}},
		{[]string{"RRULE:FREQ=MONTHLY;BYMONTHDAY=13;COUNT=1"}, []string{"02", "13"}},
		{[]string{"RRULE:FREQ=DAILY;UNTIL=20260301T000000Z"}, []string{"02"}},
		{[]string{"RRULE:FREQ=WEEKLY;BYDAY=TU;COUNT=2", "EXDATE:20260302T090000Z"}, []string{"03", "10"}},
		{[]string{"RDATE:20260304T090000Z"}, []string{"02", "04"}},
	} {
		for _, allDay := range []bool{false, true} {
			server, url := start(t, fakegoogle.Options{})
			e := fakecalendar.Event{
				Start: &fakecalendar.EventTime{DateTime: "2026-03-02T09:00:00Z", TimeZone: "UTC"}, End: &fakecalendar.EventTime{DateTime: "2026-03-02T10:00:00Z", TimeZone: "UTC"},
				Recurrence: test.recurrence,
			}
			if allDay {
				e.Start, e.End = &fakecalendar.EventTime{Date: "2026-03-02"}, &fakecalendar.EventTime{Date: "2026-03-03"}
				e.Recurrence = nil
				for _, line := range test.recurrence {
					e.Recurrence = append(e.Recurrence, daysOnly.Replace(line))
				}
			}
			series := mustAdd(t, primary(t, server), e)
			events := calendarClient(t, url, ann).Events
			instances, err := events.Instances("primary", series.ID).Do()
			if err != nil {
				t.Fatal(err)
			}
			single, err := events.List("primary").SingleEvents(true).OrderBy("startTime").Do()
			if err != nil {
				t.Fatal(err)
			}
			for name, items := range map[string][]string{"instances": days(instances.Items), "list": days(single.Items)} {
				if !slices.Equal(items, test.want) {
					t.Errorf("%q, all day %t: %s gives %v, want %v", test.recurrence, allDay, name, items, test.want)
				}
			}
		}
	}
}
