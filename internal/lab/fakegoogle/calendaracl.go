package fakegoogle

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
		Kind: "calendar#aclRule", Etag: c.listEtag(), ID: "user:" + c.diary.email,
		Scope: aclScope{Type: "user", Value: c.diary.email}, Role: c.role(),
	}
}

// listACL serves calendar.acl.list. The caller holds the lock.
func (c *Calendar) listACL(q ask) (any, *apiError) {
	if _, bad := boolParam(q.Values, "showDeleted"); bad != nil { // no rule is ever deleted
		return nil, bad
	}
	list := c.diary.email + " " + c.id + " acl"
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
	p, bad := newCalendarPager(&c.tokens, list, c.listRev, q, aclPage, largestACL)
	if bad != nil {
		return nil, bad
	}
	var all []placed[aclRule]
	if c.listRev > since {
		all = append(all, placed[aclRule]{place{position: 1}, c.rule()})
	}
	items, next, last := pageOf(p, all)
	answer := aclList{Items: items, NextPageToken: next}
	if q.odd.Page != PageBare {
		answer.Kind, answer.Etag = "calendar#acl", c.listEtag()
	}
	if last {
		token.rev = p.asOf
		answer.NextSyncToken = token.encode()
	}
	return answer, nil
}

// getACL serves calendar.acl.get. The caller holds the lock.
func (c *Calendar) getACL(id string) (any, *apiError) {
	if rule := c.rule(); mailboxKey(rule.ID) == mailboxKey(id) {
		return rule, nil
	}
	return nil, calendarNotFound()
}
