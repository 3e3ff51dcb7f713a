package agenda_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/agenda"
	"headroom/jobs"
)

// The bound is of what lies within the span, and not of what is worked out for it.
func TestARuleOfEverySecond(t *testing.T) {
	master := series("2026-05-01T00:00:00+02:00", "Europe/Berlin", "RRULE:FREQ=SECONDLY")
	master = strings.ReplaceAll(master, "T01:00:00+02:00", "T00:00:01+02:00") // a second long
	span := agenda.Span{From: day("2026-06-01"), To: day("2026-06-02")}
	all, problems := agenda.New(jobs.Calendar{ID: "c"}, stored(t, master)).Occurrences(span)
	if len(all) != 24*3600 || len(problems) > 0 {
		t.Errorf("%d occurrences on a day, want one each second; %v", len(all), problems)
	}
	span.To = day("2026-06-03")
	if _, problems := agenda.New(jobs.Calendar{ID: "c"}, stored(t, master)).Occurrences(span); len(problems) != 1 {
		t.Errorf("on two days: problems %v, want one of too many", problems)
	}
}

func TestSeriesOfDaysListADayOnce(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=HOURLY;UNTIL=20260503":                  "2026-05-01 2026-05-02 2026-05-03",
		"FREQ=SECONDLY;UNTIL=20260503":                "2026-05-01 2026-05-02 2026-05-03",
		"FREQ=HOURLY;COUNT=30":                        "2026-05-01 2026-05-02",
		"FREQ=HOURLY;INTERVAL=36;UNTIL=20260507":      "2026-05-01 2026-05-02 2026-05-04 2026-05-05 2026-05-07",
		"FREQ=DAILY;BYHOUR=9,17;COUNT=4":              "2026-05-01 2026-05-02",
		"FREQ=MINUTELY;BYDAY=MO;UNTIL=20260512":       "2026-05-01 2026-05-04 2026-05-11",
		"FREQ=WEEKLY;BYDAY=FR;UNTIL=20260508T235959Z": "2026-05-01 2026-05-08",
	} {
		t.Run(rule, func(t *testing.T) {
			got := begins(t, "Europe/Berlin", agenda.Span{From: day("2026-01-01"), To: day("2028-01-01")},
				`{"id":"m","start":{"date":"2026-05-01"},"end":{"date":"2026-05-02"},"recurrence":["RRULE:`+rule+`"]}`)
			if strings.Join(got, " ") != want {
				t.Errorf("days %v, want %s", got, want)
			}
		})
	}
}

// Rules that never come to what they are limited to, or that the library cannot work
// out, cost little time and are one occurrence.
func TestRulesThatHaveNothing(t *testing.T) {
	for _, rule := range []string{
		"FREQ=SECONDLY;INTERVAL=2;BYSECOND=1", "FREQ=HOURLY;INTERVAL=2;BYHOUR=10", "FREQ=MINUTELY;INTERVAL=1440;BYMINUTE=30",
		"FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=3;BYMINUTE=3;BYSECOND=3", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
		"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31", "FREQ=MONTHLY;BYDAY=53MO", "FREQ=DAILY;COUNT=0", "FREQ=DAILY;BYHOUR=25",
		"FREQ=DAILY;INTERVAL=9223372036854775807", "FREQ=SECONDLY;INTERVAL=9223372036854775807", "FREQ=YEARLY;BYEASTER=4000",
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			all, problems := agenda.New(jobs.Calendar{ID: "c"}, stored(t, series("2026-05-01T09:00:00Z", "UTC", "RRULE:"+rule))).
				Occurrences(agenda.Span{From: day("2026-01-01"), To: day("9999-12-31")})
			if len(all) != 1 || time.Since(begun) > 20*time.Second {
				t.Errorf("%d occurrences after %s, problems %v; want the first one", len(all), time.Since(begun), problems)
			}
		})
	}
}

// What takes place comes in order, also where clocks skip times and lists have
// moments of a repeated hour.
func TestOccurrencesComeInOrder(t *testing.T) {
	all, _ := agenda.New(jobs.Calendar{ID: "c"}, stored(t,
		series("2026-03-28T00:15:00+01:00", "Europe/Berlin", "RRULE:FREQ=MINUTELY;INTERVAL=20", "RDATE:20261025T013000Z", "EXRULE:FREQ=HOURLY;INTERVAL=5"),
		strings.Replace(series("2026-03-28T02:45:00-04:00", "America/New_York", "RRULE:FREQ=HOURLY"), `"m"`, `"n"`, 1),
		strings.Replace(series("2026-03-01T02:45:00Z", "Pacific/Apia", "RRULE:FREQ=HOURLY;INTERVAL=7"), `"m"`, `"o"`, 1),
	)).Occurrences(agenda.Span{From: day("2026-03-28"), To: day("2026-12-01")})
	seen := map[string]bool{}
	for i, o := range all {
		if seen[o.ID] || i > 0 && o.Start.Time.Before(all[i-1].Start.Time) {
			t.Fatalf("%s at %s comes after %s", o.ID, o.Start.Time, all[i-1].ID)
		}
		seen[o.ID] = true
	}
	if len(all) < 20000 {
		t.Errorf("%d occurrences", len(all))
	}
}

// many is a calendar of 200 series that never end.
func many(t *testing.T) *agenda.Agenda {
	t.Helper()
	var events []string
	for i := range 200 {
		rule := []string{"FREQ=DAILY", "FREQ=HOURLY", "FREQ=SECONDLY", "FREQ=WEEKLY"}[i%4]
		if i%40 == 0 {
			rule = "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30" // never
		}
		events = append(events, strings.Replace(series("2020-05-01T09:00:00+02:00", "Europe/Berlin", "RRULE:"+rule), `"m"`, fmt.Sprintf(`"m%03d"`, i), 1))
	}
	return agenda.New(jobs.Calendar{ID: "c", TimeZone: "Europe/Berlin"}, stored(t, events...))
}

func TestAPageCostsWhatItHolds(t *testing.T) {
	a := many(t)
	span := agenda.Span{From: day("2026-01-01").Add(time.Minute / 2), To: day("9999-12-31")}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var got []string
	cursor := ""
	for range 3 {
		page, err := a.Page(t.Context(), span, cursor, 1000)
		if err != nil || page.Next == "" || len(page.Occurrences) != 1000 {
			t.Fatalf("%d occurrences, next %q, %v", len(page.Occurrences), page.Next, err)
		}
		for _, o := range page.Occurrences {
			got = append(got, o.ID)
		}
		cursor = page.Next
	}
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 1000 {
		t.Errorf("three pages took %d MB", spent)
	}
	whole, err := a.Page(t.Context(), span, "", 3000)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, o := range whole.Occurrences {
		want = append(want, o.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page by page (-at once +in pages):\n%s", diff)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != 3000 {
		t.Error("pages overlap")
	}
	for _, cursor := range []string{"x", "5", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z~0", "2026-01-01T00:00:00Z~x"} {
		if _, err := a.Page(t.Context(), span, cursor, 1); !errors.Is(err, agenda.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestAWalkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := many(t).Walk(ctx, agenda.Span{From: day("2026-01-01"), To: day("9999-12-31")}, time.Time{}, func(agenda.Occurrence) bool {
		if n++; n == 10 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || n > 10 {
		t.Errorf("%d occurrences, %v", n, err)
	}
}
