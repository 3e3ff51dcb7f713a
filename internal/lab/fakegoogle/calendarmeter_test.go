package fakegoogle_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
)

func TestCalendarHasMetersOfItsOwn(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 5, CalendarUserLimit: 3, CalendarProjectLimit: 4})
	primary(t, server)
	events, mail := calendarClient(t, url, ann).Events, client(t, url, ann).Messages
	if _, err := mail.List("me").Do(); err != nil { // all 5 units of Gmail
		t.Fatal(err)
	}
	for range 3 {
		if _, err := events.List("primary").Do(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := events.List("primary").Do()
	wantError(t, err, 403, "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service 'calendar-json.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")
	// Another user of the same project has one call left, and then the project none.
	if _, err = events.List("primary").Do(googleapi.QuotaUser("somebody")); err != nil {
		t.Error(err)
	}
	_, err = events.List("primary").Do(googleapi.QuotaUser("somebody"))
	wantError(t, err, 403, "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'calendar-json.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")

	r := decode[meter.Report](t, do(t, "GET", url+"/_fake/meter", "", 200))
	if r.User(ann).Calls != 1 || r.Refused() != 0 {
		t.Errorf("Gmail's meter saw %+v", r.User(ann))
	}
	c := r.Calendar
	if u := c.User(ann); u.Calls != 4 || u.Units != 4 || u.Refused != 1 || u.Limit != 3 || u.WindowsOverLimit != 1 {
		t.Errorf("ann: %+v", u)
	}
	if u := c.User("somebody"); u.Calls != 2 || u.QuotaUserCalls != 2 || u.Refusals[meter.RefusedProjectUnits] != 1 {
		t.Errorf("the quota user: %+v", u)
	}
	if n := c.Calendar(ann, ann); n.Calls != 6 || n.Refused != 2 || n.CallsByMethod["calendar.events.list"] != 6 || len(c.Calendars) != 1 {
		t.Errorf("calls by calendar: %+v", c.Calendars)
	}
	if c.Refused() != 2 || c.OverLimit() != 2 {
		t.Errorf("%d refused, %d over their limit; want 2 and 2", c.Refused(), c.OverLimit())
	}
	calls := 0
	for a := range server.Select(meter.Filter{User: ann, Calendar: true}) {
		if a.Account != ann || a.Calendar != ann || a.Status == 0 {
			t.Errorf("arrival %+v", a)
		}
		calls++
	}
	if calls != 6 {
		t.Errorf("%d arrivals of ann's calendars, want 6", calls)
	}
	if got := string(do(t, "POST", url+"/_fake/limits?api=calendar", `{"user":600}`, 200)); !strings.HasPrefix(got, `{"user":600,"project":4,`) {
		t.Errorf("limits %s", got)
	}
}

func TestAServiceAccountIsChargedUnlessAQuotaUserIsNamed(t *testing.T) {
	const robot = "robot@project.iam.gserviceaccount.com"
	server, base := start(t, fakegoogle.Options{})
	primary(t, server)
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q,"sub":%q}`, robot, ann))
	resp, err := httpClient(t, "").PostForm(base+"/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {"e30." + claims + ".x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	issued := decode[struct {
		Token string `json:"access_token"`
	}](t, body)
	events := calendarClient(t, base, issued.Token).Events
	longest := strings.Repeat("f", 40)
	byHeader := events.List("primary")
	byHeader.Header().Set("X-Goog-Quota-User", "by-header")
	for _, do := range []func() error{
		func() error { _, err := events.List("primary").Do(); return err },
		func() error { _, err := byHeader.Do(); return err },
		func() error { _, err := events.List("primary").Do(googleapi.QuotaUser(longest)); return err },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	_, err = events.List("primary").Do(googleapi.QuotaUser(longest + "f"))
	wantReason(t, "a quota user too long", err, 400, "invalidArgument")
	report := server.CalendarMeter()
	for _, user := range []string{robot, "by-header", longest} {
		if report.User(user).Calls != 1 {
			t.Errorf("%s: %d calls, want 1", user, report.User(user).Calls)
		}
	}
	if report.User(ann).Calls != 0 || report.Calendar(ann, ann).Calls != 3 {
		t.Errorf("ann is charged %d calls and has %d, want 0 and 3", report.User(ann).Calls, report.Calendar(ann, ann).Calls)
	}
}

func TestFaultsStrikeOneCalendar(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	for range 5 {
		mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	}
	other, err := server.AddCalendar(ann, calendar.Info{ID: "other@group.calendar.google.com"})
	if err != nil {
		t.Fatal(err)
	}
	events := calendarClient(t, url, ann).Events
	addFault(t, server, fault.Fault{User: ann, Calendar: ann, Status: 500})
	_, err = events.List("primary").Do()
	wantReason(t, "the calendar of the fault", err, 500, "backendError")
	if _, err := events.List(other.ID()).Do(); err != nil {
		t.Errorf("another calendar: %v", err)
	}
	for what, odd := range map[string]fault.Quirk{
		"empty pages": {Page: fault.PageEmpty}, "bare pages": {Page: fault.PageBare},
		"short pages": {PageItems: 1}, "pages that overlap": {Page: fault.PageOverlap},
	} {
		server.ClearFaults()
		addFault(t, server, fault.Fault{Method: "calendar.events.list", Calendar: ann, From: 2, Count: 2, Quirk: odd})
		items, token, pages := syncAll(t, events.List("primary").MaxResults(2))
		seen := map[string]bool{}
		for _, e := range items {
			seen[e.Id] = true
		}
		if len(seen) != 5 || token == "" || pages < 3 || (what == "pages that overlap") != (len(items) > 5) {
			t.Errorf("%s: %d events in %d pages, token %q", what, len(seen), pages, token)
		}
	}
	server.ClearFaults()
	addFault(t, server, fault.Fault{Method: "calendar.events.list", Count: 1, Quirk: fault.Quirk{NextPage: fault.NextDead}})
	page, err := events.List("primary").MaxResults(2).Do()
	if err != nil || page.NextSyncToken != "" {
		t.Fatalf("%+v, %v", page, err)
	}
	_, err = events.List("primary").MaxResults(2).PageToken(page.NextPageToken).Do()
	wantReason(t, "a dead page token", err, 400, "invalid")
}

func TestCalendarsInABatch(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	primary(t, server)
	answers, _ := batch(t, url+"/batch/calendar/v3", ann,
		inBatch{"list", "GET /calendar/v3/users/me/calendarList"},
		inBatch{"add", "POST /calendar/v3/calendars/primary/events\r\nContent-Type: application/json\r\n\r\n" +
			`{"start":{"date":"2026-08-12"},"end":{"date":"2026-08-13"}}`})
	if answers["list"].status != 200 || answers["add"].status != 200 || len(server.Calendar(ann, "primary").Events()) != 1 {
		t.Errorf("%+v", answers)
	}
}
