package fakegoogle

import (
	"maps"
	"net/url"
)

// An ask is what a call asks for: its parameters, and what shall be odd about
// the answer.
type ask struct {
	url.Values
	odd  Oddity
	body []byte // of a request by POST
	kind string // of the body: its Content-Type
}

func boolParam(q url.Values, name string) (bool, *apiError) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, badRequest("Invalid value at '" + name + "' (TYPE_BOOL), \"" + q.Get(name) + "\"")
}

// fillIn returns the parameters of a request, and those of a query that it does
// not have.
func fillIn(q url.Values, query string) url.Values {
	first, err := url.ParseQuery(query)
	if err != nil {
		return q
	}
	filled := maps.Clone(q)
	for name, values := range first {
		if !q.Has(name) {
			filled[name] = values
		}
	}
	return filled
}
