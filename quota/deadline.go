package quota

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// defaultWaits are how long to wait when the answer does not say.
var defaultWaits = map[Scope]time.Duration{
	ScopeUser:        65 * time.Second, // past the end of any window that is full now
	ScopeProject:     65 * time.Second,
	ScopeConcurrency: 2 * time.Second,
	ScopeBandwidth:   15 * time.Minute,
	ScopeAbuse:       2 * time.Hour,
}

// What is believed of a moment that an answer names.
const (
	minWait   = time.Second    // however soon the moment is
	maxWait   = 24 * time.Hour // farther ahead is absurd: Google suspends for a day at most
	maxPast   = time.Minute    // longer past is absurd; an answer can travel for a while
	maxWindow = 65 * time.Second

	// Clocks are taken for equal up to minSkew, because Date has whole seconds, and
	// a Date that differs by more than maxSkew is not Google's.
	minSkew = 2 * time.Second
	maxSkew = 24 * time.Hour
)

// googlesNow corrects the local time by the answer's own Date: the moments in it
// are on Google's clock.
func googlesNow(header http.Header, now time.Time) time.Time {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return now
	}
	if skew := date.Sub(now).Abs(); skew < minSkew || skew > maxSkew {
		return now
	}
	return date
}

// A deadline finds how long an answer asks to be left alone.
type deadline struct {
	answer answer
	header http.Header
	now    time.Time // on Google's clock
	scale  int
	absurd bool // a moment was not believed
}

// stated is the wait that the answer itself asks for: the first of its moments
// that is believed, the most exact first.
func (d *deadline) stated() (wait time.Duration, said bool) {
	for _, find := range []func() (wait time.Duration, named, believed bool){d.inWindow, d.inText, d.inHeader} {
		wait, named, believed := find()
		if believed {
			return wait, true
		}
		d.absurd = d.absurd || named
	}
	return 0, false
}

// inWindow waits for the end of the minute whose start the details give.
func (d *deadline) inWindow() (wait time.Duration, named, believed bool) {
	if d.answer.window == "" {
		return 0, false, false
	}
	start, err := strconv.ParseInt(d.answer.window, 10, 64)
	if err != nil {
		return 0, true, false
	}
	window := time.Minute / time.Duration(d.scale)
	wait = time.Unix(start, 0).Add(window).Sub(d.now)
	if wait > window+(maxWindow-time.Minute) {
		return 0, true, false
	}
	return min(wait, maxWindow/time.Duration(d.scale)), true, wait >= -maxPast
}

var retryAfterText = regexp.MustCompile(`(?i)retry after\s+(\S+)`)

// inText waits until the moment in the message.
func (d *deadline) inText() (wait time.Duration, named, believed bool) {
	found := retryAfterText.FindStringSubmatch(d.answer.message)
	if found == nil {
		return 0, false, false
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimRight(found[1], ".,;)"))
	if err != nil {
		return 0, true, false
	}
	return d.until(at)
}

// inHeader waits as long as Retry-After says, which is in seconds or a date.
func (d *deadline) inHeader() (wait time.Duration, named, believed bool) {
	value := strings.TrimSpace(d.header.Get("Retry-After"))
	if value == "" {
		return 0, false, false
	}
	if at, err := http.ParseTime(value); err == nil {
		return d.until(at)
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds < 0 || seconds > int64(maxWait/time.Second) {
		return 0, true, false
	}
	return time.Duration(seconds) * time.Second, true, true
}

// until believes a moment that is near enough.
func (d *deadline) until(at time.Time) (wait time.Duration, named, believed bool) {
	wait = at.Sub(d.now)
	return wait, true, wait >= -maxPast && wait <= maxWait
}

// scaleOf is by how much a scope's default is divided: quota time runs faster for
// the minute's limits only.
func (d *deadline) scaleOf(s Scope) int {
	if s == ScopeUser || s == ScopeProject {
		return d.scale
	}
	return 1
}

// untilMidnightPacific is the time to the end of Google's day, which the
// Calendar quota page gives as midnight Pacific Time (2026-11-29).
func untilMidnightPacific(now time.Time) time.Duration {
	local := now.In(pacific)
	return time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, pacific).Sub(now)
}
