package calendar

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// freeParams are the parameters that page tokens are not bound to: how an answer
// is written, who pays for it, and the token itself.
var freeParams = []string{"pageToken", "fields", "alt", "prettyPrint", "quotaUser", "key", "access_token", "userIp"}

// tokenEncoding is how Calendar writes tokens: with padding, which must be escaped
// to travel in a query.
var tokenEncoding = base64.URLEncoding

// without returns the parameters but those that are named and those that are free.
func without(q url.Values, names ...string) url.Values {
	left := url.Values{}
	maps.Copy(left, q)
	for _, name := range slices.Concat(freeParams, names) {
		left.Del(name)
	}
	return left
}

// newPager reads maxResults and pageToken of a request that has the parameters of
// its first page. list names the list in all the world; rev is its revision. The
// caller holds the lock.
func newPager(tokens *tokenState, list string, rev int64, q page.Request, standard, largest int) (*page.Pager, *wire.Error) {
	limit, bad := maxResults(q, standard, largest)
	if bad != nil {
		return nil, bad
	}
	p, ok := q.Ask(page.Question{List: list, Tokens: &tokens.pages, Encoding: tokenEncoding, Params: without(q.Values), Limit: limit, AsOf: rev})
	if !ok {
		return nil, badRequest("invalid", "Invalid page token value.", "pageToken") // unverified
	}
	return p, nil
}

// maxResults reads the page size; more than the largest is taken for that.
func maxResults(q page.Request, standard, largest int) (int, *wire.Error) {
	text := q.Get("maxResults")
	if text == "" {
		return standard, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, badRequest("invalidParameter", fmt.Sprintf("Invalid integer value: '%s'.", text), "maxResults")
	}
	return int(min(n, int64(largest))), nil
}

// A placed item knows where it stands: by the change or the making of what it
// comes from, and within that.
type placed[T any] struct {
	page.Place
	item T
}

// order compares places.
func order(a, b page.Place) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Within, b.Within))
}

// numbered places items in their order.
func numbered[T any](items []T) []placed[T] {
	all := make([]placed[T], len(items))
	for i, item := range items {
		all[i] = placed[T]{page.Place{Position: int64(i) + 1}, item}
	}
	return all
}

// pageOf cuts the page out of a whole list in order, with the token of the next
// one. last reports that nothing follows, so that the page ends with a sync token.
func pageOf[T any](p *page.Pager, all []placed[T]) (items []T, next string, last bool) {
	start, _ := slices.BinarySearchFunc(all, p.After, func(i placed[T], after page.Place) int {
		if order(i.Place, after) <= 0 {
			return -1
		}
		return 1
	})
	left := all[start:]
	more := len(left) > p.Limit
	var places []page.Place
	for _, i := range left[:min(len(left), p.Limit)] {
		items, places = append(items, i.item), append(places, i.Place)
	}
	items, next = page.Cut(p, items, places, more)
	return items, next, next == "" && !more
}
