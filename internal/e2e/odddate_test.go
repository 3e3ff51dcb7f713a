package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"headroom/internal/agenda"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/export"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/jobs"
)

// TestDatesOutOfTheWorld gives messages and events dates that no calendar has: they
// are stored, and listed with their neighbours, by every way there is.
func TestDatesOutOfTheWorld(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: 100})
	dates := []string{"253402300800000", "-62167219200001", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "0", "", "1764547200000"}
	box, ids := r.fake.Mailbox(ann), []string{}
	for _, date := range dates {
		id := box.Add([]byte("Subject: a\r\n\r\n"))
		ids = append(ids, id)
		f := set(methodGet, id, map[string]string{"internalDate": `"` + date + `"`})
		if date == "" {
			f.Set, f.Unset = nil, []string{"internalDate"}
		}
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	c := r.addCalendar("team", 3)
	r.add(c, calendar.Event{ID: "lastseries", Recurrence: []string{"RRULE:FREQ=DAILY;COUNT=4"}}, "2026-12-30", "2026-12-31")
	f := set(eventsList, "", map[string]string{
		"items.0.start": `{"dateTime":"9999-12-31T23:30:00-12:00"}`, "items.0.end": `{"dateTime":"9999-12-31T23:59:00-12:00"}`, "items.0.updated": `"9999-12-31T23:59:00-12:00"`,
		"items.1.start": `{"dateTime":"0000-01-01T00:00:00+14:00"}`, "items.1.end": `{"dateTime":"0000-01-01T00:00:00+14:00"}`, "items.1.updated": `"0000-01-01T00:00:00+14:00"`, "items.1.created": `"9999-12-31T23:59:00-12:00"`,
		"items.3.start": `{"date":"9999-12-30"}`, "items.3.end": `{"date":"9999-12-31"}`,
	})
	f.Calendar, f.User = "team", ann
	f.Set["items.3.recurrence"] = json.RawMessage(`["RRULE:FREQ=DAILY;COUNT=4"]`)
	if err := r.fake.AddFault(f); err != nil {
		t.Fatal(err)
	}
	a := r.run(app.RoleScheduler, app.RoleWorker, app.RoleWeb)
	s := r.open()
	if job, _ := r.filtered(s, jobs.Filter{}); job.State != jobs.Completed || job.Progress.Stored != int64(len(dates)) {
		t.Errorf("backfill = %+v, want all stored", job)
	}
	r.calendars(s)
	get := func(path string) []map[string]any {
		t.Helper()
		got := r.call(a, http.MethodGet, path, nil)
		var page struct{ Items []map[string]any }
		if err := json.Unmarshal([]byte(got.body), &page); got.status != http.StatusOK || err != nil {
			t.Errorf("%s: %d, %s, %v", path, got.status, got.body, err)
		}
		return page.Items
	}
	listed := map[string]map[string]any{}
	for _, m := range get("/accounts/" + ann + "/messages") {
		listed[m["id"].(string)] = m
	}
	for i, want := range []struct {
		date string
		ms   float64
	}{{"", 253402300800000}, {"", -62167219200001}, {"", 9223372036854775807}, {"", -9223372036854775808}, {"", 0}, {"1970-01-01T00:00:00Z", 0}, {"", 0}, {"2025-12-01T00:00:00Z", 0}} {
		m := listed[ids[i]]
		date, _ := m["internal_date"].(string)
		ms, _ := m["internal_date_ms"].(float64)
		if m == nil || date != want.date || ms != want.ms {
			t.Errorf("message of date %q: %v, want %+v", dates[i], m, want)
		}
	}
	if n := len(get("/accounts/" + ann + "/messages?before=2030-01-01T00:00:00Z")); n != 4 { // two of our era, two before it
		t.Errorf("%d messages before 2030, want the four with a date before it", n)
	}
	if n := len(get("/accounts/" + ann + "/calendars/team/events")); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
	if n := len(get("/accounts/" + ann + "/calendars/team/occurrences?from=0001-01-02T00:00:00Z&to=2027-01-01T00:00:00Z")); n != 2 {
		t.Errorf("%d occurrences up to 2027, want 2", n)
	}
	if n := len(get("/accounts/" + ann + "/calendars/team/occurrences?from=9999-12-01T00:00:00Z&to=9999-12-31T23:59:59Z")); n < 2 {
		t.Errorf("%d occurrences at the end of the world", n)
	}
	calendar, err := s.Calendar(t.Context(), ann, "team")
	if err != nil {
		t.Fatal(err)
	}
	team, _, err := r.control().Agenda(t.Context(), calendar)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := team.Occurrences(agenda.Span{From: time.Time{}, To: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)})
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
	var file bytes.Buffer
	if _, err := team.WriteICS(&file); err != nil || strings.Contains(file.String(), "DTSTART:10000") || strings.Contains(file.String(), ":0000") || file.Len() > 20_000 {
		t.Errorf("WriteICS: %v, %d bytes\n%.20000s", err, file.Len(), &file)
	}
	if r, err := export.Mbox(t.Context(), export.Options{Source: s, Bodies: control.Blobs(r.cfg), Account: ann}, io.Discard); err != nil || r.Messages != int64(len(dates)) {
		t.Errorf("Mbox = %+v, %v", r, err)
	}
}
