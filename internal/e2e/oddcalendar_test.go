package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"headroom/internal/agenda"
	"headroom/internal/lab/fakegoogle"
)

// command runs the command as a user does.
func (r *site) command(path string, args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(r.t.Context(), path, append(args, "--config", r.config)...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			r.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), problems.String(), code
}

// oddEvents are events as Google gives some out.
const (
	oddZone    = `{"id":"oddzone","status":"confirmed","start":{"dateTime":"2026-12-01T09:00:00+02:00","timeZone":"GMT+02:00"},"end":{"dateTime":"2026-12-01T10:00:00+02:00","timeZone":"GMT+02:00"},"recurrence":["RRULE:FREQ=DAILY;COUNT=2"]}`
	customZone = `{"id":"customzone","status":"confirmed","start":{"dateTime":"2026-12-01T09:00:00+02:00","timeZone":"Custom/Foo"},"end":{"dateTime":"2026-12-01T10:00:00+02:00","timeZone":"Custom/Foo"}}`
	endsEarly  = `{"id":"endsearly","status":"confirmed","start":{"dateTime":"2026-12-01T09:00:00Z"},"end":{"dateTime":"2026-12-01T08:00:00Z"}}`
	noEnd      = `{"id":"noend","status":"confirmed","start":{"date":"2026-12-02"}}`
	noTime     = `{"id":"notime","status":"confirmed","start":{"dateTime":"noon"},"end":{"dateTime":"noon"}}`
)

func TestOddEventsAreRead(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	c := r.addCalendar(ann, 0)
	for _, event := range []string{oddZone, customZone, endsEarly, noEnd} {
		if _, err := c.Put(json.RawMessage(event)); err != nil {
			t.Fatal(err)
		}
	}
	r.calendars(r.run().Store())
	span := []string{"--from", "2026-12-01", "--to", "2026-12-03"}
	listed := func(code int, args ...string) (out, problems string) {
		t.Helper()
		out, problems, got := r.command(path, append(append([]string{"calendar", "events", ann}, args...), span...)...)
		if got != code {
			t.Errorf("events %s: exit %d, want %d: %s", strings.Join(args, " "), got, code, problems)
		}
		return out, problems
	}

	out, notices := listed(0, "--expand", "--json")
	var found []agenda.Occurrence
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	lasts := map[string]string{}
	for _, o := range found {
		lasts[o.ID] = o.Start.Date + o.End.Date
		if o.Start.Date == "" {
			lasts[o.ID] = o.Start.Time.Format("02T15:04") + o.End.Time.Format("-15:04")
		}
	}
	for id, want := range map[string]string{
		"oddzone_20261201T070000Z": "01T07:00-08:00", "oddzone_20261202T070000Z": "02T07:00-08:00", "customzone": "01T07:00-08:00",
		"endsearly": "01T09:00-09:00", "noend": "2026-12-022026-12-03",
	} {
		if lasts[id] != want {
			t.Errorf("%s lasts %q, want %s", id, lasts[id], want)
		}
	}
	for _, zone := range []string{`"GMT+02:00"`, `"Custom/Foo"`} {
		if strings.Count(notices, zone) != 1 {
			t.Errorf("want one notice of %s:\n%s", zone, notices)
		}
	}
	if out, _ := listed(0, "--json"); strings.Count(out, `"calendar":`) != 4 {
		t.Errorf("events between --from and --to, of which there are 4:\n%s", out)
	}

	if _, err := c.Put(json.RawMessage(noTime)); err != nil {
		t.Fatal(err)
	}
	r.calendars(r.open())
	for _, args := range [][]string{{}, {"--json"}, {"--expand"}} {
		if _, problems := listed(1, args...); !strings.Contains(problems, `event notime of calendar ann@example.com: start: parsing time "noon"`) {
			t.Errorf("events %q do not say what they leave out, and why:\n%s", args, problems)
		}
	}
}

// TestAPageOfEndlessSeries: a page of what takes place is quickly there, whatever the
// series and the span.
func TestAPageOfEndlessSeries(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	c := r.addCalendar(ann, 0)
	for i := range 200 {
		rule := []string{"FREQ=DAILY", "FREQ=HOURLY", "FREQ=SECONDLY", "FREQ=WEEKLY"}[i%4]
		if i%40 == 0 {
			rule = "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30" // never
		}
		event := fmt.Sprintf(`{"id":"endless%d","status":"confirmed","start":{"dateTime":"2020-05-01T09:00:00+02:00","timeZone":"Europe/Berlin"},`+
			`"end":{"dateTime":"2020-05-01T10:00:00+02:00"},"recurrence":["RRULE:%s"]}`, i, rule)
		if _, err := c.Put(json.RawMessage(event)); err != nil {
			t.Fatal(err)
		}
	}
	a := r.run()
	r.calendars(a.Store())
	list := "http://" + a.Addr().String() + "/api/v1/accounts/" + ann + "/calendars/primary/occurrences?limit=1&to=9999-12-31&from=2026-01-01"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	seen, cursor := map[string]bool{}, ""
	for range 3 {
		begun := time.Now()
		resp, err := http.Get(list + "&cursor=" + url.QueryEscape(cursor))
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Items []agenda.Occurrence
			Next  string
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || len(page.Items) != 1 || page.Next == "" || seen[page.Items[0].ID] {
			t.Fatalf("a page: status %d, %+v, %v", resp.StatusCode, page, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("a page took %s", took)
		}
		seen[page.Items[0].ID], cursor = true, page.Next
	}
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 2000 {
		t.Errorf("three pages took %d MB", spent)
	}
	resp, err := http.Get(list + "&cursor=5")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a cursor that is none: status %d", resp.StatusCode)
	}
}
