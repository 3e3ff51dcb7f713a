package fakegoogle_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lab/fakegoogle"
	fakecalendar "headroom/internal/lab/fakegoogle/calendar"
)

func TestFreeBusy(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	add := func(from, to string, change func(*fakecalendar.Event)) {
		e := fakecalendar.Event{Start: at(from), End: at(to)}
		if change != nil {
			change(&e)
		}
		mustAdd(t, c, e)
	}
	add("2026-03-01T23:00:00", "2026-03-02T01:00:00", nil) // begins before the query
	add("2026-03-02T09:00:00", "2026-03-02T10:00:00", nil)
	add("2026-03-02T09:30:00", "2026-03-02T11:00:00", nil)
	add("2026-03-02T11:00:00", "2026-03-02T11:30:00", nil) // follows at once
	add("2026-03-02T13:00:00", "2026-03-02T14:00:00", func(e *fakecalendar.Event) { e.Transparency = "transparent" })
	add("2026-03-02T15:00:00", "2026-03-02T16:00:00", func(e *fakecalendar.Event) {
		e.Attendees = []fakecalendar.EventAttendee{{Email: ann, Self: true, ResponseStatus: "declined"}}
	})
	add("2026-03-02T17:00:00", "2026-03-02T18:00:00", func(e *fakecalendar.Event) { e.Recurrence = []string{"RRULE:FREQ=DAILY"} })
	add("2026-03-05T17:00:00", "2026-03-05T18:00:00", nil) // after the query
	if _, err := server.AddCalendar(ann, fakecalendar.Info{ID: "days"}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, server.Calendar(ann, "days"), fakecalendar.Event{Start: &fakecalendar.EventTime{Date: "2026-03-02"}, End: &fakecalendar.EventTime{Date: "2026-03-03"}})
	if _, err := server.AddCalendar(ann, fakecalendar.Info{ID: "private"}); err != nil {
		t.Fatal(err)
	}
	if err := server.Calendar(ann, "private").SetAccess(fakecalendar.AccessDenied); err != nil {
		t.Fatal(err)
	}

	freebusy := calendarClient(t, url, ann).Freebusy
	query := func(change func(*calendar.FreeBusyRequest)) (*calendar.FreeBusyResponse, error) {
		request := &calendar.FreeBusyRequest{TimeMin: "2026-03-02T00:00:00+01:00", TimeMax: "2026-03-04T00:00:00+01:00", TimeZone: "Europe/Berlin"}
		for _, id := range []string{"primary", "days", "private", bob, "primary"} {
			request.Items = append(request.Items, &calendar.FreeBusyRequestItem{Id: id})
		}
		change(request)
		return freebusy.Query(request).Do()
	}
	got, err := query(func(*calendar.FreeBusyRequest) {})
	if err != nil {
		t.Fatal(err)
	}
	busy := func(id string) (periods []string) {
		for _, p := range got.Calendars[id].Busy {
			periods = append(periods, p.Start[len("2026-03-"):]+" "+p.End[len("2026-03-"):])
		}
		for _, e := range got.Calendars[id].Errors {
			periods = append(periods, e.Reason)
		}
		return periods
	}
	for id, want := range map[string][]string{
		"primary": {"02T00:00:00+01:00 02T01:00:00+01:00", "02T09:00:00+01:00 02T11:30:00+01:00", "02T17:00:00+01:00 02T18:00:00+01:00", "03T17:00:00+01:00 03T18:00:00+01:00"},
		"days":    {"02T01:00:00+01:00 03T01:00:00+01:00"}, // a day of a calendar in UTC
		"private": {"notFound"}, bob: {"notFound"},
	} {
		if periods := busy(id); !slices.Equal(periods, want) {
			t.Errorf("%s is busy %q, want %q", id, periods, want)
		}
	}
	if len(got.Calendars) != 4 || got.TimeMin != "2026-03-01T23:00:00.000Z" || got.Kind != "calendar#freeBusy" {
		t.Errorf("answer %+v", got)
	}
	if got, err = query(func(r *calendar.FreeBusyRequest) { r.CalendarExpansionMax = 1 }); err != nil || !slices.Equal(busy("days"), []string{"tooManyCalendarsRequested"}) || len(busy("primary")) != 4 {
		t.Errorf("one calendar at most: %+v, %v", got, err)
	}
	_, err = query(func(r *calendar.FreeBusyRequest) { r.TimeMin = "" })
	wantReason(t, "no timeMin", err, 400, "required")
	_, err = query(func(r *calendar.FreeBusyRequest) { r.TimeMax = r.TimeMin })
	wantReason(t, "an empty range", err, 400, "timeRangeEmpty")
	_, err = query(func(r *calendar.FreeBusyRequest) { r.TimeZone = "Mars/Olympus" })
	wantReason(t, "an unknown zone", err, 400, "invalid")
	if calls := server.CalendarMeter().User(ann); calls.CallsByMethod["calendar.freebusy.query"] != 5 || calls.Units != 5 {
		t.Errorf("charged %+v, want five requests", calls)
	}
}

func TestColorsSettingsAndAccessLists(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	service := calendarClient(t, url, ann)
	palette, err := service.Colors.Get().Do()
	if err != nil || len(palette.Calendar) != 24 || len(palette.Event) != 11 || palette.Event["11"].Background != "#dc2127" {
		t.Errorf("colors = %+v, %v", palette, err)
	}

	settings, err := service.Settings.List().MaxResults(10).Do()
	if err != nil || len(settings.Items) != 10 || settings.NextSyncToken != "" {
		t.Fatalf("settings = %+v, %v; want ten and more", settings, err)
	}
	rest, err := service.Settings.List().PageToken(settings.NextPageToken).Do()
	if err != nil || len(rest.Items) != 2 || rest.NextSyncToken == "" {
		t.Fatalf("other settings = %+v, %v; want two", rest, err)
	}
	c.SetZone("Asia/Tokyo")
	changed, err := service.Settings.List().SyncToken(rest.NextSyncToken).Do()
	if err != nil || len(changed.Items) != 1 || changed.Items[0].Id != "timezone" || changed.Items[0].Value != "Asia/Tokyo" {
		t.Errorf("changed settings = %+v, %v; want the zone", changed, err)
	}
	if again, err := service.Settings.List().SyncToken(changed.NextSyncToken).Do(); err != nil || len(again.Items) != 0 {
		t.Errorf("settings changed since = %+v, %v; want none", again, err)
	}
	if zone, err := service.Settings.Get("timezone").Do(); err != nil || zone.Value != "Asia/Tokyo" {
		t.Errorf("zone = %+v, %v", zone, err)
	}
	_, err = service.Settings.Get("mood").Do()
	wantReason(t, "an unknown setting", err, 404, "notFound")

	rules, err := service.Acl.List("primary").Do()
	if err != nil || len(rules.Items) != 1 || rules.Items[0].Role != "owner" || rules.Items[0].Scope.Value != ann || rules.NextSyncToken == "" {
		t.Fatalf("access list = %+v, %v", rules, err)
	}
	if rule, err := service.Acl.Get("primary", rules.Items[0].Id).Do(); err != nil || rule.Role != "owner" {
		t.Errorf("rule = %+v, %v", rule, err)
	}
	if since, err := service.Acl.List("primary").SyncToken(rules.NextSyncToken).Do(); err != nil || len(since.Items) != 0 {
		t.Errorf("rules changed since = %+v, %v; want none", since, err)
	}
	_, err = service.Acl.Get("primary", "user:"+bob).Do()
	wantReason(t, "an unknown rule", err, 404, "notFound")
	if err := c.SetAccess(fakecalendar.AccessReader); err != nil {
		t.Fatal(err)
	}
	_, err = service.Acl.List("primary").Do()
	wantReason(t, "a reader's access list", err, 403, "requiredAccessLevel")
	_, err = service.Events.QuickAdd("primary", "Lunch").Do()
	wantReason(t, "a reader's event", err, 403, "requiredAccessLevel")
}

func TestQuickAdd(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	primary(t, server)
	events := calendarClient(t, url, ann).Events
	_, token, _ := syncAll(t, events.List("primary"))
	added, err := events.QuickAdd("primary", "Appointment at Somewhere on 2026-06-03 10am-10:25am").Do()
	if err != nil || added.Summary != "Appointment at Somewhere" || added.Start.DateTime != "2026-06-03T10:00:00Z" || added.End.DateTime != "2026-06-03T10:25:00Z" {
		t.Fatalf("added %+v, %v", added, err)
	}
	changes, _, _ := syncAll(t, events.List("primary").SyncToken(token))
	if len(changes) != 1 || changes[0].Id != added.Id || changes[0].Status != "confirmed" {
		t.Errorf("changes %+v, want the event", changes)
	}
	_, err = events.QuickAdd("primary", " ").Do()
	wantReason(t, "no text", err, 400, "required")
	if _, err := events.QuickAdd("primary", strings.Repeat("long ", 2000)).Do(); err != nil {
		t.Errorf("a long text: %v", err)
	}
}
