// Package page is how a request asks for a page of a list: its parameters, the
// tokens of pages, and the quirks that a fault gives them. Gmail and Calendar share
// it.
package page

import (
	"net/url"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/wire"
)

// A Request is what a call asks for: its parameters, and the quirk that a fault gives
// the answer.
type Request struct {
	url.Values
	Quirk fault.Quirk
	Body  []byte // of a request by POST
	Kind  string // of the body: its Content-Type
}

// Bool reads a parameter that is true or false; false where it is missing.
func Bool(q url.Values, name string) (bool, *wire.Error) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, wire.BadRequest("Invalid value at '" + name + "' (TYPE_BOOL), \"" + q.Get(name) + "\"")
}
