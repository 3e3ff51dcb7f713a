package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	calendarListPage    = 100
	largestCalendarList = 250
)

type calendarList struct {
	Kind          string          `json:"kind,omitempty"`
	Etag          string          `json:"etag,omitempty"`
	NextPageToken string          `json:"nextPageToken,omitempty"`
	NextSyncToken string          `json:"nextSyncToken,omitempty"`
	Items         []calendarEntry `json:"items,omitempty"`
}

type calendarEntry struct {
	Kind             string          `json:"kind"`
	Etag             string          `json:"etag"`
	ID               string          `json:"id"`
	Summary          string          `json:"summary,omitempty"`
	TimeZone         string          `json:"timeZone,omitempty"`
	AccessRole       string          `json:"accessRole,omitempty"`
	DefaultReminders []EventReminder `json:"defaultReminders,omitempty"`
	Selected         bool            `json:"selected,omitempty"`
	Hidden           bool            `json:"hidden,omitempty"`
	Primary          bool            `json:"primary,omitempty"`
	Deleted          bool            `json:"deleted,omitempty"`
}

type calendarResource struct {
	Kind     string `json:"kind"`
	Etag     string `json:"etag"`
	ID       string `json:"id"`
	Summary  string `json:"summary"`
	TimeZone string `json:"timeZone"`
}

func (c *Calendar) listEtag() string {
	return fmt.Sprintf("\"%016d\"", 1_700_000_000_000_000+c.listRev)
}

// entry is the calendar in the list; of a deleted one little is left.
func (c *Calendar) entry() calendarEntry {
	e := calendarEntry{Kind: "calendar#calendarListEntry", Etag: c.listEtag(), ID: c.Id}
	if c.deleted {
		e.Deleted = true
		return e
	}
	e.Summary, e.TimeZone, e.AccessRole = c.summary, c.zone.String(), c.role()
	e.Selected, e.Hidden, e.Primary = !c.hidden, c.hidden, c.Primary
	e.DefaultReminders = []EventReminder{}
	return e
}

// role is what the list says of the account's access; of a calendar that only
// fails when it is asked for, that nothing is wrong.
func (c *Calendar) role() string {
	if c.access == AccessMissing || c.access == AccessDenied {
		return AccessReader
	}
	return c.access
}

func (c *Calendar) resource() calendarResource {
	return calendarResource{Kind: "calendar#calendar", Etag: c.listEtag(), ID: c.Id, Summary: c.summary, TimeZone: c.zone.String()}
}

// listCalendars serves calendar.calendarList.list.
func (d *Account) listCalendars(q page.Request) (any, *wire.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	showDeleted, bad := page.Bool(q.Values, "showDeleted")
	showHidden, bad2 := page.Bool(q.Values, "showHidden")
	if bad = cmp.Or(bad, bad2); bad != nil {
		return nil, bad
	}
	list := d.email + " calendarList"
	token := syncToken{
		list: bindParams(nil, nil, list), generation: d.tokens.syncs,
		binding: bindParams(q.Values, append([]string{"syncToken", "maxResults", "showDeleted", "showHidden"}, freeParams...)),
	}
	since := int64(-1)
	if text := q.Get("syncToken"); text != "" {
		bad := cmp.Or(forbidParams(q, "minAccessRole", "showOwnOrganizationOnly"), forbidFalse(q, "showDeleted", "showHidden"))
		if bad == nil {
			since, bad = takeSyncToken(text, token, &d.tokens)
		}
		if bad != nil {
			return nil, bad
		}
		showDeleted, showHidden = true, true
	}
	p, bad := newPager(&d.tokens, list, d.rev, q, calendarListPage, largestCalendarList)
	if bad != nil {
		return nil, bad
	}
	var all []placed[calendarEntry]
	for i, c := range d.calendars {
		if c.listRev <= since || c.deleted && !showDeleted || c.hidden && !showHidden || !roleAtLeast(c.role(), q.Get("minAccessRole")) {
			continue
		}
		all = append(all, placed[calendarEntry]{place{position: int64(i) + 1}, c.entry()})
	}
	items, next, last := pageOf(p, all)
	answer := calendarList{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		answer.Kind, answer.Etag = "calendar#calendarList", `"p`+strconv.FormatInt(d.rev, 10)+`"`
	}
	if last && !q.Has("minAccessRole") && !q.Has("showOwnOrganizationOnly") {
		token.rev = p.asOf
		answer.NextSyncToken = token.encode()
	}
	return answer, nil
}

// roleAtLeast reports whether a role is the least that was asked for or more.
func roleAtLeast(role, least string) bool {
	order := []string{AccessFreeBusy, AccessReader, AccessWriter, AccessOwner}
	return slices.Index(order, role) >= slices.Index(order, least) || least == ""
}
