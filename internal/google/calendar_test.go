package google

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
	"headroom/quota"
)

// openCalendar opens ann's calendars in the interactive lane.
func openCalendar(t *testing.T, g *Google) *Calendar {
	t.Helper()
	c, err := g.Calendar(t.Context(), ann, quota.Interactive, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Calendar) eventPage(t *testing.T, id, syncToken, pageToken string) (page jobs.EventPage, err error) {
	t.Helper()
	err = c.Events(t.Context(), id, syncToken, pageToken, func(p jobs.EventPage) error { page = p; return nil })
	return page, err
}

const holidays = "en.usa#holiday@group.v.calendar.google.com"

// recorded notes the queries that reach a fake.
type recorded struct {
	mu      sync.Mutex
	queries []url.Values
	paths   []string
}

func record(t *testing.T, fake http.Handler) (*recorded, string) {
	r := &recorded{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.queries = append(r.queries, request.URL.Query())
		r.paths = append(r.paths, request.URL.EscapedPath())
		r.mu.Unlock()
		fake.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return r, server.URL
}

func TestCalendarsAreListedAndReadInPages(t *testing.T) {
	fake, _, _ := newFake(t, fakegoogle.Options{})
	calls, url := record(t, fake)
	diary, err := fake.AddCalendar(ann.Email, calendar.Info{ID: holidays, Summary: "Holidays", TimeZone: "America/New_York"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		day := fmt.Sprintf("2026-08-1%d", i)
		if _, err := diary.Add(calendar.Event{ID: fmt.Sprintf("event%d", i), Start: &calendar.EventTime{Date: day}, End: &calendar.EventTime{Date: "2026-09-01"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := fake.AddFault(fault.Fault{Method: "calendar.events.list", Quirk: fault.Quirk{PageItems: 2}}); err != nil {
		t.Fatal(err)
	}
	c := openCalendar(t, newTestGoogle(t, Options{Endpoint: url}))

	var list jobs.CalendarListPage
	if err := c.Calendars(t.Context(), "", "", func(p jobs.CalendarListPage) error { list = p; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(list.Calendars) != 2 || list.SyncToken == "" || list.Next != "" || !list.Calendars[0].Primary {
		t.Fatalf("list = %+v, want the primary calendar and the holidays, and a sync token", list)
	}
	if h := list.Calendars[1]; h.ID != holidays || h.Summary != "Holidays" || h.TimeZone != "America/New_York" || h.AccessRole != "owner" {
		t.Errorf("holidays = %+v", h)
	}

	var ids []string
	var sync string
	for token := ""; sync == ""; {
		page, err := c.eventPage(t, holidays, "", token)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			ids = append(ids, e.ID)
			if !strings.Contains(string(e.JSON), `"date":"2026-08-1`) || e.Updated.IsZero() || e.ICalUID == "" || e.Status != "confirmed" {
				t.Errorf("event = %+v, with %s", e, e.JSON)
			}
		}
		token, sync = page.Next, page.SyncToken
	}
	if len(ids) != 5 {
		t.Errorf("events = %q, want 5", ids)
	}
	if err := diary.Cancel("event3"); err != nil {
		t.Fatal(err)
	}
	page, err := c.eventPage(t, holidays, sync, "")
	if err != nil || len(page.Events) != 1 || page.Events[0].ID != "event3" || !page.Events[0].Cancelled() || !page.Events[0].Updated.IsZero() || page.Updated.IsZero() {
		t.Errorf("changes = %+v, %v, want a thin tombstone of event3", page, err)
	}

	// The list first; all pages of a pass have the same parameters.
	quotaUser := QuotaUser("ANN@example.com")
	if len(quotaUser) > 40 || strings.Contains(quotaUser, "ann") {
		t.Errorf("quotaUser %q", quotaUser)
	}
	for i, q := range calls.queries {
		if q.Get("quotaUser") != quotaUser {
			t.Errorf("call %d is charged to %q, want %q", i, q.Get("quotaUser"), quotaUser)
		}
		q.Del("pageToken")
	}
	if diff := cmp.Diff(calls.queries[1], calls.queries[3]); diff != "" || calls.queries[1].Get("singleEvents") != "false" ||
		calls.queries[1].Get("showDeleted") != "true" || calls.queries[1].Get("maxResults") != "2500" {
		t.Errorf("first and last page of a pass differ: %s; %v", diff, calls.queries[1])
	}
	if want := "/calendar/v3/calendars/en.usa%23holiday%40group.v.calendar.google.com/events"; calls.paths[1] != want {
		t.Errorf("path %s, want %s", calls.paths[1], want)
	}
}

// What a refusal means for a calendar, and for the account.
func TestCalendarErrorsAreSorted(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	calendarCalls := []call{callCalendars, callCalendarsPage, callEvents, callEventsPage}
	lists, events := calendarCalls[:2], calendarCalls[2:]
	tokens := []call{callCalendarsPage, callEventsPage}
	for _, tt := range []struct {
		name   string
		status int
		reason string
		calls  []call
		class  jobs.Class
		says   string
	}{
		{"a sync token that expired", 410, "fullSyncRequired", calendarCalls, jobs.ClassExpired, ""},
		{"an updatedMin too long ago", 410, "updatedMinTooLongAgo", calendarCalls, jobs.ClassExpired, ""},
		{"a deleted calendar", 410, "deleted", events, jobs.ClassGone, ""},
		{"no such calendar", 404, "notFound", events, jobs.ClassGone, ""},
		{"no calendar to watch", 404, "notFound", []call{callWatchEvents}, jobs.ClassGone, ""},
		{"one that may not be watched", 403, "forbidden", []call{callWatchEvents}, jobs.ClassForbidden, ""},
		{"an API that is off, for watches", 403, "accessNotConfigured", []call{callWatchEvents, callWatchList}, jobs.ClassProject, "Google Calendar API"},
		{"no such account", 404, "notFound", lists, jobs.ClassAccount, "address"},
		{"a calendar that may not be read", 403, "forbidden", events, jobs.ClassForbidden, ""},
		{"another refusal of one calendar", 403, "requiredAccessLevel", events, jobs.ClassForbidden, ""},
		{"a token for somebody else", 403, "forbidden", lists, jobs.ClassAccount, CalendarScope},
		{"a missing scope", 403, "insufficientPermissions", calendarCalls, jobs.ClassAccount, CalendarScope},
		{"an API that is off", 403, "accessNotConfigured", calendarCalls, jobs.ClassProject, "Google Calendar API"},
		{"the domain's policy", 403, "domainPolicy", calendarCalls, jobs.ClassAccount, "administrators"},
		{"a token refused twice", 401, "authError", calendarCalls, jobs.ClassAccount, CalendarScope},
		{"a dead page token", 400, "invalid", tokens, jobs.ClassCursor, ""},
		{"a request that makes no sense", 400, "badRequest", []call{callEvents}, jobs.ClassItem, ""},
		{"the user's minute", 403, "rateLimitExceeded", calendarCalls, jobs.ClassQuota, ""},
		{"the general limits", 403, "quotaExceeded", calendarCalls, jobs.ClassQuota, ""},
		{"a precondition", 400, "failedPrecondition", []call{callCalendars}, jobs.ClassTransient, "if that goes on, check that the user has calendars"},
		{"a server fault", 503, "backendError", calendarCalls, jobs.ClassTransient, ""},
	} {
		domain := "global"
		if tt.class == jobs.ClassQuota {
			domain = "usageLimits"
		}
		for _, c := range tt.calls {
			err := g.classify(t.Context(), c, answered(t, tt.status, nil, envelope(tt.status, domain, tt.reason, "Something", "")))
			call, ok := errors.AsType[*jobs.CallError](err)
			if !ok || call.Class != tt.class || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, %s: %v, want class %s and %q", tt.name, c, err, tt.class, tt.says)
			}
		}
	}
}

func TestATombstoneNeedsNoMoreThanItsID(t *testing.T) {
	e, _, err := eventOf(json.RawMessage(`{"id":"m_20260310T150000Z","status":"cancelled","recurringEventId":"m","originalStartTime":{"dateTime":"2026-03-10T15:00:00Z"},"updated":"never"}`))
	if err != nil || e.Series != "m" || e.OriginalStart != "2026-03-10T15:00:00Z" || !e.Updated.IsZero() || !e.Cancelled() {
		t.Errorf("event = %+v, %v", e, err)
	}
	if e, _, err := eventOf(json.RawMessage(`{"id":"d_20260812","originalStartTime":{"date":"2026-08-12"},"updated":"2026-08-01T10:00:00.5Z"}`)); err != nil ||
		e.OriginalStart != "2026-08-12" || e.Updated.Nanosecond() != int(500*time.Millisecond) {
		t.Errorf("event = %+v, %v", e, err)
	}
	for _, bad := range []string{`{"status":"cancelled"}`, `[]`, `null`, `"e"`, `{"id":{}}`} {
		if _, _, err := eventOf(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is taken for an event", bad)
		}
	}
}

// Under domain-wide delegation, each user is charged for its own calls, and no
// call to the service account.
func TestEachUserOfAServiceAccountIsCharged(t *testing.T) {
	fake, _, url := newFake(t, fakegoogle.Options{})
	fake.AddMailbox("bob@example.com")
	g := newTestGoogle(t, Options{Endpoint: url, Projects: map[string]Project{project: {Credentials: writeKey(t, url, nil)}}})
	for _, email := range []string{"ann@example.com", "Bob@example.com"} {
		c, err := g.Calendar(t.Context(), jobs.Account{Email: email, Project: project}, quota.Interactive, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Calendars(t.Context(), "", "", func(jobs.CalendarListPage) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	charged := map[string]int64{}
	for _, u := range fake.CalendarMeter().Users {
		charged[u.User] = u.Calls
	}
	want := map[string]int64{QuotaUser("ann@example.com"): 2, QuotaUser("bob@example.com"): 2}
	if diff := cmp.Diff(want, charged); diff != "" {
		t.Errorf("calls charged (-want +got):\n%s", diff)
	}
}
