package gmail

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	defaultPage = 100
	largestPage = 500
)

// tokenEncoding is how Gmail writes page tokens.
var tokenEncoding = base64.RawURLEncoding

// maxResults reads the page size. Like Google, it takes more than 500 for 500.
func maxResults(q page.Request) (int, *wire.Error) {
	text := q.Get("maxResults")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, wire.BadRequest("Invalid value at 'max_results' (TYPE_UINT32), \"" + text + "\"")
	}
	if n == 0 {
		return defaultPage, nil
	}
	return int(min(n, largestPage)), nil
}

// newPager reads the parameters that every list has. first is where the list
// begins, and params are those that its tokens are bound to: the size of the page
// is none. The caller holds the mailbox's write lock.
func (m *Mailbox) newPager(list string, q page.Request, first page.Place, params ...string) (*page.Pager, *wire.Error) {
	limit, bad := maxResults(q)
	if bad != nil {
		return nil, bad
	}
	bound := url.Values{}
	maps.Copy(bound, q.Values)
	maps.DeleteFunc(bound, func(name string, _ []string) bool { return !slices.Contains(params, name) })
	p, ok := q.Ask(page.Question{
		List: m.email + " " + list, Tokens: &m.tokens, Encoding: tokenEncoding, Params: bound, Limit: limit, First: first,
	})
	if !ok {
		return nil, wire.BadRequest("Invalid pageToken")
	}
	return p, nil
}

// estimate is the list's size on a page: missing on a bare one.
func estimate(q page.Request, items int, next string) *int {
	switch {
	case q.Quirk.Estimate != nil:
		return q.Quirk.Estimate
	case q.Quirk.Page == fault.PageBare:
		return nil
	case next != "":
		items = sizeEstimate
	}
	return &items
}
