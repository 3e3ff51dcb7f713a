package calendar

import (
	"slices"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	settingsPage    = 100
	largestSettings = 250
)

type settingList struct {
	Kind          string    `json:"kind,omitempty"`
	Etag          string    `json:"etag,omitempty"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	NextSyncToken string    `json:"nextSyncToken,omitempty"`
	Items         []setting `json:"items,omitempty"`
}

type setting struct {
	Kind  string `json:"kind"`
	Etag  string `json:"etag"`
	ID    string `json:"id"`
	Value string `json:"value"`
}

// usualSettings are those of an account that changed none.
var usualSettings = map[string]string{
	"autoAddHangouts": "false", "dateFieldOrder": "MDY", "defaultEventLength": "60", "format24HourTime": "false",
	"hideInvitations": "false", "hideWeekends": "false", "locale": "en", "remindOnRespondedEventsOnly": "false",
	"showDeclinedEvents": "true", "useKeyboardShortcuts": "true", "weekStart": "0",
}

// zoneSetting is the one that is not always the same: the primary calendar's zone.
const zoneSetting = "timezone"

// settings returns the settings of an account, in the order of their ids.
// The caller holds the lock.
func (d *Account) settings() []placed[setting] {
	primary := d.calendars[0]
	ids := []string{zoneSetting}
	for id := range usualSettings {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	all := make([]placed[setting], len(ids))
	for i, id := range ids {
		value := usualSettings[id]
		if id == zoneSetting {
			value = primary.zone.String()
		}
		all[i] = placed[setting]{place{position: int64(i) + 1}, setting{Kind: "calendar#setting", Etag: primary.listEtag(), ID: id, Value: value}}
	}
	return all
}

// listSettings serves calendar.settings.list.
func (d *Account) listSettings(q page.Request) (any, *wire.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, primary := d.email+" settings", d.calendars[0]
	token := syncToken{
		list: bindParams(nil, nil, list), generation: d.tokens.syncs,
		binding: bindParams(q.Values, append([]string{"syncToken", "maxResults"}, freeParams...)),
	}
	since := int64(-1)
	if text := q.Get("syncToken"); text != "" {
		var bad *wire.Error
		if since, bad = takeSyncToken(text, token, &d.tokens); bad != nil {
			return nil, bad
		}
	}
	p, bad := newPager(&d.tokens, list, d.rev, q, settingsPage, largestSettings)
	if bad != nil {
		return nil, bad
	}
	all := d.settings()
	if since >= 0 { // the zone alone can have changed
		all = slices.DeleteFunc(all, func(s placed[setting]) bool { return s.item.ID != zoneSetting || primary.listRev <= since })
	}
	items, next, last := pageOf(p, all)
	answer := settingList{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		answer.Kind, answer.Etag = "calendar#settings", primary.listEtag()
	}
	if last {
		token.rev = p.asOf
		answer.NextSyncToken = token.encode()
	}
	return answer, nil
}

// getSetting serves calendar.settings.get.
func (d *Account) getSetting(id string) (any, *wire.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.settings() {
		if s.item.ID == id {
			return s.item, nil
		}
	}
	return nil, notFound()
}
