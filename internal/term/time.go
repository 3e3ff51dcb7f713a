package term

import "time"

// TimeLayout is the layout in which commands write moments. They also read it.
const TimeLayout = "2006-01-02 15:04:05 -07:00"

// None is printed for a missing value.
const None = "-"

// Time formats a moment in the local time zone; [None] if it is zero.
func Time(t time.Time) string { return TimeIn(t, time.Local) }

// TimeIn formats a moment in a time zone; [None] if it is zero.
func TimeIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return None
	}
	return t.In(zone).Format(TimeLayout)
}
