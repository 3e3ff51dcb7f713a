package calendar

import (
	"cmp"
	"slices"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	listPage    = 100
	largestList = 250
)

// A listAnswer is a page of one of the small lists: of calendars, of settings, of
// the rules of an access list.
type listAnswer[T any] struct {
	Kind          string `json:"kind,omitempty"`
	Etag          string `json:"etag,omitempty"`
	NextPageToken string `json:"nextPageToken,omitempty"`
	NextSyncToken string `json:"nextSyncToken,omitempty"`
	Items         []T    `json:"items,omitempty"`
}

// A syncedList is one of these lists, which can be asked for what changed.
type syncedList struct {
	name       string // among all lists of the fake
	kind, etag string
	rev        int64
	tokens     *tokenState
	shows      []string // parameters that show more; with a sync token all of it is shown
	narrows    []string // parameters that make a list without sync tokens
}

// list serves a syncedList. choose returns the items that changed after a
// revision, -1 for all, in their order. The caller holds the lock.
func list[T any](q page.Request, l syncedList, choose func(since int64) []placed[T]) (any, *wire.Error) {
	token := syncToken{
		list: page.Bind(nil, l.name), generation: l.tokens.syncs,
		binding: page.Bind(without(q.Values, append([]string{"syncToken", "maxResults"}, l.shows...)...)),
	}
	since := int64(-1)
	if text := q.Get("syncToken"); text != "" {
		bad := cmp.Or(forbidParams(q, l.narrows...), forbidFalse(q, l.shows...))
		if bad == nil {
			since, bad = takeSyncToken(text, token, l.tokens)
		}
		if bad != nil {
			return nil, bad
		}
	}
	p, bad := newPager(l.tokens, l.name, l.rev, q, listPage, largestList)
	if bad != nil {
		return nil, bad
	}
	items, next, last := pageOf(p, choose(since))
	answer := listAnswer[T]{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		answer.Kind, answer.Etag = l.kind, l.etag
	}
	if last && !slices.ContainsFunc(l.narrows, q.Has) {
		token.rev = p.AsOf
		answer.NextSyncToken = token.encode()
	}
	return answer, nil
}
