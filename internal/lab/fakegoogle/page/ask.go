package page

import (
	"maps"
	"net/url"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/wire"
)

// An Request is what a call asks for: its parameters, and what shall be odd about
// the answer.
type Request struct {
	url.Values
	Quirk fault.Quirk
	Body  []byte // of a request by POST
	Kind  string // of the body: its Content-Type
}

func Bool(q url.Values, name string) (bool, *wire.Error) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, wire.BadRequest("Invalid value at '" + name + "' (TYPE_BOOL), \"" + q.Get(name) + "\"")
}

// FillIn returns the parameters of a request, and those of a query that it does
// not have.
func FillIn(q url.Values, query string) url.Values {
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
