package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-ical"
)

// zoneNames maps the names that a file gives to time zones to IANA's.
type zoneNames struct {
	file    *icsFile
	defined map[string]*ical.Component // VTIMEZONEs by TZID
	known   map[string]string
	usual   string // zone of the calendar
}

// newZoneNames collects the time zones that a file defines.
func newZoneNames(f *icsFile) *zoneNames {
	z := &zoneNames{file: f, defined: map[string]*ical.Component{}, known: map[string]string{}, usual: "UTC"}
	for _, calendar := range f.calendars {
		for _, child := range calendar.Children {
			if child.Name == ical.CompTimezone {
				z.defined[zoneID(child.Props.Get(ical.PropTimezoneID))] = child
			}
		}
	}
	return z
}

// zoneID is the name of a definition.
func zoneID(p *ical.Prop) string {
	if p == nil {
		return ""
	}
	return plainZone(p.Value)
}

// zoneParam is the name of the zone that a time is in; "" where it names none. A
// comma in it, which programs forget to quote, parts it for the reader.
func zoneParam(p *ical.Prop) string {
	return plainZone(strings.Join(p.Params[ical.PropTimezoneID], ","))
}

// plainZone undoes how the name of a zone is written: definitions have it as text,
// with escapes, and times as a parameter, without; some programs escape both.
func plainZone(id string) string {
	id = strings.NewReplacer(`\\`, `\`, `\,`, `,`, `\;`, `;`).Replace(id)
	return strings.Trim(id, ` "`)
}

// ianaName returns the IANA name of a zone; that of the calendar, and a report,
// where there is none.
func (z *zoneNames) ianaName(id string) string {
	id = plainZone(id)
	if name, ok := z.known[id]; ok {
		return name
	}
	name, ok := z.find(id)
	if !ok {
		name = z.usual
		z.file.report("time zone %q is none of IANA's, nor like one: taken for %s", id, name)
	}
	z.known[id] = name
	return name
}

// find tries, in this order: the name itself, its last parts, the name that the
// definition says it was made from, Windows' names, the definition's offsets.
func (z *zoneNames) find(id string) (string, bool) {
	if name, ok := ianaPart(id); ok {
		return name, true
	}
	definition := z.defined[id]
	if definition != nil {
		if p := definition.Props.Get("X-LIC-LOCATION"); p != nil {
			if name, ok := ianaPart(p.Value); ok {
				return name, true
			}
		}
	}
	if name, ok := windowsZones[strings.TrimSuffix(strings.TrimSuffix(id, " Standard Time"), " Daylight Time")]; ok {
		return name, true
	}
	if definition != nil {
		return byOffsets(definition)
	}
	return "", false
}

// ianaPart returns the longest end of a path that is an IANA name: generators
// put their own names in front.
func ianaPart(id string) (string, bool) {
	id = strings.TrimPrefix(id, "custom_")
	for rest, ok := id, true; ok; _, rest, ok = strings.Cut(rest, "/") {
		if rest == "" || rest == "Local" || strings.HasPrefix(rest, ".") {
			continue
		}
		// Short names such as EST have no seasons where a name without a place has.
		if _, err := time.LoadLocation(rest); err == nil {
			return rest, true
		}
	}
	return "", false
}

// windowsZones are the zones of Windows that calendars name most, without
// "Standard Time", and the names of some mail programs.
var windowsZones = map[string]string{
	"Eastern": "America/New_York", "US-Eastern": "America/New_York", "Central": "America/Chicago",
	"Mountain": "America/Denver", "Pacific": "America/Los_Angeles", "US Mountain": "America/Phoenix",
	"Alaskan": "America/Anchorage", "Hawaiian": "Pacific/Honolulu", "Atlantic": "America/Halifax",
	"Newfoundland": "America/St_Johns", "E. South America": "America/Sao_Paulo", "Argentina": "America/Argentina/Buenos_Aires",
	"SA Pacific": "America/Bogota", "GMT": "Europe/London", "Greenwich": "Atlantic/Reykjavik",
	"W. Europe": "Europe/Berlin", "Central Europe": "Europe/Budapest", "Central European": "Europe/Warsaw",
	"Romance": "Europe/Paris", "E. Europe": "Europe/Chisinau", "FLE": "Europe/Kyiv", "GTB": "Europe/Bucharest",
	"Russian": "Europe/Moscow", "Turkey": "Europe/Istanbul", "Israel": "Asia/Jerusalem", "Egypt": "Africa/Cairo",
	"South Africa": "Africa/Johannesburg", "Arab": "Asia/Riyadh", "Arabian": "Asia/Dubai", "Iran": "Asia/Tehran",
	"Pakistan": "Asia/Karachi", "India": "Asia/Kolkata", "SE Asia": "Asia/Bangkok", "China": "Asia/Shanghai",
	"Singapore": "Asia/Singapore", "Taipei": "Asia/Taipei", "Tokyo": "Asia/Tokyo", "Korea": "Asia/Seoul",
	"W. Australia": "Australia/Perth", "Cen. Australia": "Australia/Adelaide", "AUS Central": "Australia/Darwin",
	"AUS Eastern": "Australia/Sydney", "E. Australia": "Australia/Brisbane", "Tasmania": "Australia/Hobart",
	"New Zealand":            "Pacific/Auckland",
	"Western/Central Europe": "Europe/Berlin",
}

// seasonalZones are tried, in this order, for a definition with summer time.
var seasonalZones = []string{
	"Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago", "America/Denver",
	"America/Los_Angeles", "America/Anchorage", "America/Halifax", "America/St_Johns", "Asia/Jerusalem",
	"Australia/Sydney", "Australia/Adelaide", "Pacific/Auckland", "America/Santiago", "Atlantic/Azores",
}

// byOffsets finds a zone whose offsets are now those that a definition ends with.
func byOffsets(definition *ical.Component) (string, bool) {
	var standard, daylight *ical.Component
	for _, child := range definition.Children {
		switch child.Name {
		case ical.CompTimezoneStandard:
			standard = child
		case ical.CompTimezoneDaylight:
			daylight = child
		}
	}
	if standard == nil {
		standard, daylight = daylight, nil
	}
	winter, ok := zoneOffset(standard)
	if !ok {
		return "", false
	}
	summer, seasonal := zoneOffset(daylight)
	if !seasonal || summer == winter {
		return fixedZone(winter)
	}
	january, july := winter, summer
	if begin := daylight.Props.Get(ical.PropDateTimeStart); begin != nil && len(begin.Value) >= 6 && begin.Value[4:6] > "07" {
		january, july = summer, winter
	}
	for _, name := range seasonalZones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			continue
		}
		_, first := time.Date(2025, time.January, 15, 12, 0, 0, 0, zone).Zone()
		_, second := time.Date(2025, time.July, 15, 12, 0, 0, 0, zone).Zone()
		if first == january && second == july {
			return name, true
		}
	}
	return "", false
}

// zoneOffset is what a part of a definition changes to, in seconds.
func zoneOffset(part *ical.Component) (int, bool) {
	if part == nil {
		return 0, false
	}
	p := part.Props.Get(ical.PropTimezoneOffsetTo)
	if p == nil || len(p.Value) < 5 {
		return 0, false
	}
	n, err := strconv.Atoi(p.Value[1:5])
	if err != nil {
		return 0, false
	}
	seconds := (n/100)*3600 + (n%100)*60
	if p.Value[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// fixedZone names a zone without seasons.
func fixedZone(offset int) (string, bool) {
	switch {
	case offset == 0:
		return "UTC", true
	case offset%3600 == 0 && offset >= -12*3600 && offset <= 14*3600:
		return fmt.Sprintf("Etc/GMT%+d", -offset/3600), true // the sign is the other way round
	case offset == 5*3600+1800:
		return "Asia/Kolkata", true
	}
	return "", false
}
