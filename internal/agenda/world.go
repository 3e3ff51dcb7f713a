package agenda

import "time"

// The range of times: years have four digits in every time zone, as JSON, iCalendar
// and their readers require, and the first moment is not Go's zero time.
var (
	worldBegin = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	worldEnd   = time.Date(9999, 12, 30, 23, 59, 59, 0, time.UTC)
)

// inWorld returns a moment in UTC, clamped to the range. The event's JSON keeps what
// Google gave.
func inWorld(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Before(worldBegin):
		return worldBegin
	case t.After(worldEnd):
		return worldEnd
	}
	return t
}

// dayOf returns the day of a moment on the wall clock, within the range.
func dayOf(wall time.Time) string {
	if last := worldEnd.AddDate(0, 0, 1); wall.After(last) {
		wall = last
	} else if wall.Before(worldBegin) {
		wall = worldBegin
	}
	return wall.Format(dayLayout)
}
