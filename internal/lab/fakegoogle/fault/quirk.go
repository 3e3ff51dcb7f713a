package fault

import (
	"errors"
	"reflect"
	"slices"

	"headroom/internal/lab/fakegoogle/wire"
)

// An Quirk changes the true answer to a call rather than replacing it: what it
// names is as Google sometimes is, and is no error. The zero value changes
// nothing.
//
// Lists are messages.list, threads.list and history.list. A page with a quirk
// loses nothing: what it does not name, the page after it does. Fields of any answer may be
// set to another value, or left out.
type Quirk struct {
	// Page is the quirk of a page of a list: [PageEmpty], [PageBare],
	// [PageTwice] or [PageOverlap].
	Page string `json:"page,omitempty"`
	// PageItems is the most that a page of a list holds, however much is asked for.
	PageItems int `json:"page_items,omitempty"`
	// NextPage is the token that a page of a list names instead of the true one,
	// also where it is the last: [NextSame], [NextFirst], [NextFresh], [NextDead] or
	// [NextNone].
	NextPage string `json:"next_page,omitempty"`
	// Estimate is the resultSizeEstimate of a list.
	Estimate *int `json:"estimate,omitempty"`
	// MessagesTotal is what getProfile and labels.get count.
	MessagesTotal *int `json:"messages_total,omitempty"`
	// BytesPerSecond is how fast the body of the answer comes.
	BytesPerSecond int `json:"bytes_per_second,omitempty"`
	// LengthOff is added to Content-Length. Where it is positive the connection
	// ends before the body is whole, and where it is negative the body is cut.
	LengthOff int `json:"length_off,omitempty"`

	wire.Edit
}

// The quirks of a page.
const (
	PageEmpty   = "empty"   // it names nothing, and the next page begins where it did
	PageBare    = "bare"    // the same, and it has no field but nextPageToken
	PageTwice   = "twice"   // it names its first item once more, at its end
	PageOverlap = "overlap" // the next page begins with its last item
)

// The quirks of a page token.
const (
	NextSame  = "same"  // the token that was asked with: this page again
	NextFirst = "first" // one of the first page, always the same
	NextFresh = "fresh" // one of the first page, each time another
	NextDead  = "dead"  // one that is always refused
	NextNone  = "none"  // none, whatever follows
)

func (o Quirk) any() bool { return !reflect.ValueOf(o).IsZero() }

// validate reports what makes a quirk meaningless.
func (o Quirk) validate() error {
	var problems []error
	if !slices.Contains([]string{"", PageEmpty, PageBare, PageTwice, PageOverlap}, o.Page) {
		problems = append(problems, errors.New("page must be empty, bare, twice or overlap"))
	}
	if !slices.Contains([]string{"", NextSame, NextFirst, NextFresh, NextDead, NextNone}, o.NextPage) {
		problems = append(problems, errors.New("next_page must be same, first, fresh, dead or none"))
	}
	if o.PageItems < 0 || o.BytesPerSecond < 0 || o.Estimate != nil && *o.Estimate < 0 || o.MessagesTotal != nil && *o.MessagesTotal < 0 {
		problems = append(problems, errors.New("numbers may not be negative, except length_off"))
	}
	return errors.Join(append(problems, o.Edit.Validate())...)
}
