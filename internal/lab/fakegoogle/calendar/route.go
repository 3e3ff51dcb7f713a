package calendar

import (
	"net/http"
	"net/url"
	"strings"
)

const prefix = "/calendar/v3/"

// Serves reports whether a request is of the Calendar API.
func Serves(r *http.Request) bool {
	return strings.HasPrefix(r.URL.EscapedPath(), prefix)
}

// The methods of Calendar that are served, by their ids in Google's discovery
// document.
const (
	methodCalendarListList  = "calendar.calendarList.list"
	methodCalendarListGet   = "calendar.calendarList.get"
	methodCalendarListWatch = "calendar.calendarList.watch"
	methodCalendarsGet      = "calendar.calendars.get"
	methodEventsList        = "calendar.events.list"
	methodEventsGet         = "calendar.events.get"
	methodEventsInstances   = "calendar.events.instances"
	methodEventsInsert      = "calendar.events.insert"
	methodEventsPatch       = "calendar.events.patch"
	methodEventsUpdate      = "calendar.events.update"
	methodEventsDelete      = "calendar.events.delete"
	methodEventsWatch       = "calendar.events.watch"
	methodEventsQuickAdd    = "calendar.events.quickAdd"
	methodChannelsStop      = "calendar.channels.stop"
	methodFreeBusyQuery     = "calendar.freebusy.query"
	methodColorsGet         = "calendar.colors.get"
	methodSettingsList      = "calendar.settings.list"
	methodSettingsGet       = "calendar.settings.get"
	methodACLList           = "calendar.acl.list"
	methodACLGet            = "calendar.acl.get"
)

// routes are methods by verb and path; a * stands for an id.
var routes = map[string]string{
	"GET users/me/calendarList":          methodCalendarListList,
	"GET users/me/calendarList/*":        methodCalendarListGet,
	"POST users/me/calendarList/watch":   methodCalendarListWatch,
	"GET calendars/*":                    methodCalendarsGet,
	"GET calendars/*/events":             methodEventsList,
	"POST calendars/*/events":            methodEventsInsert,
	"POST calendars/*/events/watch":      methodEventsWatch,
	"GET calendars/*/events/*":           methodEventsGet,
	"PATCH calendars/*/events/*":         methodEventsPatch,
	"PUT calendars/*/events/*":           methodEventsUpdate,
	"DELETE calendars/*/events/*":        methodEventsDelete,
	"GET calendars/*/events/*/instances": methodEventsInstances,
	"POST calendars/*/events/quickAdd":   methodEventsQuickAdd,
	"GET calendars/*/acl":                methodACLList,
	"GET calendars/*/acl/*":              methodACLGet,
	"GET users/me/settings":              methodSettingsList,
	"GET users/me/settings/*":            methodSettingsGet,
	"GET colors":                         methodColorsGet,
	"POST freeBusy":                      methodFreeBusyQuery,
	"POST channels/stop":                 methodChannelsStop,
}

// A Operation is a request of Calendar understood.
type Operation struct {
	Method   string
	Calendar string // from the path; "" where it names none
	Event    string // or a rule of an access list, or a setting
}

// Route finds the operation of a request. Segments of the path are
// unescaped one by one, so an id may hold any character.
func Route(r *http.Request) (Operation, bool) {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), prefix), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" {
			return Operation{}, false
		}
		segments[i] = plain
	}
	for pattern, method := range routes {
		verb, path, _ := strings.Cut(pattern, " ")
		if verb != r.Method {
			continue
		}
		if ids, ok := matchPath(strings.Split(path, "/"), segments); ok {
			op := Operation{Method: method}
			if method == methodSettingsGet { // no calendar's
				op.Event, ids = ids[0], nil
			}
			if len(ids) > 0 {
				op.Calendar = ids[0]
			}
			if len(ids) > 1 {
				op.Event = ids[1]
			}
			return op, true
		}
	}
	return Operation{}, false
}

// matchPath compares a path with a pattern and returns what its stars stand for.
func matchPath(pattern, path []string) (ids []string, ok bool) {
	if len(pattern) != len(path) {
		return nil, false
	}
	for i, want := range pattern {
		if want == "*" {
			ids = append(ids, path[i])
		} else if want != path[i] {
			return nil, false
		}
	}
	return ids, true
}
