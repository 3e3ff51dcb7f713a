package jobs

import "time"

// ClockTolerance is how far ahead of the clock a stored moment of something that
// has happened may be. Hosts whose clocks differ by more than 5 s are refused at
// start, so a moment further ahead was written while a clock was wrong.
const ClockTolerance = time.Minute

// The longest waits that any rule sets, beyond [ClockTolerance]. A stored moment
// further ahead was written while a clock was ahead, and is not believed.
const (
	LongestItemWait   = time.Hour      // of a message that is tried again
	LongestStreamWait = longestPause   // of a calendar or a list of calendars
	LongestWatchWait  = 26 * time.Hour // of the renewal of a watch: a day's budget comes back within 25 hours
)

// A RepairedMoment counts stored moments of one kind that were further ahead than
// any rule sets them, and were set back.
type RepairedMoment struct {
	What     string // such as "schedule-slot"; of few values
	Count    int64
	Furthest time.Time // as it was stored
}
