package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

// TestWhatSomebodyMustMendIsNotAskedAgain: answers that only the owner of an account
// can change block its job at once, with one more call at most, and no other account.
func TestWhatSomebodyMustMendIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	const messages = 30
	rows := []struct {
		name  string
		fault fault.Fault
		says  string
	}{
		{"policy", fault.Fault{Reason: "domainPolicy"}, "administrators"},
		{"scope", fault.Fault{Reason: "insufficientPermissions"}, "domain-wide delegation"},
		{"other", fault.Fault{Reason: "forbidden", Message: "Delegation denied for other@example.com"}, "Delegation denied"},
		{"nomail", fault.Fault{Reason: "failedPrecondition"}, "switch Gmail on"},
		{"unknown", fault.Fault{Reason: "notFound"}, "address"},
		// The mailbox is read when it is taken away: the calls under way are refused too.
		{"midway", fault.Fault{Reason: "domainPolicy", From: 12}, "administrators"},
	}
	mailboxes := map[string]int{ann: messages}
	for _, row := range rows {
		mailboxes[row.name+"@example.com"] = messages
	}
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, mailboxes)
	for _, row := range rows {
		row.fault.User = row.name + "@example.com"
		if err := r.fake.AddFault(row.fault); err != nil {
			t.Fatal(err)
		}
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	for email := range mailboxes {
		r.startBackfillOf(email)
	}
	for _, row := range rows {
		j := r.waitOf(row.name+"@example.com", a.Store(), "blocked", in(jobs.Blocked))
		if !strings.Contains(j.LastError, row.says) || j.Progress.Failed != 0 {
			t.Errorf("%s: job = %+v, want it to say %q and to blame no message", row.name, j, row.says)
		}
	}
	if j := r.wait(a.Store(), "ended", terminal); j.State != jobs.Completed || j.Progress.Stored != messages {
		t.Errorf("job = %+v, want the other account's messages", j)
	}
	r.drained()
	for i, f := range r.fake.Faults() {
		most := 2
		if f.From > 0 {
			most = 12 // as many calls as may be in flight, and what needs no message
		}
		if f.Applied == 0 || f.Applied > most {
			t.Errorf("%s: %d calls were refused, want %d at most", rows[i].name, f.Applied, most)
		}
	}
	r.nothingSpent()
}

// TestAnAPIThatIsNotEnabled stops a project's accounts with a few calls; all go on by
// themselves once somebody has enabled it at the address that their jobs show.
func TestAnAPIThatIsNotEnabled(t *testing.T) {
	t.Parallel()
	mailboxes := map[string]int{}
	for i := range 8 {
		mailboxes[fmt.Sprintf("u%d@example.com", i)] = 5
	}
	r := newSiteOf(t, fakegoogle.Options{Scale: scale}, mailboxes)
	if err := r.fake.AddFault(fault.Fault{Reason: "accessNotConfigured"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	for email := range mailboxes {
		r.startBackfillOf(email)
	}
	for email := range mailboxes {
		r.waitOf(email, a.Store(), "waiting for the API", func(j jobs.Job) bool {
			return j.State == jobs.Waiting && strings.Contains(j.WaitingFor, "https://console.developers.google.com/apis/api/gmail.googleapis.com/overview")
		})
	}
	// One call in a while asks for all accounts; at first several may be under way.
	if n, most := r.fake.Faults()[0].Applied, len(mailboxes)+int(time.Since(began)/(2*time.Second))+1; n > most {
		t.Errorf("%d calls for %d accounts, want %d at most", n, len(mailboxes), most)
	}
	r.fake.ClearFaults()
	for email := range mailboxes {
		if j := r.waitOf(email, a.Store(), "ended", terminal); j.State != jobs.Completed || j.Progress.Stored != 5 || j.Progress.Failed != 0 {
			t.Errorf("job = %+v, want all messages", j)
		}
	}
	r.nothingSpent()
}
