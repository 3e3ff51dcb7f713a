package agenda

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// location finds the zone that a name means: one of IANA's, also behind a vendor's
// prefix; one of Windows'; or an offset from UTC. It finds the zone that it returns
// again by that zone's name, which is IANA's if there is one.
func location(name string) (zone *time.Location, found bool) {
	name = strings.Trim(strings.TrimSpace(name), `"`)
	if zone, found = iana(name); found {
		return zone, true
	}
	if standard, ok := windowsZones()[windowsKey(name)]; ok {
		return iana(standard)
	}
	for rest := strings.TrimPrefix(name, "/"); strings.Contains(rest, "/"); _, rest, _ = strings.Cut(rest, "/") {
		if zone, found = iana(rest); found {
			return zone, true
		}
	}
	if zone, found = iana(ianaCase(name)); found {
		return zone, true
	}
	if offset, ok := offsetOf(name); ok {
		return fixed(offset), true
	}
	return nil, false
}

// iana finds a zone by IANA's name. It finds none for a name that means this machine's
// zone.
func iana(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || strings.Contains(name, "//") {
		return nil, false
	}
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), true
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, false
	}
	loaded.Store(name, zone)
	return zone, true
}

// ianaCase writes a name in the letters that IANA's names have: europe/berlin is
// Europe/Berlin, AMERICA/NEW_YORK America/New_York and utc UTC.
func ianaCase(name string) string {
	return zoneWord.ReplaceAllStringFunc(name, func(word string) string {
		switch word = strings.ToLower(word); word {
		case "au", "es", "of":
			return word
		case "cet", "eet", "est", "gb", "gmt", "hst", "met", "mst", "nz", "prc", "rok", "uct", "us", "utc", "wet":
			return strings.ToUpper(word)
		}
		return strings.ToUpper(word[:1]) + word[1:]
	})
}

var zoneWord = regexp.MustCompile(`[A-Za-z]+`)

// loaded caches zones by name, because finding one reads a file. Only existing zones
// are in it, so it is bounded.
var loaded sync.Map

// fixed returns the zone whose clocks are always the given number of seconds from UTC.
func fixed(offset int) *time.Location {
	const hour = 3600
	if offset == 0 {
		return time.UTC
	}
	if offset%hour == 0 {
		// IANA counts to the west.
		if zone, ok := iana(fmt.Sprintf("Etc/GMT%+d", -offset/hour)); ok {
			return zone
		}
	}
	sign, size := '+', offset
	if offset < 0 {
		sign, size = '-', -offset
	}
	name := fmt.Sprintf("UTC%c%02d%02d", sign, size/hour, size/60%60)
	if size%60 != 0 {
		name += fmt.Sprintf("%02d", size%60)
	}
	return time.FixedZone(name, offset)
}

// distance matches an offset from UTC as people and programs write it: GMT+02:00,
// UTC-3, +0530, (GMT-03:00) Buenos Aires.
var distance = regexp.MustCompile(`(?i)^\(?(?:GMT|UTC|Z)? ?([+-])(\d{1,2})(?::?([0-5]\d)(?::?([0-5]\d))?)?(?:\).*)?$`)

// offsetOf reads an offset from UTC, in seconds.
func offsetOf(name string) (int, bool) {
	parts := distance.FindStringSubmatch(strings.ReplaceAll(name, "−", "-"))
	if parts == nil {
		return 0, false
	}
	seconds := 0
	for _, part := range parts[2:] {
		n, _ := strconv.Atoi(part) // digits, or nothing
		seconds = seconds*60 + n
	}
	if parts[1] == "-" {
		seconds = -seconds
	}
	return seconds, seconds > -24*3600 && seconds < 24*3600
}

//go:embed windowszones.tsv
var windowsZoneTable string

// windowsZones maps the names of Windows' zones, as windowsKey writes them, to IANA's.
var windowsZones = sync.OnceValue(func() map[string]string {
	zones := map[string]string{}
	for line := range strings.Lines(windowsZoneTable) {
		if name, zone, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			zones[windowsKey(name)] = zone
		}
	}
	return zones
})

// windowsKey returns the key of a Windows zone's name. A name of summer time has the
// key of the standard time's name.
func windowsKey(name string) string {
	return strings.Replace(strings.ToLower(name), " daylight time", " standard time", 1)
}
