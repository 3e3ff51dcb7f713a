package fakegoogle_test

import (
	"fmt"
	"slices"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
)

// Clients of the wild ask for the next page with its token and nothing else.
func TestAPageTokenAloneGoesOnWithTheFirstQuestion(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	since := box.HistoryID()
	for i := range 6 {
		id := box.Add(mail(i), "INBOX")
		if i%2 == 0 {
			box.Relabel(id, []string{"STARRED"}, nil)
		}
	}
	c := primary(t, server)
	for i := range 6 {
		mustAdd(t, c, meeting(fmt.Sprint("m", i), "2026-03-02T09:00:00", 0))
	}
	series := mustAdd(t, c, meeting("series", "2026-04-01T09:00:00", 6))
	for i := range 3 {
		if _, err := server.AddCalendar(ann, calendar.Info{ID: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	mail, service := client(t, url, ann), calendarClient(t, url, ann)

	// Each asks for the first page with parameters and a narrow page, and for the
	// next by its token alone; "" asks for the first.
	lists := map[string]struct {
		want int
		page func(token string) (ids []string, next string, err error)
	}{
		"messages.list": {3, func(token string) (ids []string, next string, err error) {
			call := mail.Messages.List("me")
			if token == "" {
				call = call.LabelIds("STARRED").MaxResults(2)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			for _, m := range got.Messages {
				ids = append(ids, m.Id)
			}
			return ids, got.NextPageToken, nil
		}},
		"threads.list": {3, func(token string) (ids []string, next string, err error) {
			call := mail.Threads.List("me")
			if token == "" {
				call = call.Q("is:starred").MaxResults(2)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			for _, m := range got.Threads {
				ids = append(ids, m.Id)
			}
			return ids, got.NextPageToken, nil
		}},
		"history.list": {3, func(token string) (ids []string, next string, err error) {
			call := mail.History.List("me")
			if token == "" {
				call = call.StartHistoryId(since).HistoryTypes("labelAdded").MaxResults(2)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			for _, h := range got.History {
				ids = append(ids, fmt.Sprint(h.Id))
			}
			return ids, got.NextPageToken, nil
		}},
		"events.list": {12, func(token string) (ids []string, next string, err error) {
			call := service.Events.List("primary")
			if token == "" {
				call = call.SingleEvents(true).OrderBy("startTime").TimeMin("2026-03-01T00:00:00Z").MaxResults(5)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			for _, e := range got.Items {
				ids = append(ids, e.Id)
			}
			return ids, got.NextPageToken, nil
		}},
		"events.instances": {4, func(token string) (ids []string, next string, err error) {
			call := service.Events.Instances("primary", series.ID)
			if token == "" {
				call = call.TimeMin("2026-04-03T00:00:00Z").MaxResults(3)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			for _, e := range got.Items {
				ids = append(ids, e.Id)
			}
			return ids, got.NextPageToken, nil
		}},
		"calendarList.list": {4, func(token string) (ids []string, next string, err error) {
			call := service.CalendarList.List()
			if token == "" {
				call = call.MinAccessRole("owner").MaxResults(3)
			}
			got, err := call.PageToken(token).Do()
			if err != nil {
				return nil, "", err
			}
			if token != "" && got.NextSyncToken != "" {
				return nil, "", fmt.Errorf("the last page forgot minAccessRole: it has a sync token")
			}
			for _, e := range got.Items {
				ids = append(ids, e.Id)
			}
			return ids, got.NextPageToken, nil
		}},
	}
	for name, list := range lists {
		var all []string
		pages := 0
		for token := ""; pages == 0 || token != ""; pages++ {
			ids, next, err := list.page(token)
			if err != nil {
				t.Fatalf("%s, page %d: %v", name, pages+1, err)
			}
			all, token = append(all, ids...), next
		}
		slices.Sort(all)
		if len(all) != list.want || len(slices.Compact(all)) != list.want || pages < 2 {
			t.Errorf("%s gives %q on %d pages, want %d on more than one, each once", name, all, pages, list.want)
		}
	}
}

func TestAPageTokenIsRefusedWithAnotherQuestion(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	for i := range 3 {
		mustAdd(t, c, meeting(fmt.Sprint("m", i), "2026-03-02T09:00:00", 0))
	}
	events := calendarClient(t, url, ann).Events
	first, err := events.List("primary").SingleEvents(true).MaxResults(1).Do()
	if err != nil {
		t.Fatal(err)
	}
	token := first.NextPageToken
	_, err = events.List("primary").SingleEvents(false).PageToken(token).Do()
	wantReason(t, "another value", err, 400, "invalid")
	_, err = events.List("primary").TimeMin("2026-01-01T00:00:00Z").PageToken(token).Do()
	wantReason(t, "one more parameter", err, 400, "invalid")
	if got, err := events.List("primary").SingleEvents(true).PageToken(token).Do(); err != nil || len(got.Items) != 1 {
		t.Errorf("one of the first two parameters = %v, %v; want the next page", got, err)
	}
}

// Only an empty list of messages leaves its key out.
func TestEmptyAnswersOfCalendarHaveTheirKeys(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	primary(t, server)
	get := func(path string) map[string]any {
		t.Helper()
		return decode[map[string]any](t, do(t, "GET", url+path, "", 200))
	}
	for _, key := range []string{"items", "defaultReminders"} {
		if value, ok := get("/calendar/v3/calendars/primary/events")[key].([]any); !ok || len(value) != 0 {
			t.Errorf("an empty events.list has %s = %v, want []", key, value)
		}
	}
	if list := get("/gmail/v1/users/me/messages"); list["messages"] != nil {
		t.Errorf("an empty messages.list = %v, want no messages", list)
	}
}
