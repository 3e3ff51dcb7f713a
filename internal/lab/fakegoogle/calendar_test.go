package fakegoogle_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	fakecalendar "headroom/internal/lab/fakegoogle/calendar"
)

// calendarClient is Google's own client, pointed at the fake.
func calendarClient(t *testing.T, url, token string) *calendar.Service {
	t.Helper()
	service, err := calendar.NewService(t.Context(), option.WithHTTPClient(httpClient(t, token)), option.WithEndpoint(url+"/calendar/v3/"))
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// at is a moment in Berlin's time.
func at(text string) *fakecalendar.EventTime {
	return &fakecalendar.EventTime{DateTime: text, TimeZone: "Europe/Berlin"}
}

// meeting is an hour from then on, every day so often if times is not 0.
func meeting(summary, start string, times int) fakecalendar.Event {
	e := fakecalendar.Event{Summary: summary, Start: at(start)}
	begin, _ := time.Parse("2006-01-02T15:04:05", start)
	e.End = at(begin.Add(time.Hour).Format("2006-01-02T15:04:05"))
	if times > 0 {
		e.Recurrence = []string{fmt.Sprintf("RRULE:FREQ=DAILY;COUNT=%d", times)}
	}
	return e
}

// primary makes the primary calendar of ann.
func primary(t *testing.T, server *fakegoogle.Server) *fakecalendar.Calendar {
	t.Helper()
	c, err := server.AddCalendar(ann, fakecalendar.Info{ID: ann})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustAdd(t *testing.T, c *fakecalendar.Calendar, e fakecalendar.Event) fakecalendar.Event {
	t.Helper()
	added, err := c.Add(e)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// syncAll pages through a list, and returns its events and its sync token.
func syncAll(t *testing.T, call *calendar.EventsListCall) (items []*calendar.Event, token string, pages int) {
	t.Helper()
	for {
		page, err := call.Do()
		if err != nil {
			t.Fatal(err)
		}
		pages++
		items = append(items, page.Items...)
		if page.NextPageToken == "" {
			return items, page.NextSyncToken, pages
		}
		if page.NextSyncToken != "" {
			t.Fatal("a page that is not the last has a sync token")
		}
		call = call.PageToken(page.NextPageToken)
	}
}

// wantReason checks an error's status and reason.
func wantReason(t *testing.T, what string, err error, code int, reason string) {
	t.Helper()
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok || e.Code != code || len(e.Errors) != 1 || e.Errors[0].Reason != reason {
		t.Errorf("%s: %v, want %d %s", what, err, code, reason)
	}
}

func TestEventsAreListedInPagesAndThenByChanges(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	var series fakecalendar.Event
	for i := range 12 {
		series = mustAdd(t, c, meeting(fmt.Sprint(i), "2026-03-02T09:00:00", i))
	}
	events := calendarClient(t, url, ann).Events
	items, token, pages := syncAll(t, events.List("primary").MaxResults(5))
	if len(items) != 12 || pages != 3 || token == "" {
		t.Fatalf("first sync: %d events in %d pages, sync token %q; want 12 in 3 and one", len(items), pages, token)
	}
	again, token, _ := syncAll(t, events.List("primary").SyncToken(token))
	if len(again) != 0 || token == "" {
		t.Errorf("nothing changed: %d events, sync token %q", len(again), token)
	}

	// The third occurrence is an hour later, the fourth does not take place, a
	// single event is gone, another is new.
	moved, err := c.Move(c.OccurrenceID(series.ID, *at("2026-03-04T09:00:00")), *at("2026-03-04T10:00:00"))
	if err != nil {
		t.Fatal(err)
	}
	cancelled := c.OccurrenceID(series.ID, *at("2026-03-05T09:00:00"))
	if err := errors.Join(c.Cancel(cancelled), c.Cancel(items[0].Id)); err != nil {
		t.Fatal(err)
	}
	added := mustAdd(t, c, meeting("new", "2026-03-09T09:00:00", 0))
	changes, next, _ := syncAll(t, events.List("primary").SyncToken(token))
	var ids []string
	for _, e := range changes {
		ids = append(ids, e.Id+" "+e.Status)
	}
	if want := []string{moved.ID + " confirmed", cancelled + " cancelled", items[0].Id + " cancelled", added.ID + " confirmed"}; !slices.Equal(ids, want) {
		t.Fatalf("changes %q, want %q", ids, want)
	}
	if s := changes[1]; s.RecurringEventId != series.ID || s.OriginalStartTime.DateTime != "2026-03-05T08:00:00Z" || s.Summary != "" || s.Start != nil || s.Updated != "" {
		t.Errorf("stub of an occurrence: %+v", s)
	}
	if s := changes[2]; s.Etag == "" || s.Kind != "calendar#event" || s.Summary != "" || s.RecurringEventId != "" || s.ICalUID != "" {
		t.Errorf("stub of an event: %+v", s)
	}
	if m := changes[0]; m.Start.DateTime != "2026-03-04T09:00:00Z" || m.Start.TimeZone != "Europe/Berlin" || m.OriginalStartTime.DateTime != "2026-03-04T08:00:00Z" {
		t.Errorf("moved occurrence: start %+v, original start %+v", m.Start, m.OriginalStartTime)
	}
	if next == token {
		t.Error("the sync token did not change")
	}
}

func TestASyncTokenIsTakenWithItsOwnQuestionOnly(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	for range 3 {
		mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	}
	events := calendarClient(t, url, ann).Events
	_, token, _ := syncAll(t, events.List("primary").ShowDeleted(true))
	for what, call := range map[string]*calendar.EventsListCall{
		"iCalUID":                 events.List("primary").ICalUID("x"),
		"orderBy":                 events.List("primary").OrderBy("updated"),
		"privateExtendedProperty": events.List("primary").PrivateExtendedProperty("a=b"),
		"q":                       events.List("primary").Q("x"),
		"sharedExtendedProperty":  events.List("primary").SharedExtendedProperty("a=b"),
		"timeMin":                 events.List("primary").TimeMin("2026-03-02T09:00:00Z"),
		"timeMax":                 events.List("primary").TimeMax("2026-03-02T09:00:00Z"),
		"updatedMin":              events.List("primary").UpdatedMin(time.Now().UTC().Format(time.RFC3339)),
		"showDeleted=false":       events.List("primary").ShowDeleted(false),
		"singleEvents":            events.List("primary").SingleEvents(true),
		"eventTypes":              events.List("primary").EventTypes("default"),
	} {
		_, err := call.SyncToken(token).Do()
		wantReason(t, what, err, 400, "badRequest")
	}
	for _, call := range []*calendar.EventsListCall{events.List("primary").OrderBy("updated"), events.List("primary").Q("m"), events.List("primary").ICalUID("x")} {
		if page, err := call.Do(); err != nil || page.NextSyncToken != "" {
			t.Errorf("a list that no token goes with has one: %v", err)
		}
	}
	if page, err := events.List("primary").TimeMin("2026-03-01T00:00:00Z").Do(); err != nil || page.NextSyncToken == "" {
		t.Errorf("the first list may be bounded: %v", err)
	}
	first, err := events.List("primary").MaxResults(1).Do()
	if err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]*calendar.EventsListCall{
		"another page size":   events.List("primary").MaxResults(2),
		"another parameter":   events.List("primary").MaxResults(1).ShowDeleted(true),
		"a token made longer": events.List("primary").MaxResults(1).PageToken("AAAA" + first.NextPageToken),
	} {
		if what != "a token made longer" {
			call = call.PageToken(first.NextPageToken)
		}
		_, err = call.Do()
		wantReason(t, what, err, 400, "invalid")
	}
	_, err = events.List("primary").SyncToken("nonsense").Do()
	wantReason(t, "a token that is none", err, 400, "invalid")
}

func TestTokensDie(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	events := calendarClient(t, url, ann).Events
	token := func() string {
		_, token, _ := syncAll(t, events.List("primary"))
		return token
	}
	old := token()
	c.ExpireTokens(false)
	_, err := events.List("primary").SyncToken(old).Do()
	wantReason(t, "expired", err, 410, "fullSyncRequired")
	if _, err := events.List("primary").SyncToken(token()).Do(); err != nil {
		t.Errorf("after a full sync: %v", err)
	}

	old = token()
	if err := c.SetAccess(fakecalendar.AccessReader); err != nil {
		t.Fatal(err)
	}
	_, err = events.List("primary").SyncToken(old).Do()
	wantReason(t, "another access list", err, 410, "fullSyncRequired")

	c.ExpireTokens(true)
	for range 2 {
		_, err = events.List("primary").SyncToken(token()).Do()
		wantReason(t, "expired for ever", err, 410, "fullSyncRequired")
	}
	c.ExpireTokens(false)
	if _, err := events.List("primary").SyncToken(token()).Do(); err != nil {
		t.Errorf("no longer for ever: %v", err)
	}

	page, err := events.List("primary").MaxResults(1).Do()
	if err != nil {
		t.Fatal(err)
	}
	c.ExpirePageTokens()
	_, err = events.List("primary").MaxResults(1).PageToken(page.NextPageToken).Do()
	wantReason(t, "page token", err, 400, "invalid")

	recent := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	if _, err := events.List("primary").UpdatedMin(recent).Do(); err != nil {
		t.Errorf("updatedMin an hour ago: %v", err)
	}
	c.ForgetChanges()
	_, err = events.List("primary").UpdatedMin(recent).Do()
	wantReason(t, "updatedMin", err, 410, "updatedMinTooLongAgo")
}

func TestTheListOfCalendarsIsIncrementalToo(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	primary(t, server)
	const odd = "en.usa#holiday@group.v.calendar.google.com"
	holidays, err := server.AddCalendar(ann, fakecalendar.Info{ID: odd, TimeZone: "America/New_York"})
	if err != nil {
		t.Fatal(err)
	}
	service := calendarClient(t, url, ann)
	list, err := service.CalendarList.List().MaxResults(1).Do()
	if err != nil || len(list.Items) != 1 || !list.Items[0].Primary || list.NextPageToken == "" || list.NextSyncToken != "" {
		t.Fatalf("first page: %+v, %v", list, err)
	}
	list, err = service.CalendarList.List().MaxResults(1).PageToken(list.NextPageToken).Do()
	if err != nil || len(list.Items) != 1 || list.Items[0].Id != odd || list.Items[0].TimeZone != "America/New_York" {
		t.Fatalf("second page: %+v, %v", list, err)
	}
	token := list.NextSyncToken
	if page, err := service.Events.List(odd).Do(); err != nil || page.TimeZone != "America/New_York" {
		t.Errorf("a calendar whose id must be escaped: %v", err)
	}
	if list, err = service.CalendarList.List().SyncToken(token).Do(); err != nil || len(list.Items) != 0 {
		t.Fatalf("nothing changed: %+v, %v", list, err)
	}
	for _, step := range []struct {
		access string
		code   int
		reason string
	}{{fakecalendar.AccessMissing, 404, "notFound"}, {fakecalendar.AccessDenied, 403, "forbidden"}, {fakecalendar.AccessNone, 404, "notFound"}} {
		if err := holidays.SetAccess(step.access); err != nil {
			t.Fatal(err)
		}
		_, err = service.Events.List(odd).Do()
		wantReason(t, step.access, err, step.code, step.reason)
	}
	if list, err = service.CalendarList.List().SyncToken(token).Do(); err != nil || len(list.Items) != 1 || !list.Items[0].Deleted {
		t.Errorf("a calendar went: %+v, %v", list, err)
	}
	if list, err = service.CalendarList.List().Do(); err != nil || len(list.Items) != 1 {
		t.Errorf("a new list after one went: %+v, %v", list, err)
	}
	_, err = service.CalendarList.List().SyncToken(token).ShowHidden(false).Do()
	wantReason(t, "showHidden=false", err, 400, "badRequest")
	_, err = service.CalendarList.List().SyncToken(token).MinAccessRole("owner").Do()
	wantReason(t, "minAccessRole", err, 400, "badRequest")
	server.ExpireListTokens(ann, false)
	_, err = service.CalendarList.List().SyncToken(token).Do()
	wantReason(t, "expired", err, 410, "fullSyncRequired")
}
