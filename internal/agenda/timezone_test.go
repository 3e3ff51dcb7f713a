package agenda

import (
	"slices"
	"testing"
	"time"

	"github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"
)

// An onset is when an observance begins, by the clocks before.
type onset struct {
	wall   time.Time
	offset string
}

// onsets lists all onsets of a VTIMEZONE until a year, oldest first, as a reader
// finds them.
func onsets(t *testing.T, c *ical.Component, year int) (all []onset) {
	t.Helper()
	end := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, o := range c.Children {
		to := o.Props.Get(ical.PropTimezoneOffsetTo).Value
		walls := []string{o.Props.Get(ical.PropDateTimeStart).Value}
		for _, p := range o.Props.Values(ical.PropRecurrenceDates) {
			walls = append(walls, p.Value)
		}
		for _, text := range walls {
			wall, err := time.Parse(localLayout, text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, onset{wall, to})
		}
		if p := o.Props.Get(ical.PropRecurrenceRule); p != nil {
			option, err := rrule.StrToROption(p.Value)
			if err != nil {
				t.Fatal(err)
			}
			option.Dtstart = all[len(all)-1].wall
			option.Until = end
			rule, err := rrule.NewRRule(*option)
			if err != nil {
				t.Fatal(err)
			}
			for _, wall := range rule.All() {
				all = append(all, onset{wall, to})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b onset) int { return a.wall.Compare(b.wall) })
	return all
}

func TestTimezonesAreWhatTheirClocksShow(t *testing.T) {
	for _, name := range []string{
		"UTC", "America/New_York", "Europe/Dublin", "Africa/Casablanca", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Jerusalem",
		"Asia/Gaza", "America/Nuuk", "Pacific/Apia", "Antarctica/Troll", "America/Santiago", "Asia/Tehran", "Etc/GMT+5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, years := range [][2]int{{1883, 1885}, {1965, 2001}, {2026, 2026}} {
				first, last := time.Date(years[0], 5, 1, 0, 0, 0, 0, time.UTC), time.Date(years[1], 5, 1, 0, 0, 0, 0, time.UTC)
				check(t, zone, first, last)
			}
		})
	}
}

// check compares what a zone's description says with its clocks, about every
// day from first until well after last.
func check(t *testing.T, zone *time.Location, first, last time.Time) {
	t.Helper()
	end := last.Year() + ruleYears
	all := onsets(t, timezone(zone, first, last), end+1)
	for at, i := first, 0; at.Year() < end; at = at.Add(23*time.Hour + 7*time.Minute) {
		wall := onWall(at.In(zone))
		if !instant(wall, zone).Equal(at) {
			continue // the second time that the clocks show it
		}
		for i+1 < len(all) && !all[i+1].wall.After(wall) {
			i++
		}
		_, want := at.In(zone).Zone()
		if got := all[i].offset; got != offset(want) {
			t.Fatalf("described for %d to %d, at %s the offset is %s, want %s", first.Year(), last.Year(), at, got, offset(want))
		}
	}
}
