package fakegoogle_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lab/fakegoogle"
	fakecalendar "headroom/internal/lab/fakegoogle/calendar"
)

func TestPeopleEditOverTheAPI(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	events := calendarClient(t, url, ann).Events
	in := func(text string) *calendar.EventDateTime {
		return &calendar.EventDateTime{DateTime: text, TimeZone: "America/New_York"}
	}
	series, err := events.Insert("primary", &calendar.Event{
		Summary: "stand-up", Start: in("2026-10-26T09:00:00"), End: in("2026-10-26T09:15:00"), Recurrence: []string{"RRULE:FREQ=WEEKLY"},
	}).Do()
	if err != nil {
		t.Fatal(err)
	}
	// The clocks change between the first and the second occurrence.
	second := c.OccurrenceID(series.Id, fakecalendar.EventTime{DateTime: "2026-11-02T14:00:00Z"})
	if e, err := events.Get("primary", second).Do(); err != nil || e.Start.DateTime != "2026-11-02T14:00:00Z" || e.Start.TimeZone != "America/New_York" {
		t.Fatalf("second occurrence %s: %+v, %v", second, e, err)
	}
	if e, err := events.Get("primary", second).TimeZone("America/New_York").Do(); err != nil || e.Start.DateTime != "2026-11-02T09:00:00-05:00" {
		t.Errorf("in its own zone: %+v, %v", e, err)
	}
	_, token, _ := syncAll(t, events.List("primary"))

	if _, err := events.Patch("primary", second, &calendar.Event{Location: "room 2"}).Do(); err != nil {
		t.Fatal(err)
	}
	if err := events.Delete("primary", c.OccurrenceID(series.Id, fakecalendar.EventTime{DateTime: "2026-11-09T14:00:00Z"})).Do(); err != nil {
		t.Fatal(err)
	}
	changes, token, _ := syncAll(t, events.List("primary").SyncToken(token))
	if len(changes) != 2 || changes[0].Location != "room 2" || changes[0].Summary != "stand-up" || changes[0].RecurringEventId != series.Id || changes[1].Status != "cancelled" {
		t.Fatalf("changes: %+v", changes)
	}
	instances, err := events.Instances("primary", series.Id).TimeMax("2026-11-20T00:00:00Z").Do()
	if err != nil {
		t.Fatal(err)
	}
	var starts []string
	for _, e := range instances.Items {
		starts = append(starts, e.Start.DateTime+" "+e.Location)
	}
	if want := []string{"2026-10-26T13:00:00Z ", "2026-11-02T14:00:00Z room 2", "2026-11-16T14:00:00Z "}; !slices.Equal(starts, want) {
		t.Errorf("instances %q, want %q", starts, want)
	}
	single, err := events.List("primary").SingleEvents(true).OrderBy("startTime").TimeMin("2026-10-27T00:00:00Z").TimeMax("2026-11-20T00:00:00Z").Do()
	if err != nil || len(single.Items) != 2 || single.Items[0].Id != second {
		t.Errorf("single events: %+v, %v", single, err)
	}

	// A whole series goes, each of its exceptions with a stub of its own.
	if err := events.Delete("primary", series.Id).Do(); err != nil {
		t.Fatal(err)
	}
	changes, _, _ = syncAll(t, events.List("primary").SyncToken(token))
	if len(changes) != 2 || changes[0].Id != series.Id || changes[1].Id != second || changes[1].Status != "cancelled" {
		t.Errorf("a series went: %+v", changes)
	}
	wantReason(t, "deleted twice", events.Delete("primary", series.Id).Do(), 410, "deleted")
	_, err = events.Patch("primary", "nothing", &calendar.Event{}).Do()
	wantReason(t, "nothing to patch", err, 404, "notFound")
	_, err = events.Get("primary", "nothing").Do()
	wantReason(t, "nothing to get", err, 404, "notFound")
}

func TestWhatGoogleRefusesToStore(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	service := calendarClient(t, url, ann)
	there := mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	moment := func(text string) *calendar.EventDateTime { return &calendar.EventDateTime{DateTime: text} }
	nine, ten := moment("2026-03-02T09:00:00Z"), moment("2026-03-02T10:00:00Z")
	for what, test := range map[string]struct {
		event  *calendar.Event
		code   int
		reason string
	}{
		"no start":           {&calendar.Event{End: ten}, 400, "required"},
		"no end":             {&calendar.Event{Start: nine}, 400, "required"},
		"the end first":      {&calendar.Event{Start: ten, End: nine}, 400, "timeRangeEmpty"},
		"a day and a moment": {&calendar.Event{Start: nine, End: &calendar.EventDateTime{Date: "2026-03-03"}}, 400, "invalid"},
		"no zone":            {&calendar.Event{Start: nine, End: ten, Recurrence: []string{"RRULE:FREQ=DAILY"}}, 400, "required"},
		"an odd id":          {&calendar.Event{Id: "X!", Start: nine, End: ten}, 400, "invalid"},
		"an id that is had":  {&calendar.Event{Id: there.ID, Start: nine, End: ten}, 409, "duplicate"},
	} {
		_, err := service.Events.Insert("primary", test.event).Do()
		wantReason(t, what, err, test.code, test.reason)
	}
	patch := service.Events.Patch("primary", there.ID, &calendar.Event{Summary: "n"})
	patch.Header().Set("If-Match", `"another"`)
	_, err := patch.Do()
	wantReason(t, "changed meanwhile", err, 412, "conditionNotMet")
	if err := c.SetAccess(fakecalendar.AccessReader); err != nil {
		t.Fatal(err)
	}
	_, err = service.Events.Insert("primary", &calendar.Event{Start: nine, End: ten}).Do()
	wantReason(t, "a reader", err, 403, "requiredAccessLevel")
}

func TestASeriesIsSplitAtThisAndFollowing(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	series := mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 10))
	early := c.OccurrenceID(series.ID, *at("2026-03-03T09:00:00"))
	late := c.OccurrenceID(series.ID, *at("2026-03-08T09:00:00"))
	_, err := c.Move(late, *at("2026-03-08T12:00:00"))
	if err := errors.Join(err, c.Cancel(early)); err != nil {
		t.Fatal(err)
	}
	events := calendarClient(t, url, ann).Events
	_, token, _ := syncAll(t, events.List("primary"))
	created, err := c.Split(series.ID, *at("2026-03-05T09:00:00"), func(e *fakecalendar.Event) { e.Summary = "changed" })
	if err != nil {
		t.Fatal(err)
	}
	if created.ID != series.ID+"_R20260305T080000" || !slices.Equal(created.Recurrence, []string{"RRULE:FREQ=DAILY;COUNT=7"}) {
		t.Errorf("new series %s recurs %q", created.ID, created.Recurrence)
	}
	changes, _, _ := syncAll(t, events.List("primary").SyncToken(token))
	got := map[string]string{}
	for _, e := range changes {
		got[e.Id] = e.Status + " " + e.Summary
	}
	moved := c.OccurrenceID(created.ID, *at("2026-03-08T09:00:00"))
	want := map[string]string{series.ID: "confirmed m", created.ID: "confirmed changed", late: "cancelled ", moved: "confirmed m"}
	if len(got) != len(want) {
		t.Errorf("changes %v, want %v", got, want)
	}
	for id, status := range want {
		if got[id] != status {
			t.Errorf("%s: %q, want %q", id, got[id], status)
		}
	}
	count := func(id string) int {
		list, err := events.Instances("primary", id).Do()
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if old, following := count(series.ID), count(created.ID); old != 2 || following != 7 { // 3 but the cancelled one
		t.Errorf("%d and %d occurrences, want 2 and 7", old, following)
	}
	if _, err := c.Split(created.ID, *at("2026-03-05T09:00:00"), nil); err == nil {
		t.Error("a series is split at its first occurrence")
	}
}

// Of a series deleted without a word about its exceptions, the truth still has
// them as cancelled.
func TestASeriesMayGoWithoutAWordOfItsExceptions(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	series := mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 10))
	moved, err := c.Move(c.OccurrenceID(series.ID, *at("2026-03-03T09:00:00")), *at("2026-03-03T10:00:00"))
	if err != nil {
		t.Fatal(err)
	}
	events := calendarClient(t, url, ann).Events
	_, token, _ := syncAll(t, events.List("primary"))
	if err := c.DeleteSeries(series.ID); err != nil {
		t.Fatal(err)
	}
	changes, _, _ := syncAll(t, events.List("primary").SyncToken(token))
	if len(changes) != 1 || changes[0].Id != series.ID {
		t.Errorf("changes %+v, want the series alone", changes)
	}
	for _, e := range c.Events() {
		if e.Status != fakecalendar.EventCancelled {
			t.Errorf("%s is %s", e.ID, e.Status)
		}
	}
	if err := c.Cancel(moved.ID); !errors.Is(err, fakecalendar.ErrNoEvent) {
		t.Errorf("cancelled twice: %v", err)
	}
	if err := c.Delete("nothing"); !errors.Is(err, fakecalendar.ErrNoEvent) {
		t.Errorf("nothing to delete: %v", err)
	}
}

func TestDeletedEventsAreShownOnDemand(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	gone := mustAdd(t, c, meeting("gone", "2026-03-02T09:00:00", 0))
	noted := meeting("m", "2026-03-02T09:00:00", 3)
	noted.ExtendedProperties = &fakecalendar.EventProperties{Private: map[string]string{"a": "b"}}
	series := mustAdd(t, c, noted)
	occurrence := c.OccurrenceID(series.ID, *at("2026-03-03T09:00:00"))
	if err := errors.Join(c.Cancel(gone.ID), c.Cancel(occurrence)); err != nil {
		t.Fatal(err)
	}
	events := calendarClient(t, url, ann).Events
	for _, test := range []struct {
		call *calendar.EventsListCall
		want []string
	}{
		{events.List("primary"), []string{series.ID, occurrence}},
		{events.List("primary").ShowDeleted(true), []string{gone.ID, series.ID, occurrence}},
		{events.List("primary").UpdatedMin(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)), []string{gone.ID, series.ID, occurrence}},
		{events.List("primary").SingleEvents(true), []string{series.ID + "_20260302T080000Z", series.ID + "_20260304T080000Z"}},
		{events.List("primary").TimeMin("2026-03-05T00:00:00Z"), []string{occurrence}},
		{events.List("primary").PrivateExtendedProperty("a=b").TimeMax("2026-03-03T00:00:00Z"), []string{series.ID, occurrence}},
		{events.List("primary").PrivateExtendedProperty("a=c"), nil},
		{events.List("primary").ICalUID(gone.ICalUID).ShowDeleted(true), []string{gone.ID}},
	} {
		list, err := test.call.Do()
		if err != nil {
			t.Error(err)
			continue
		}
		var ids []string
		for _, e := range list.Items {
			ids = append(ids, e.Id)
		}
		if !slices.Equal(ids, test.want) {
			t.Errorf("%q, want %q", ids, test.want)
		}
	}
	_, err := events.List("primary").TimeMin("2026-03-05T00:00:00Z").TimeMax("2026-03-05T00:00:00Z").Do()
	wantReason(t, "an empty range", err, 400, "timeRangeEmpty")
	_, err = events.List("primary").OrderBy("startTime").Do()
	wantReason(t, "series by start", err, 400, "badRequest")
}
