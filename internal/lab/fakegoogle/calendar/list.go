package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

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
	e := calendarEntry{Kind: "calendar#calendarListEntry", Etag: c.listEtag(), ID: c.id}
	if c.deleted {
		e.Deleted = true
		return e
	}
	e.Summary, e.TimeZone, e.AccessRole = c.summary, c.zone.String(), c.role()
	e.Selected, e.Hidden, e.Primary = !c.hidden, c.hidden, c.primary
	e.DefaultReminders = []EventReminder{}
	return e
}

// role is the account's access in the list; a calendar that fails only when it is
// called looks in order there.
func (c *Calendar) role() string {
	if c.access == AccessMissing || c.access == AccessDenied {
		return AccessReader
	}
	return c.access
}

func (c *Calendar) resource() calendarResource {
	return calendarResource{Kind: "calendar#calendar", Etag: c.listEtag(), ID: c.id, Summary: c.summary, TimeZone: c.zone.String()}
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
	l := syncedList{
		name: d.email + " calendarList", kind: "calendar#calendarList", etag: `"p` + strconv.FormatInt(d.rev, 10) + `"`,
		rev: d.rev, tokens: &d.tokens, shows: []string{"showDeleted", "showHidden"}, narrows: []string{"minAccessRole", "showOwnOrganizationOnly"},
	}
	return list(q, l, func(since int64) []placed[calendarEntry] {
		var shown []placed[calendarEntry]
		for _, c := range numbered(d.calendars) {
			unasked := since < 0 && (c.item.deleted && !showDeleted || c.item.hidden && !showHidden)
			if c.item.listRev > since && !unasked && roleAtLeast(c.item.role(), q.Get("minAccessRole")) {
				shown = append(shown, placed[calendarEntry]{c.Place, c.item.entry()})
			}
		}
		return shown
	})
}

// roleAtLeast reports whether a role is the least that was asked for or more.
func roleAtLeast(role, least string) bool {
	order := []string{AccessFreeBusy, AccessReader, AccessWriter, AccessOwner}
	return slices.Index(order, role) >= slices.Index(order, least) || least == ""
}
