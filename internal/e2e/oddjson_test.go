package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"headroom/internal/agenda"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

// set is an odd answer to some calls of a method.
func set(method, id string, fields map[string]string) fault.Fault {
	f := fault.Fault{Method: method, ID: id}
	f.Set = map[string]json.RawMessage{}
	for path, value := range fields {
		f.Set[path] = json.RawMessage(value)
	}
	return f
}

// TestOddEventsCostNobodyElse gives events odd fields, each of another kind: they
// are stored as they came and take place, and so do their neighbours.
func TestOddEventsCostNobodyElse(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: 30})
	c := r.addCalendar("team", 8)
	r.add(c, calendar.Event{ID: "series1", Recurrence: []string{"RRULE:FREQ=DAILY;COUNT=2"}}, "2026-12-02", "2026-12-03")
	fault := set(eventsList, "", map[string]string{
		"items.0":                   "null",
		"items.1.etag":              "12345",
		"items.2.sequence":          `"3"`,
		"items.2.attendees":         `[null,{"email":"bob@example.com","self":"true"}]`,
		"items.3.start":             `"2026-12-03"`,
		"items.3.end":               `"2026-12-04"`,
		"items.3.reminders":         `{"useDefault":"false","overrides":[null,{"minutes":"10"}]}`,
		"items.4.originalStartTime": `"2026-12-03"`,
		"items.5.summary":           `["a","list"]`,
		"items.7.id":                "{}",
		"items.9":                   `"no event"`,
	})
	fault.Unset, fault.Calendar, fault.User = []string{"items.6.id"}, "team", ann
	if err := r.fake.AddFault(fault); err != nil {
		t.Fatal(err)
	}
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	r.calendars(s)
	calendar, err := s.Calendar(t.Context(), ann, "team")
	if err != nil || calendar.State != jobs.CalendarSynced {
		t.Fatalf("calendar = %+v, %v, want it in step", calendar, err)
	}
	a, events, err := r.control().Agenda(t.Context(), calendar)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]jobs.Event{}
	for _, e := range events {
		stored[e.ID] = e
	}
	// Of eight and a series, one was null, one had no id and one none that can be read.
	if len(stored) != 6 || stored["single00001"].ETag != "12345" || stored["single00004"].OriginalStart != "2026-12-03" {
		t.Errorf("events = %v", stored)
	}
	var raw struct{ ETag, Sequence, Start json.RawMessage }
	if err := json.Unmarshal(stored["single00001"].JSON, &raw); err != nil || string(raw.ETag) != "12345" {
		t.Errorf("etag %s, %v, want it as it came", raw.ETag, err)
	}
	all, problems := a.Occurrences(agenda.Span{From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)})
	starts := map[string]string{}
	for _, o := range all {
		starts[o.ID] = o.Start.Date
	}
	if len(all) != 7 || starts["single00003"] != "2026-12-03" || starts["series1_20261203"] == "" {
		t.Errorf("takes place: %v", starts)
	}
	if len(problems) != 1 || problems[0].Event != "single00005" || problems[0].Text != "field summary cannot be read: it is a list" {
		t.Errorf("problems = %v, want the summary that is a list", problems)
	}
	var file bytes.Buffer
	if n, err := a.WriteICS(&file); err != nil || n != 6 || !bytes.Contains(file.Bytes(), []byte("SEQUENCE:3\r\n")) {
		t.Errorf("WriteICS = %d, %v\n%s", n, err, &file)
	}
}

// TestOddMailIsReadAtOnce gives messages fields of other kinds, and raw messages in
// other base64: each costs one call, and what the store has is what was sent.
func TestOddMailIsReadAtOnce(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 12})
	ids := r.fake.Mailbox(ann).Messages()
	mail := []byte("Subject: \xfb\xff\xbf\xfe\r\n\r\nbody\r\n")
	standard := base64.StdEncoding.EncodeToString(mail)
	broken := ""
	for i := 0; i < len(standard); i += 10 {
		broken += standard[i:min(i+10, len(standard))] + `\r\n`
	}
	faults := []fault.Fault{
		set(methodGet, ids[0].ID, map[string]string{"historyId": "4300", "internalDate": "1764547200000", "sizeEstimate": `"12"`}),
		set(methodGet, ids[1].ID, map[string]string{"historyId": "{}", "internalDate": `"yesterday"`, "sizeEstimate": "[]", "threadId": "7"}),
		set(methodGet, ids[2].ID, map[string]string{"raw": `"` + standard + `"`}),
		set(methodGet, ids[3].ID, map[string]string{"raw": `"` + base64.RawStdEncoding.EncodeToString(mail) + `"`}),
		set(methodGet, ids[4].ID, map[string]string{"raw": `"` + broken + `"`}),
		set(methodGet, ids[5].ID, map[string]string{"raw": "{}"}),
		set(methodGet, ids[6].ID, map[string]string{"labelIds": `"INBOX"`}),
		set(methodGet, ids[7].ID, map[string]string{"historyId": `"18446744073709551615"`}),
		set(methodList, "", map[string]string{"messages.12": "null", "messages.13": "{}", "messages.14": `"x"`, "resultSizeEstimate": "{}"}),
		set(methodProfile, "", map[string]string{"historyId": "4200", "messagesTotal": `"12"`, "emailAddress": "\" \u202e \""}),
		set(methodLabels, "", map[string]string{"labels.0": "null", "labels.1.name": "12"}),
	}
	for _, f := range faults {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	job, calls := r.filtered(s, jobs.Filter{})
	if p := job.Progress; job.State != jobs.CompletedWithFailures || p.Stored != 11 || p.Failed != 1 || calls[methodGet] != 12 {
		t.Errorf("%+v after %v, want 11 stored and one failed, each with one call", job, calls)
	}
	if a, err := s.Account(t.Context(), ann); err != nil || a.Mailbox != "" {
		t.Errorf("account = %+v, %v, want it not to be named by what is no address", a, err)
	}
	failures, err := s.Failures(t.Context(), job.ID, jobs.FailureFilter{}, "", 10)
	if err != nil || len(failures) != 1 || failures[0].ID != ids[5].ID || failures[0].Attempts != 1 || failures[0].Reason != "field raw cannot be read: it is an object" {
		t.Errorf("failures = %+v, %v", failures, err)
	}
	for i, check := range map[int]func(jobs.Message) bool{
		0: func(m jobs.Message) bool { return m.HistoryID == 4300 && m.InternalDate.UnixMilli() == 1764547200000 },
		1: func(m jobs.Message) bool { return m.ThreadID == "7" && m.InternalDate.IsZero() },
		2: func(m jobs.Message) bool { return m.SHA256 == sha(mail) },
		3: func(m jobs.Message) bool { return m.SHA256 == sha(mail) },
		4: func(m jobs.Message) bool { return m.SHA256 == sha(mail) },
		7: func(m jobs.Message) bool { return m.HistoryID == 0 }, // else no label could change any more
		6: func(m jobs.Message) bool { return len(m.Labels) == 1 && m.Labels[0] == "INBOX" },
	} {
		if m, err := s.Message(t.Context(), ann, ids[i].ID); err != nil || !check(m) {
			t.Errorf("message %d = %+v, %v", i, m, err)
		}
	}
	// The history of an odd mailbox is read as well.
	for i := range 3 {
		r.fake.Mailbox(ann).Add(fmt.Appendf(nil, "Subject: new %d\r\n\r\n", i))
	}
	r.fake.ClearFaults()
	if err := r.fake.AddFault(set("gmail.users.history.list", "", map[string]string{
		"historyId": "99999", "history.0.id": "4201", "history.0.messagesAdded.1": "null", "history.1.labelsAdded": `"none"`, "history.3": "null", "history.4": `"x"`,
	})); err != nil {
		t.Fatal(err)
	}
	if job := r.sync(s); job.State != jobs.Completed {
		t.Errorf("sync = %+v", job)
	}
	if n, err := s.CountMessages(t.Context(), ann); err != nil || n != 15 {
		t.Errorf("%d messages, %v, want the three new ones, and the one that could not be read", n, err)
	}
}
