package term

import "time"

// TimeLayout is how commands write a moment. They read it, too.
const TimeLayout = "2006-01-02 15:04:05 -07:00"

// None stands for what there is not.
const None = "-"

// Time is a moment in the local time zone; [None] if it is zero.
func Time(t time.Time) string { return TimeIn(t, time.Local) }

// TimeIn is a moment by the clocks of a zone; [None] if it is zero.
func TimeIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return None
	}
	return t.In(zone).Format(TimeLayout)
}
