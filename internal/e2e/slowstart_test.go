package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

// TestMessagesThatStartSlowlyAreStored: each message of a fresh mailbox answers with a
// server's fault twice. None is given up, and the end comes in a time that the
// faults explain.
func TestMessagesThatStartSlowlyAreStored(t *testing.T) {
	t.Parallel()
	const messages, faults = 80, 2
	r := newSiteOf(t, fakegoogle.Options{Scale: scale, UserLimit: 100_000}, map[string]int{ann: 0})
	for range messages {
		id := r.fake.Mailbox(ann).Add([]byte("Subject: a\r\n\r\n"))
		if err := r.fake.AddFault(fault.Fault{Method: methodGet, ID: id, Status: http.StatusServiceUnavailable, Count: faults}); err != nil {
			t.Fatal(err)
		}
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	began := time.Now()
	r.startBackfill()
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != messages || j.Progress.Failed != 0 {
		t.Errorf("job = %+v, want all %d messages", j, messages)
	}
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %s, want the waits between an item's attempts twice over and some", took)
	}
	if n := r.fake.Meter().Refetched(); n > 10 {
		t.Errorf("%d messages were fetched again, want a few that proved that Google works", n)
	}
	r.arrived(a.Store())
}
