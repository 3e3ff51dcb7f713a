package calendar

import (
	"testing"
	"time"
)

func TestWhatQuickAddUnderstands(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 10, 30, 0, 0, berlin) // a Monday
	for text, want := range map[string][3]string{      // summary, start, end
		"Appointment at Somewhere on June 3rd 10am-10:25am": {"Appointment at Somewhere", "2026-06-03T10:00:00+02:00", "2026-06-03T10:25:00+02:00"},
		"Lunch with Bob tomorrow at 12:30":                  {"Lunch with Bob", "2026-03-03T12:30:00+01:00", "2026-03-03T13:30:00+01:00"},
		"Call 11am":                                         {"Call", "2026-03-02T11:00:00+01:00", "2026-03-02T12:00:00+01:00"},
		"Call 9am":                                          {"Call", "2026-03-03T09:00:00+01:00", "2026-03-03T10:00:00+01:00"},
		"Dinner Friday 7pm to 9pm":                          {"Dinner", "2026-03-06T19:00:00+01:00", "2026-03-06T21:00:00+01:00"},
		"Watch monday 11pm-1am":                             {"Watch", "2026-03-09T23:00:00+01:00", "2026-03-10T01:00:00+01:00"},
		"Review 11-1pm today":                               {"Review", "2026-03-02T11:00:00+01:00", "2026-03-02T13:00:00+01:00"},
		"Holiday on 2026-08-12":                             {"Holiday", "2026-08-12", "2026-08-13"},
		"Birthday January 5":                                {"Birthday", "2027-01-05", "2027-01-06"},
		"Birthday January 5, 2026":                          {"Birthday", "2026-01-05", "2026-01-06"},
		"Chapters 3-4 of the book":                          {"Chapters 3-4 of the book", "2026-03-02T10:30:00+01:00", "2026-03-02T11:30:00+01:00"},
		"tomorrow":                                          {"tomorrow", "2026-03-03", "2026-03-04"},
		"At 77:99 and 13pm":                                 {"At 77:99 and 13pm", "2026-03-02T10:30:00+01:00", "2026-03-02T11:30:00+01:00"},
	} {
		e := quickEvent(text, now)
		if got := [3]string{e.Summary, e.Start.Date + e.Start.DateTime, e.End.Date + e.End.DateTime}; got != want {
			t.Errorf("%q = %q, want %q", text, got, want)
		}
	}
}
