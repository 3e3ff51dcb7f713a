package gmail

import (
	"testing"
	"time"
)

func TestDatesWithTheNameOfAZone(t *testing.T) {
	// Names are not those of the place where the fake runs.
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	for _, local := range []string{"UTC", "America/New_York", "Asia/Shanghai"} { // CST is China's there
		zone, err := time.LoadLocation(local)
		if err != nil {
			t.Fatal(err)
		}
		time.Local = zone
		for text, hour := range map[string]int{
			"Mon, 02 Mar 2026 10:00:00 EDT":                         14,
			"Mon, 02 Mar 2026 10:00:00 EST":                         15,
			"Mon, 02 Mar 2026 10:00:00 CDT":                         15,
			"Mon, 02 Mar 2026 10:00:00 CST":                         16,
			"Mon, 02 Mar 2026 10:00:00 MDT":                         16,
			"Mon, 02 Mar 2026 10:00:00 MST":                         17,
			"Mon, 02 Mar 2026 10:00:00 pdt":                         17,
			"Mon, 02 Mar 2026 10:00:00 PST":                         18,
			"Mon, 02 Mar 2026 10:00:00 GMT":                         10,
			"Mon, 02 Mar 2026 10:00:00 UT":                          10,
			"Mon, 02 Mar 2026 10:00:00 Z":                           10,
			"Mon, 02 Mar 2026 10:00:00 A":                           10, // RFC 5322: as good as no offset
			"Mon, 02 Mar 2026 10:00:00 CEST":                        10,
			"2 Mar 2026 10:00 EDT (Eastern (New York) time)":        14,
			"Mon, 2 Mar 2026 10:00:00 -0400 (EDT)":                  14,
			"Mon, 02 Mar 2026 (the (whole) day) 10:00:00 +0200":     8,
			"  Mon,  02  Mar  2026  10:00:00   EDT   (a comment)  ": 14,
		} {
			got, ok := parseDate(text)
			if want := time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC); !ok || !got.Equal(want) {
				t.Errorf("in %s %q = %v, %t; want %v", local, text, got, ok, want)
			}
		}
	}
	for _, text := range []string{"", "()", "EDT", "yesterday", "Mon, 02 Mar 2026", "((((("} {
		if got, ok := parseDate(text); ok {
			t.Errorf("%q = %v, want none", text, got)
		}
	}
}
