package fakegoogle_test

import (
	"fmt"
	neturl "net/url"
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
	// Each asks for the first page with a query, and for the next by its token alone.
	lists := map[string]struct {
		path, query, items string
		want               int
	}{
		"messages.list":     {"/gmail/v1/users/me/messages", "labelIds=STARRED&maxResults=2", "messages", 3},
		"threads.list":      {"/gmail/v1/users/me/threads", "q=is:starred&maxResults=2", "threads", 3},
		"history.list":      {"/gmail/v1/users/me/history", fmt.Sprintf("startHistoryId=%d&historyTypes=labelAdded&maxResults=2", since), "history", 3},
		"events.list":       {"/calendar/v3/calendars/primary/events", "singleEvents=true&orderBy=startTime&timeMin=2026-03-01T00:00:00Z&maxResults=5", "items", 12},
		"events.instances":  {"/calendar/v3/calendars/primary/events/" + series.ID + "/instances", "timeMin=2026-04-03T00:00:00Z&maxResults=3", "items", 4},
		"calendarList.list": {"/calendar/v3/users/me/calendarList", "minAccessRole=owner&maxResults=3", "items", 4},
	}
	for name, list := range lists {
		var all []string
		pages, query := 0, list.query
		for query != "" {
			page := decode[map[string]any](t, do(t, "GET", url+list.path+"?"+query, "", 200))
			items, _ := page[list.items].([]any)
			for _, item := range items {
				all = append(all, fmt.Sprint(item.(map[string]any)["id"]))
			}
			pages++
			if query = ""; page["nextPageToken"] != nil {
				query = "pageToken=" + neturl.QueryEscape(page["nextPageToken"].(string))
			} else if name == "calendarList.list" && page["nextSyncToken"] != nil {
				t.Error("the last page forgot minAccessRole: it has a sync token")
			}
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
