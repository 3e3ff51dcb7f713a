package calendar

import (
	"slices"
	"strings"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

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
	all := []setting{{ID: zoneSetting, Value: primary.zone.String()}}
	for id, value := range usualSettings {
		all = append(all, setting{ID: id, Value: value})
	}
	slices.SortFunc(all, func(a, b setting) int { return strings.Compare(a.ID, b.ID) })
	for i := range all {
		all[i].Kind, all[i].Etag = "calendar#setting", primary.listEtag()
	}
	return numbered(all)
}

// listSettings serves calendar.settings.list.
func (d *Account) listSettings(q page.Request) (any, *wire.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	primary := d.calendars[0]
	l := syncedList{name: d.email + " settings", kind: "calendar#settings", etag: primary.listEtag(), rev: d.rev, tokens: &d.tokens}
	return list(q, l, func(since int64) []placed[setting] {
		return slices.DeleteFunc(d.settings(), func(s placed[setting]) bool { // the zone alone can have changed
			return since >= 0 && (s.item.ID != zoneSetting || primary.listRev <= since)
		})
	})
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
