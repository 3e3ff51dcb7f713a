package price

import (
	"fmt"
	"maps"
	"slices"
)

// A Difference is a figure that two price lists do not share.
type Difference struct {
	Kind   string `json:"kind"`             // "limit", "billing" or "cost"
	Name   string `json:"name"`             // of the limit or the method
	Format string `json:"format,omitempty"` // of the request; "" if it has none
	Old    int64  `json:"old"`              // units; 0: the list does not have it
	New    int64  `json:"new"`
}

// Diff returns what differs in the units of a newer list of the same API: limits,
// billing thresholds and costs, in this order and sorted by name and format.
func (l *List) Diff(newer *List) ([]Difference, error) {
	if l.API != newer.API {
		return nil, fmt.Errorf("price list %s is of %s, %s of %s: nothing to compare", l.Name, l.API, newer.Name, newer.API)
	}
	var found []Difference
	add := func(d Difference) {
		if d.Old != d.New {
			found = append(found, d)
		}
	}
	for _, name := range sortedKeys(l.Limits, newer.Limits) {
		add(Difference{Kind: "limit", Name: name, Old: l.Limits[name].Units, New: newer.Limits[name].Units})
	}
	for _, name := range sortedKeys(l.Billing, newer.Billing) {
		add(Difference{Kind: "billing", Name: name, Old: l.Billing[name].Units, New: newer.Billing[name].Units})
	}
	for _, name := range sortedKeys(l.Costs, newer.Costs) {
		asked := []string{""}
		if l.Costs[name].Formats != nil || newer.Costs[name].Formats != nil {
			asked = append(asked, formats...)
		}
		for _, format := range asked {
			add(Difference{Kind: "cost", Name: name, Format: format, Old: l.costIfKnown(name, format), New: newer.costIfKnown(name, format)})
		}
	}
	return found, nil
}

func (l *List) costIfKnown(method, format string) int64 {
	units, known := l.Cost(method, format)
	if !known {
		return 0
	}
	return units
}

// sortedKeys returns the keys of both maps, each once.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
