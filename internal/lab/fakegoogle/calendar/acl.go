package calendar

import (
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

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
	l := syncedList{
		name: c.account.email + " " + c.id + " acl", kind: "calendar#acl", etag: c.listEtag(),
		rev: c.listRev, tokens: &c.tokens, shows: []string{"showDeleted"},
	}
	return list(q, l, func(since int64) []placed[aclRule] {
		if c.listRev <= since {
			return nil
		}
		return numbered([]aclRule{c.rule()})
	})
}

// getACL serves calendar.acl.get. The caller holds the lock.
func (c *Calendar) getACL(id string) (any, *wire.Error) {
	if rule := c.rule(); wire.AddressKey(rule.ID) == wire.AddressKey(id) {
		return rule, nil
	}
	return nil, notFound()
}
