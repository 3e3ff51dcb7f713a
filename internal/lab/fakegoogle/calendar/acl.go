package calendar

import (
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	aclPage    = 100
	largestACL = 250
)

type aclList struct {
	Kind          string    `json:"kind,omitempty"`
	Etag          string    `json:"etag,omitempty"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	NextSyncToken string    `json:"nextSyncToken,omitempty"`
	Items         []aclRule `json:"items,omitempty"`
}

type aclRule struct {
	Kind  string   `json:"kind"`
	Etag  string   `json:"etag"`
	ID    string   `json:"id"`
	Scope aclScope `json:"scope"`
	Role  string   `json:"role"`
}

type aclScope struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// rule is the one rule of the calendar's access list, which is of its account: a
// calendar belongs to one.
func (c *Calendar) rule() aclRule {
	return aclRule{
		Kind: "calendar#aclRule", Etag: c.listEtag(), ID: "user:" + c.account.email,
		Scope: aclScope{Type: "user", Value: c.account.email}, Role: c.role(),
	}
}

// listACL serves calendar.acl.list. The caller holds the lock.
func (c *Calendar) listACL(q page.Request) (any, *wire.Error) {
	if _, bad := page.Bool(q.Values, "showDeleted"); bad != nil { // no rule is ever deleted
		return nil, bad
	}
	list := c.account.email + " " + c.Id + " acl"
	token := syncToken{
		list: bindParams(nil, nil, list), generation: c.tokens.syncs,
		binding: bindParams(q.Values, append([]string{"syncToken", "maxResults", "showDeleted"}, freeParams...)),
	}
	since := int64(-1)
	if text := q.Get("syncToken"); text != "" {
		bad := forbidFalse(q, "showDeleted")
		if bad == nil {
			since, bad = takeSyncToken(text, token, &c.tokens)
		}
		if bad != nil {
			return nil, bad
		}
	}
	p, bad := newPager(&c.tokens, list, c.listRev, q, aclPage, largestACL)
	if bad != nil {
		return nil, bad
	}
	var all []placed[aclRule]
	if c.listRev > since {
		all = append(all, placed[aclRule]{place{position: 1}, c.rule()})
	}
	items, next, last := pageOf(p, all)
	answer := aclList{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		answer.Kind, answer.Etag = "calendar#acl", c.listEtag()
	}
	if last {
		token.rev = p.asOf
		answer.NextSyncToken = token.encode()
	}
	return answer, nil
}

// getACL serves calendar.acl.get. The caller holds the lock.
func (c *Calendar) getACL(id string) (any, *wire.Error) {
	if rule := c.rule(); wire.AddressKey(rule.ID) == wire.AddressKey(id) {
		return rule, nil
	}
	return nil, notFound()
}
