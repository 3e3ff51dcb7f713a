// Package cronspec reads cron specifications and finds the moments that they name in a
// time zone, also on the days on which the clock is changed. It runs nothing.
package cronspec

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones exist wherever the binary runs

	"github.com/robfig/cron/v3"
)

// Slots are the moments that a specification names.
type Slots interface {
	// Next returns the first one after t, or the zero time when there is none within
	// five years.
	Next(t time.Time) time.Time
}

// A wallClock is a cron specification by the clock on the wall of a zone. The
// cron package moves through such a day by adding hours, and so skips and doubles
// runs when the clock is changed; here it only ever sees a clock that nobody
// changes, and what a change means is decided by these rules:
//
//   - Fixed hours ("30 2 * * *", "0 0-6 * * *"): each time of day that matches
//     runs once. One that the clock skips runs at the first moment after the gap,
//     which is one run for all that it skips; one that it shows twice runs at the
//     first.
//   - Any hour ("0 * * * *", "*/15 */2 * * *"): each moment at which the clock
//     shows a matching time, so every real hour. Of a gap shorter than an hour,
//     which leaves the hour without that minute, the first moment after it makes
//     up for it; the hour that a longer gap skips is not there to be run in.
type wallClock struct {
	spec  cron.Schedule // read as if the zone were UTC
	zone  *time.Location
	fixed bool // hours are named
}

var errNeverComes = errors.New("it never comes")

// Parse reads a cron specification of five fields, or a descriptor such as
// @daily or "@every 10m". The zone is one of the IANA database, and is overruled
// by a "CRON_TZ=zone " in front of the specification.
func Parse(spec, zone string) (Slots, error) {
	spec = strings.TrimSpace(spec)
	for _, mark := range []string{"CRON_TZ=", "TZ="} {
		if named, ok := strings.CutPrefix(spec, mark); ok {
			zone, spec, _ = strings.Cut(named, " ")
			spec = strings.TrimSpace(spec)
			break
		}
	}
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		return parseEvery(strings.TrimSpace(text))
	}
	loc, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	if strings.Contains(spec, "TZ=") { // named twice; the parser would trust it
		return nil, fmt.Errorf("cannot read %q", spec)
	}
	parsed, err := cron.ParseStandard("CRON_TZ=UTC " + spec)
	if err != nil {
		return nil, err
	}
	w := &wallClock{spec: parsed, zone: loc, fixed: fixedHours(spec)}
	if w.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNeverComes
	}
	return w, nil
}

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" { // another on every machine
		return nil, errors.New("the zone must be named, such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("no zone %q", name)
	}
	return loc, nil
}

// fixedHours reports whether a specification names its hours.
func fixedHours(spec string) bool {
	if strings.HasPrefix(spec, "@") {
		return spec != "@hourly"
	}
	hours := strings.Fields(spec)[1]
	return hours != "0-23" && !strings.ContainsAny(hours, "*?/")
}

// Next implements [Slots].
func (w *wallClock) Next(t time.Time) time.Time {
	at := t.Truncate(time.Second).Add(time.Second)
	for {
		start, end := at.In(w.zone).ZoneBounds()
		off := w.offset(at)
		from := shown(at, off)
		if !start.IsZero() {
			before := w.offset(start.Add(-1))
			if at.Equal(start) && w.makesUp(start, before, off) {
				return start.UTC()
			}
			if repeated := shown(start, before); w.fixed && from.Before(repeated) {
				from = repeated
			}
		}
		match := w.spec.Next(from.Add(-time.Second))
		if match.IsZero() {
			return time.Time{}
		}
		if end.IsZero() || match.Before(shown(end, off)) {
			return match.Add(-off)
		}
		at = end.UTC()
	}
}

// makesUp reports whether the clock skips a slot when it is put forward at start,
// from one offset to another, for which a run is due then.
func (w *wallClock) makesUp(start time.Time, before, off time.Duration) bool {
	if gap := off - before; gap <= 0 || !w.fixed && gap >= time.Hour {
		return false
	}
	match := w.spec.Next(shown(start, before).Add(-time.Second))
	return !match.IsZero() && match.Before(shown(start, off))
}

// offset is how far the clock is ahead of UTC.
func (w *wallClock) offset(t time.Time) time.Duration {
	_, seconds := t.In(w.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// shown is what a clock shows that is ahead of UTC by off, as if it were UTC.
func shown(t time.Time, off time.Duration) time.Time { return t.UTC().Add(off) }

// Every is an interval, counted from 1970 so that it is the same for every
// process.
type Every time.Duration

func parseEvery(text string) (Slots, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no duration", text)
	}
	if d < time.Second || d%time.Millisecond != 0 {
		return nil, fmt.Errorf("every %s is too often; a second is the least", text)
	}
	return Every(d), nil
}

// Next implements [Slots].
func (e Every) Next(t time.Time) time.Time {
	d := time.Duration(e).Milliseconds()
	return time.UnixMilli((floorDiv(t.UnixMilli(), d) + 1) * d).UTC()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
