package quota

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

// WithCost returns a copy of the list in which a method costs other units, for
// prices that Google has not published, or has changed since. The format says
// for which requests; with "" every request of the method costs the same. The
// method must be in the list, and units from 1 to 2^31-1.
func (l *PriceList) WithCost(method, format string, units int64) (*PriceList, error) {
	cost, ok := l.Costs[method]
	if !ok {
		return nil, fmt.Errorf("price list %s has no method %q; headroom quota prices %s shows those it has", l.Name, method, l.Name)
	}
	if units < 1 || units > maxUnits {
		return nil, fmt.Errorf("cost of %s: %d units are not from 1 to %d", method, units, maxUnits)
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
	changed.dearest = 0
	for _, c := range changed.Costs {
		changed.dearest = max(changed.dearest, c.Units)
		for _, units := range c.Formats {
			changed.dearest = max(changed.dearest, units)
		}
	}
	return &changed, nil
}
