package fakegoogle_test

import (
	"encoding/json"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
)

func TestCalendarsAreChangedByHTTP(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	control := url + "/_fake/calendar"
	changed := func(body string) []calendar.Event {
		t.Helper()
		return decode[calendar.Changed](t, post(t, control, body, 200)).Events
	}
	post(t, control, `{"account":"bob@example.com","op":"expire-token"}`, 404)
	changed(`{"account":"bob@example.com","calendar":"team@group.calendar.google.com","op":"add-calendar","time_zone":"Asia/Tokyo"}`)
	if c := server.Calendar(bob, "team@group.calendar.google.com"); c == nil || c.State().TimeZone != "Asia/Tokyo" {
		t.Error("no calendar was added")
	}
	series := changed(`{"account":"ann@example.com","op":"add","event":{"summary":"m","recurrence":["RRULE:FREQ=DAILY"],
		"start":{"dateTime":"2026-03-02T09:00:00","timeZone":"Europe/Berlin"},"end":{"dateTime":"2026-03-02T10:00:00","timeZone":"Europe/Berlin"}}}`)[0]
	all := changed(`[
		{"op":"move","id":"` + series.ID + `","original":{"dateTime":"2026-03-03T08:00:00Z"},"start":{"dateTime":"2026-03-03T12:00:00Z"}},
		{"op":"cancel","id":"` + series.ID + `","original":{"dateTime":"2026-03-04T08:00:00Z"}},
		{"op":"update","id":"` + series.ID + `","event":{"location":"room 2"}},
		{"op":"split","id":"` + series.ID + `","original":{"dateTime":"2026-03-06T08:00:00Z"},"event":{"summary":"n"}},
		{"op":"expire-token"},{"op":"expire-page-tokens"},{"op":"expire-list-token"},{"op":"forget-changes"},{"op":"hide","hidden":true},
		{"op":"acl","access":"reader"}]`)
	if len(all) != 3 || all[0].Start.DateTime != "2026-03-03T12:00:00Z" || all[1].Location != "room 2" || all[1].Summary != "m" || all[2].Summary != "n" {
		t.Fatalf("events %+v", all)
	}
	state := decode[calendar.AccountState](t, do(t, "GET", control+"?account=ann@example.com", "", 200))
	if len(state.Calendars) != 1 {
		t.Fatalf("state %+v", state)
	}
	if c := state.Calendars[0]; c.ID != ann || !c.Primary || !c.Hidden || c.Access != "reader" || len(c.Events) != 4 || c.Events[2].Status != "cancelled" {
		t.Errorf("calendar %+v", c)
	}
	changed(`{"op":"delete-series","id":"` + all[2].ID + `"}`)
	changed(`{"op":"delete","id":"` + series.ID + `"}`)
	for _, e := range server.Calendar(ann, ann).Events() {
		if e.Status != calendar.EventCancelled {
			t.Errorf("%s is %s", e.ID, e.Status)
		}
	}
	const odd = `{"id":"odd","updated":"2020-01-01T00:00:00Z","sequence":"3","start":{"dateTime":"2026-12-01T09:00:00+02:00","timeZone":"GMT+02:00"}}`
	post(t, control, `[{"op":"put","event":`+odd+`},{"op":"cancel","id":"odd"},{"op":"put","event":`+odd+`},{"op":"zone","time_zone":"Custom/Foo"}]`, 200)
	if c := decode[struct {
		Calendars []struct{ Events []json.RawMessage }
	}](t, do(t, "GET", control+"?account=ann@example.com", "", 200)).Calendars[0]; len(c.Events) == 0 ||
		string(c.Events[len(c.Events)-1]) != odd {
		t.Errorf("an event that was put twice, %s", c.Events)
	}
	if zone := server.Calendar(ann, ann).State().TimeZone; zone != "Custom/Foo" {
		t.Errorf("the calendar's zone is %s", zone)
	}
	for body, status := range map[string]int{
		`{"op":"put","event":{"summary":"no id"}}`: 400, `{"op":"put","event":"x"}`: 400, `{"op":"zone"}`: 400,
		`{"op":"cancel","id":"nothing"}`:                   404,
		`{"op":"cancel","calendar":"nothing"}`:             404,
		`{"op":"dance"}`:                                   400,
		`{"op":"move","id":"x"}`:                           400,
		`{"op":"acl","access":"king"}`:                     400,
		`{"op":"add","event":{"summary":"no times"}}`:      400,
		`{"op":"update","id":"x","event":{"sumnary":"m"}}`: 400,
		`{"op":"add","evnt":{}}`:                           400,
	} {
		post(t, control, body, status)
	}
}
