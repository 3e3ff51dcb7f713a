package meter

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var (
	//go:embed prices.txt
	pricesText string
	//go:embed calendarprices.txt
	calendarPricesText string
)

// CalendarPrices is the price list of Calendar; there is one.
const CalendarPrices = "calendar-2026-05"

// A PriceList is one column of prices.txt. Costs are in units, limits in units
// per minute.
type PriceList struct {
	name          string
	UserMinute    int64
	ProjectMinute int64
	costs         map[string]cost
	dearest       int64
}

// A cost is what a method takes, by the format that was asked for.
type cost struct {
	base     int64
	byFormat map[string]int64
}

// methodPrefix is what the ids of the discovery document have and the rows of
// prices.txt lack.
const methodPrefix = "gmail.users."

// of returns the units that a call costs. method is an id of the discovery
// document ("gmail.users.messages.get"); no format means full, as it does to
// Google. A method or format that no list knows costs the dearest value there
// is: it must never look cheap.
func (p *PriceList) of(method, format string) int64 {
	c, ok := p.costs[strings.TrimPrefix(method, methodPrefix)]
	if !ok {
		return p.dearest
	}
	if format == "" {
		format = "full"
	}
	if units, ok := c.byFormat[format]; ok {
		return units
	}
	if !slices.Contains([]string{"minimal", "metadata", "full", "raw", "html"}, format) {
		return c.most()
	}
	return c.base
}

// Knows reports whether the list has a price for a method of its own.
func (p *PriceList) Knows(method string) bool {
	_, ok := p.costs[strings.TrimPrefix(method, methodPrefix)]
	return ok
}

func (c cost) most() int64 {
	most := c.base
	for _, units := range c.byFormat {
		most = max(most, units)
	}
	return most
}

var parsePrices = sync.OnceValues(func() (map[string]*PriceList, error) {
	return readPrices(pricesText)
})

// GmailPriceList returns the price list of Gmail of that name.
func GmailPriceList(name string) (*PriceList, error) {
	lists, err := parsePrices()
	if err != nil {
		return nil, err
	}
	if list, ok := lists[name]; ok {
		return list, nil
	}
	return nil, fmt.Errorf("unknown price list %q: choose one of %s", name, strings.Join(slices.Sorted(maps.Keys(lists)), ", "))
}

// CalendarPriceList returns the price list of Calendar.
func CalendarPriceList() (*PriceList, error) {
	lists, err := readPrices(calendarPricesText)
	return lists[CalendarPrices], err
}

// readPrices parses the format that the head of prices.txt describes.
func readPrices(text string) (map[string]*PriceList, error) {
	var columns []*PriceList
	for n, line := range strings.Split(text, "\n") {
		cells := strings.Fields(line)
		if len(cells) == 0 || strings.HasPrefix(cells[0], "#") {
			continue
		}
		if cells[0] == "list" {
			for _, name := range cells[1:] {
				columns = append(columns, &PriceList{name: name, costs: map[string]cost{}})
			}
			continue
		}
		if len(cells) != len(columns)+1 {
			return nil, fmt.Errorf("prices.txt line %d: %d cells, want %d", n+1, len(cells), len(columns)+1)
		}
		for i, list := range columns {
			c, err := parseCost(cells[i+1])
			if err != nil {
				return nil, fmt.Errorf("prices.txt line %d: %w", n+1, err)
			}
			switch cells[0] {
			case "limit.user_minute":
				list.UserMinute = c.base
			case "limit.project_minute":
				list.ProjectMinute = c.base
			default:
				list.costs[cells[0]] = c
				list.dearest = max(list.dearest, c.most())
			}
		}
	}
	lists := make(map[string]*PriceList, len(columns))
	for _, list := range columns {
		lists[list.name] = list
	}
	return lists, nil
}

// parseCost reads a cell such as "5", "~100" or "20,full=60,raw=60".
func parseCost(cell string) (cost, error) {
	base, rest, _ := strings.Cut(strings.TrimPrefix(cell, "~"), ",")
	units, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return cost{}, fmt.Errorf("cost %q: %w", cell, err)
	}
	c := cost{base: units}
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		format, value, ok := strings.Cut(part, "=")
		units, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil {
			return cost{}, fmt.Errorf("cost %q: %q is not FORMAT=UNITS", cell, part)
		}
		if c.byFormat == nil {
			c.byFormat = map[string]int64{}
		}
		c.byFormat[format] = units
	}
	return c, nil
}
