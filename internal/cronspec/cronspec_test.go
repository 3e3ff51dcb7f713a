package cronspec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/cronspec"
)

func TestADayOnWhichTheClockIsChanged(t *testing.T) {
	for _, tc := range []struct{ spec, zone, day, want string }{
		{"30 2 * * *", "America/New_York", "2026-03-08", "03:00 -04"},
		{"30 1 * * *", "America/New_York", "2026-11-01", "01:30 -04"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-04", "01:00 -02"},
		{"@daily", "America/Sao_Paulo", "2018-11-04", "01:00 -02"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-04", "02:30 +11"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-05", "01:45 +11"},
		{"0,30 2 * * *", "America/New_York", "2026-03-08", "03:00 -04"},            // one run for all that was skipped
		{"30 2,3 * * *", "America/New_York", "2026-03-08", "03:00 -04, 03:30 -04"}, // and the others when they are
		{"0 2,3 * * *", "America/New_York", "2026-03-08", "03:00 -04"},             // both fall on one moment
		{"0 1-3 * * *", "America/New_York", "2026-11-01", "01:00 -04, 02:00 -05, 03:00 -05"},
		{"CRON_TZ=America/New_York 30 2 * * *", "Europe/Berlin", "2026-03-08", "03:00 -04"},
	} {
		zone := tc.zone
		if strings.HasPrefix(tc.spec, "CRON_TZ") {
			zone = "America/New_York"
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.ParseInLocation(time.DateOnly, tc.day, loc)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, at := range between(t, tc.spec, tc.zone, day, day.AddDate(0, 0, 1)) {
			got = append(got, at.In(loc).Format("15:04 -07"))
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s in %s runs at %s on %s, want %s", tc.spec, tc.zone, text, tc.day, tc.want)
		}
	}
}

func TestEveryRealHourIsRun(t *testing.T) {
	for _, tc := range []struct {
		spec, zone, day string
		want            int
	}{
		{"0 * * * *", "America/New_York", "2026-03-08", 23},
		{"0 * * * *", "America/New_York", "2026-11-01", 25},
		{"@hourly", "America/New_York", "2026-11-01", 25},
		{"30 0-23 * * *", "America/New_York", "2026-11-01", 25},
		{"0 * * * *", "America/Sao_Paulo", "2018-11-04", 23},
		{"15 * * * *", "Australia/Lord_Howe", "2026-10-04", 24}, // the hour without :15 runs at :30
		{"0 * * * *", "Australia/Lord_Howe", "2026-04-05", 24},
		{"0 * * * *", "Europe/Berlin", "2026-06-01", 24},
		{"*/15 * * * *", "America/New_York", "2026-11-01", 100},
	} {
		loc, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.ParseInLocation(time.DateOnly, tc.day, loc)
		if err != nil {
			t.Fatal(err)
		}
		if got := between(t, tc.spec, tc.zone, day, day.AddDate(0, 0, 1)); len(got) != tc.want {
			t.Errorf("%s in %s runs %d times on %s, want %d", tc.spec, tc.zone, len(got), tc.day, tc.want)
		}
	}
}

// wallSpec is a specification and what it means, in words of its own.
type wallSpec struct {
	text    string
	fixed   bool
	matches func(wall time.Time) bool
}

var wallSpecs = []wallSpec{
	{"30 2 * * *", true, func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }},
	{"0 0 * * *", true, func(w time.Time) bool { return w.Hour() == 0 && w.Minute() == 0 }},
	{"*/20 0-3 * * *", true, func(w time.Time) bool { return w.Hour() <= 3 && w.Minute()%20 == 0 }},
	{"15 1,2,23 * * *", true, func(w time.Time) bool {
		return w.Minute() == 15 && (w.Hour() == 1 || w.Hour() == 2 || w.Hour() == 23)
	}},
	{"5 2 * * 0", true, func(w time.Time) bool { return w.Weekday() == 0 && w.Hour() == 2 && w.Minute() == 5 }},
	{"0 12 30 12 *", true, func(w time.Time) bool {
		return w.Month() == 12 && w.Day() == 30 && w.Hour() == 12 && w.Minute() == 0
	}},
	{"0 * * * *", false, func(w time.Time) bool { return w.Minute() == 0 }},
	{"10,40 */3 * * *", false, func(w time.Time) bool { return w.Hour()%3 == 0 && w.Minute()%30 == 10 }},
	{"15 * 4 * *", false, func(w time.Time) bool { return w.Day() == 4 && w.Minute() == 15 }},
}

// walk finds the runs of a spec by looking at every minute of UTC in turn.
func walk(s wallSpec, clock []minute, from time.Time) (all []time.Time) {
	var high time.Time // the latest that the clock has shown
	for i, m := range clock {
		if !m.at.Before(from) {
			run := s.matches(m.wall) && (!s.fixed || m.wall.After(high))
			last := clock[i-1].wall
			for skipped := last.Add(time.Minute); skipped.Before(m.wall); skipped = skipped.Add(time.Minute) {
				if s.matches(skipped) && (s.fixed || m.wall.Sub(last) <= time.Hour) {
					run = true
				}
			}
			if run {
				all = append(all, m.at)
			}
		}
		if m.wall.After(high) {
			high = m.wall
		}
	}
	return all
}

// A minute is a moment, and what the clock shows then, as if that were UTC.
type minute struct{ at, wall time.Time }

// minutesOf lists the minutes of [from, until), after those of two days before.
func minutesOf(loc *time.Location, from, until time.Time) (all []minute) {
	for at := from.Add(-48 * time.Hour); at.Before(until); at = at.Add(time.Minute) {
		l := at.In(loc)
		all = append(all, minute{at, time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)})
	}
	return all
}

func TestRunsAreThoseOfAWalkOverEveryMinute(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Europe/Berlin",
		"Africa/Casablanca", "Asia/Kathmandu", "America/St_Johns", "Asia/Beirut", "Pacific/Apia", "Antarctica/Troll", "America/Havana"}
	years := []int{2011, 2018, 2026}
	if testing.Short() {
		zones, years = zones[:4], years[2:]
	}
	for _, zone := range zones {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range years {
			from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			// Only around changes is there anything to find; the rest of the year goes by.
			for _, change := range append(changes(loc, from), from.AddDate(0, 0, 100)) {
				since, until := change.Add(-30*time.Hour).Truncate(time.Minute), change.Add(54*time.Hour).Truncate(time.Minute)
				minutes := minutesOf(loc, since, until)
				for _, s := range wallSpecs {
					want := walk(s, minutes, since)
					if diff := cmp.Diff(want, between(t, s.text, zone, since, until)); diff != "" {
						t.Errorf("%s in %s around %s (-want +got):\n%s", s.text, zone, change, diff)
					}
				}
			}
		}
	}
}

// between lists the runs in [from, until), and holds them to their order.
func between(t *testing.T, spec, zone string, from, until time.Time) []time.Time {
	t.Helper()
	var all []time.Time
	for at := from.Add(-time.Second); ; {
		next, err := next(spec, zone, at, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(next) == 0 || !next[0].Before(until) {
			return all
		}
		if !next[0].After(at) {
			t.Fatalf("%s in %s: %s is followed by %s", spec, zone, at, next[0])
		}
		all, at = append(all, next[0]), next[0]
	}
}

// changes lists when the clock is changed within a year from a moment.
func changes(loc *time.Location, from time.Time) (all []time.Time) {
	for at := from; ; {
		_, end := at.In(loc).ZoneBounds()
		if end.IsZero() || end.After(from.AddDate(1, 0, 0)) {
			return all
		}
		all, at = append(all, end.UTC()), end
	}
}

func TestAnIntervalIsCountedFrom1970(t *testing.T) {
	from := time.Date(2026, 5, 1, 10, 7, 3, 500e6, time.UTC)
	for _, tc := range []struct{ spec, want string }{
		{"@every 5m", "10:10:00 10:15:00"},
		{"@every 1s", "10:07:04 10:07:05"},
		{"@every 1500ms", "10:07:04 10:07:06"},
		{"@every 24h", "00:00:00 00:00:00"},
	} {
		next, err := next(tc.spec, "", from, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(next[0].Format(time.TimeOnly), " ", next[1].Format(time.TimeOnly)); got != tc.want {
			t.Errorf("%s after %s: %s, want %s", tc.spec, from.Format(time.TimeOnly), got, tc.want)
		}
	}
}

func TestSpecsThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ spec, zone string }{
		{"", ""}, {"* * * *", ""}, {"61 * * * *", ""}, {"0 0 30 2 *", ""}, {"@every", ""}, {"@every 5", ""},
		{"@every 10ms", ""}, {"@every -5m", ""}, {"@never", ""}, {"TZ=", ""}, {"CRON_TZ=UTC", ""}, {"CRON_TZ=UTC TZ=UTC", ""},
		{"0 0 * * *", "Mars/Olympus"}, {"0 0 * * *", "Local"}, {"0 0 0 * * *", ""}, {"@reboot", ""}, {"0 */0 * * *", ""},
	} {
		if got, err := next(tc.spec, tc.zone, time.Now(), 1); err == nil {
			t.Errorf("%q in %q is taken, next %s", tc.spec, tc.zone, got)
		}
	}
}

// next returns the first moments that a specification names after one, at most n.
func next(spec, zone string, from time.Time, n int) (all []time.Time, err error) {
	slots, err := cronspec.Parse(spec, zone)
	if err != nil {
		return nil, err
	}
	for at := slots.Next(from); len(all) < n && !at.IsZero(); at = slots.Next(at) {
		all = append(all, at)
	}
	return all, nil
}
