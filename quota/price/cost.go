package price

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// formats are the values of the format parameter that some price list knows;
// defaultFormat is what no value means to Google (discovery document of Gmail).
var formats = []string{"full", "html", "metadata", "minimal", "raw"}

const defaultFormat = "full"

// formatMethods are the methods that have a format parameter.
var formatMethods = []string{"gmail.users.drafts.get", "gmail.users.messages.get", "gmail.users.threads.get"}

// setByOperator is the note of values that are not the list's own.
const setByOperator = "set by the operator"

// Cost returns what a call costs in units. Format is the request's format
// parameter, "" when it has none; an empty one counts as Google's default. A
// method that is not in the list costs as much as the most expensive one, and known is
// false.
func (l *List) Cost(method, format string) (units int64, known bool) {
	cost, ok := l.Costs[method]
	if !ok {
		return l.mostExpensive, false
	}
	if format == "" {
		format = cost.DefaultFormat
	}
	if units, ok := cost.Formats[strings.ToLower(format)]; ok {
		return units, true
	}
	return cost.Units, true
}

// WithLimit returns a copy of the list in which a limit has other units, for a
// project that Google granted more, or that is to be tested with less.
func (l *List) WithLimit(limit string, units int64) (*List, error) {
	old, ok := l.Limits[limit]
	if !ok {
		return nil, fmt.Errorf("price list %s has no limit %q", l.Name, limit)
	}
	if units < 1 || units > MaxUnits {
		return nil, fmt.Errorf("limit %s: %d units are not from 1 to %d", limit, units, MaxUnits)
	}
	changed := *l
	changed.Limits = maps.Clone(l.Limits)
	old.Units, old.Verified, old.Note = units, false, setByOperator
	changed.Limits[limit] = old
	return &changed, nil
}

// WithCost returns a copy of the list in which a method costs other units, for
// prices that Google has not published, or has changed since. The format says
// for which requests; with "" every request of the method costs the same. The
// method must be in the list, and units from 1 to 2^31-1.
func (l *List) WithCost(method, format string, units int64) (*List, error) {
	cost, ok := l.Costs[method]
	if !ok {
		return nil, fmt.Errorf("price list %s has no method %q; headroom quota prices %s shows those it has", l.Name, method, l.Name)
	}
	if units < 1 || units > MaxUnits {
		return nil, fmt.Errorf("cost of %s: %d units are not from 1 to %d", method, units, MaxUnits)
	}
	format = strings.ToLower(format)
	switch {
	case format == "":
		cost.Units, cost.Formats, cost.DefaultFormat = units, nil, ""
	case !slices.Contains(formatMethods, method):
		return nil, fmt.Errorf("%s has no formats, so it costs the same for all", method)
	case !slices.Contains(formats, format):
		return nil, fmt.Errorf("%s has no format %q; there are %s", method, format, strings.Join(formats, ", "))
	default:
		cost.Formats = maps.Clone(cost.Formats)
		if cost.Formats == nil {
			cost.Formats = map[string]int64{}
		}
		cost.Formats[format] = units
		cost.DefaultFormat = defaultFormat
	}
	cost.Verified, cost.Note = false, setByOperator

	changed := *l
	changed.Costs = maps.Clone(l.Costs)
	changed.Costs[method] = cost
	changed.mostExpensive = 0
	for _, c := range changed.Costs {
		changed.mostExpensive = max(changed.mostExpensive, c.most())
	}
	return &changed, nil
}

// reads are the methods that every lane must have room for: work that makes them
// would wait for ever.
var reads = map[string][]string{
	"gmail": {
		"gmail.users.messages.get", "gmail.users.threads.get", "gmail.users.messages.attachments.get", "gmail.users.messages.list",
		"gmail.users.threads.list", "gmail.users.history.list", "gmail.users.labels.get", "gmail.users.labels.list", "gmail.users.getProfile",
	},
	"calendar": {"calendar.calendarList.list", "calendar.events.list", "calendar.events.get"},
}

// MostExpensiveRead returns the method of the API that costs most of those that read
// mail or events, and its units.
func (l *List) MostExpensiveRead() (method string, units int64) {
	for _, name := range reads[l.API] {
		if most := l.Costs[name].most(); most > units {
			method, units = name, most
		}
	}
	return method, units
}

// most is what a call costs at most, whatever its format.
func (c Cost) most() int64 {
	return slices.Max(append(slices.Collect(maps.Values(c.Formats)), c.Units))
}
