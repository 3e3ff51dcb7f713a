package e2e_test

import (
	"testing"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	fakefault "headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

// TestOneItemsRefusalIsNotTheAccounts has Google refuse single messages and
// calendars as if the account were at fault: the account's work goes on.
func TestOneItemsRefusalIsNotTheAccounts(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: 100})
	box := r.fake.Mailbox(ann)
	var ids []string
	for range 6 {
		ids = append(ids, box.Add([]byte("Subject: a\r\n\r\n")))
	}
	fault := func(f fakefault.Fault) {
		t.Helper()
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	fault(fakefault.Fault{Method: methodGet, ID: ids[2], Status: 403, Reason: "forbidden", Count: 1})
	fault(fakefault.Fault{Method: methodGet, ID: ids[3], Status: 403, Reason: "domainPolicy", Count: 1})
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	if job, _ := r.filtered(s, jobs.Filter{}); job.State != jobs.Completed || job.Progress.Stored != 6 {
		t.Errorf("backfill = %+v, want all 6 stored", job)
	}
	id := box.Add([]byte("Subject: new\r\n\r\n"))
	fault(fakefault.Fault{Method: methodGet, ID: id, Status: 403, Reason: "forbidden", Count: 1})
	if job := r.sync(s); job.State != jobs.Completed {
		t.Errorf("sync = %+v", job)
	}
	if m, err := s.Message(t.Context(), ann, id); err != nil || m.SHA256 == "" {
		t.Errorf("new message = %+v, %v", m, err)
	}
	r.addCalendar("good", 2)
	r.addCalendar("bad", 2)
	fault(fakefault.Fault{Method: eventsList, Calendar: "bad", User: ann, Status: 403, Reason: "insufficientPermissions"})
	r.calendars(s)
	for id, want := range map[string]jobs.CalendarState{"good": jobs.CalendarSynced, "bad": jobs.CalendarForbidden} {
		if c, err := s.Calendar(t.Context(), ann, id); err != nil || c.State != want {
			t.Errorf("calendar %s = %+v, %v, want it %s", id, c, err, want)
		}
	}
}
