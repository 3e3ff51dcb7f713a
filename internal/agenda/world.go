package agenda

import "time"

// The world of times: its years have four digits in every time zone, as JSON,
// iCalendar and their readers want it, and its beginning is not Go's zero time.
var (
	worldBegin = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	worldEnd   = time.Date(9999, 12, 30, 23, 59, 59, 0, time.UTC)
)

// inWorld is a moment in UTC, brought to the end of the world on whose other side it
// lies. What Google gave of it stays in the event's JSON.
func inWorld(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Before(worldBegin):
		return worldBegin
	case t.After(worldEnd):
		return worldEnd
	}
	return t
}

// dayOf is the day of a moment on the wall clock, in the world.
func dayOf(wall time.Time) string {
	if last := worldEnd.AddDate(0, 0, 1); wall.After(last) {
		wall = last
	} else if wall.Before(worldBegin) {
		wall = worldBegin
	}
	return wall.Format(dayLayout)
}
