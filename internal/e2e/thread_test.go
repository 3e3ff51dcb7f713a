package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/control/estimate"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const (
	methodThread     = "gmail.users.threads.get"
	methodAttachment = "gmail.users.messages.attachments.get"
	methodLabels     = "gmail.users.labels.list"
)

// newThreads is a site whose mailbox holds ten threads: five with four messages, two
// with three and three with one. Every third message has two attachments.
func newThreads(t *testing.T, o fakegoogle.Options) *site {
	t.Helper()
	r := newSiteOf(t, o, map[string]int{ann: 0})
	n := 0
	for thread, size := range []int{4, 1, 4, 3, 4, 1, 4, 3, 4, 1} {
		first := fmt.Sprintf("<%d.0@example.com>", thread)
		for i := range size {
			reply := ""
			if i > 0 {
				reply = "In-Reply-To: " + first + "\r\nReferences: " + first + "\r\n"
			}
			body := fmt.Sprintf("Content-Type: text/plain\r\n\r\nmessage %d\r\n", n)
			if n%3 == 0 {
				body = fmt.Sprintf("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nmessage %d\r\n"+
					"--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\nfirst of %d\r\n"+
					"--x\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=b.png\r\n\r\nsecond of %d\r\n--x--\r\n", n, n, n)
			}
			r.fake.Mailbox(ann).Add(fmt.Appendf(nil, "Subject: t%d\r\nDate: %s\r\nMessage-ID: <%d.%d@example.com>\r\n%s%s", thread,
				time.Date(2025, 1, 1, n, 0, 0, 0, time.UTC).Format(time.RFC1123Z), thread, i, reply, body), "INBOX")
			n++
		}
	}
	return r
}

// units are those of ann's that the fake admitted.
func (r *site) units() int64 { return r.fake.Meter().User(ann).UnitsAdmitted }

// agrees checks that an estimate said what the fake counted, give or take a tenth.
func agrees(t *testing.T, e estimate.Estimate, units int64) {
	t.Helper()
	if said := e.Own().Units.Value; said < units-units/10 || said > units+units/10 {
		t.Errorf("the estimate says %d units, the fake counts %d", said, units)
	}
}

func TestThreadsAreGotAsAWholeWhereThatCostsLess(t *testing.T) {
	t.Parallel()
	r := newThreads(t, fakegoogle.Options{Scale: scale})
	filter := jobs.Filter{Format: jobs.FormatMetadataFirst}
	e := r.estimate(filter, 0)
	r.run()
	s, before := r.open(), r.units()
	job, calls := r.filtered(s, filter)
	if job.State != jobs.Completed || job.Progress.Noted != 29 || job.Progress.Stored != 29 ||
		calls[methodThread] != 7 || calls[methodGet] != 3+29 || calls[methodLabels] != 1 {
		t.Errorf("%+v after %v, want 7 threads, 3 messages by themselves and 29 raw", job, calls)
	}
	r.arrived(s)
	// 1 + 1 + 5 + 7*40 + 3*20 + 29*20
	if spent := r.units() - before; spent != 927 {
		t.Errorf("the fake counts %d units, want 927", spent)
	}
	agrees(t, e, 927)
	if !strings.Contains(e.Why, "from 3 messages to fetch on") {
		t.Errorf("why = %q", e.Why)
	}
}

// TestFullLosesNothing checks that format full brings the message as Gmail parses it
// and every attachment, by whole threads, and that a run after it fetches none of it.
func TestFullLosesNothing(t *testing.T) {
	t.Parallel()
	r := newThreads(t, fakegoogle.Options{Scale: scale})
	filter := jobs.Filter{Format: jobs.FormatFull}
	e := r.estimate(filter, 10)
	if err := r.fake.AddFault(fault.Fault{Method: methodAttachment, Status: 500, Count: 3}); err != nil {
		t.Fatal(err)
	}
	r.run()
	s, before := r.open(), r.units()
	job, calls := r.filtered(s, filter)
	if job.State != jobs.Completed || job.Progress.Stored != 29 || calls[methodThread] != 7 || calls[methodAttachment] < 20+3 {
		t.Errorf("%+v after %v, want 29 messages of 7 threads and 3 singles, with 20 attachments", job, calls)
	}
	// 1 + 1 + 5 + 7*40 + 3*20 + 20*20; what faults cost comes on top.
	agrees(t, e, 747)
	if spent := r.units() - before; spent < 747 || spent > 747+3*(20+20)+20 {
		t.Errorf("the fake counts %d units, want 747 and what three faults cost", spent)
	}
	r.full(s, 29, 20)

	job, calls = r.filtered(s, filter)
	if job.Progress.Known != 29 || calls[methodThread]+calls[methodGet]+calls[methodAttachment] != 0 {
		t.Errorf("%+v after %v, want all known and nothing fetched", job, calls)
	}
	if e := r.estimate(filter, 10); e.Known.Value != 29 || e.Fetch.Value != 0 {
		t.Errorf("estimate = %+v, want all known", e)
	}
	// Raw is another body: nothing of it is known.
	if job, _ = r.filtered(s, jobs.Filter{First: 5}); job.Progress.Stored != 5 {
		t.Errorf("%+v, want 5 raw messages", job)
	}
	r.full(s, 29, 20)

	// Live sync goes on in the format of the backfill.
	id := r.fake.Mailbox(ann).Add([]byte("Subject: new\r\n\r\nnew\r\n"), "INBOX")
	if _, err := r.control().StartSync(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if m, err := s.Message(t.Context(), ann, id); err == nil && m.FullSHA256 != "" {
			if m.SHA256 != "" || m.Subject != "new" {
				t.Errorf("synced: %+v, want format full only", m)
			}
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Error("the sync has not brought the new message")
}

// full checks that all messages are stored in format full, with so many attachments.
func (r *site) full(s *sqlite.Store, messages, attachments int) {
	r.t.Helper()
	all, err := s.Messages(r.t.Context(), ann, "", 0)
	if err != nil || len(all) != messages {
		r.t.Fatalf("%d messages, %v; want %d", len(all), err, messages)
	}
	found := 0
	for _, m := range all {
		var answer struct {
			ID      string
			Payload struct {
				Headers []struct{ Name, Value string }
				Parts   []struct {
					PartID string
					Body   struct{ Data string }
				}
			}
		}
		if err := json.Unmarshal(r.content(s, m.ID, ""), &answer); err != nil || answer.ID != m.ID || len(answer.Payload.Headers) < 4 {
			r.t.Errorf("message %s in format full: %+v, %v", m.ID, answer, err)
		}
		m, err := s.Message(r.t.Context(), ann, m.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for i, a := range m.Attachments {
			found++
			text := r.content(s, m.ID, a.Part)
			var n int
			if _, err := fmt.Sscanf(string(text), []string{"first of %d", "second of %d"}[i], &n); err != nil || a.SHA256 != sha(text) || a.Size != int64(len(text)) ||
				a.Filename != []string{"a.pdf", "b.png"}[i] || m.InternalDate.Hour() != n%24 {
				r.t.Errorf("attachment %+v of %s holds %q", a, m.ID, text)
			}
		}
	}
	if found != attachments {
		r.t.Errorf("%d attachments, want %d", found, attachments)
	}
}

// content reads what format full has brought of a message.
func (r *site) content(s *sqlite.Store, id, part string) []byte {
	r.t.Helper()
	from, err := r.control().OpenFull(r.t.Context(), ann, id, part)
	if err != nil {
		r.t.Fatal(err)
	}
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// TestOversizeMessagesKeepTheirMetadata brings a mailbox with two messages above the
// bound in each order of calls, and then with a larger bound.
func TestOversizeMessagesKeepTheirMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		filter     jobs.Filter
		gets, then int64
	}{
		// Raw ones are broken off at the bound, and their metadata is got.
		"raw": {jobs.Filter{}, 10 + 2 + 2, 2},
		// Their sizes are known before any body is paid for.
		"metadata-first": {jobs.Filter{Format: jobs.FormatMetadataFirst}, 12 + 10, 2 + 2},
		"full":           {jobs.Filter{Format: jobs.FormatFull}, 12, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSiteOf(t, fakegoogle.Options{Scale: scale}, map[string]int{ann: 0})
			for i := range 10 {
				r.fake.Mailbox(ann).Add(fmt.Appendf(nil, "Subject: s%d\r\nMessage-ID: <%d@example.com>\r\n\r\nbody\r\n", i, i), "INBOX")
			}
			large := []string{r.fake.Mailbox(ann).AddLarge(3_000_000), r.fake.Mailbox(ann).AddLarge(2_500_000)}
			r.cfg.Worker.MaxMessageBytes = 2_000_000
			e, before := r.estimate(test.filter, 10), r.units()
			s := r.open()
			job, calls := r.ranFiltered(s, test.filter)
			if job.State != jobs.Completed || job.Progress.Oversize != 2 || job.Progress.Stored != 10 || job.Progress.Failed != 0 || calls[methodGet] != test.gets {
				t.Errorf("%+v after %v, want 10 stored and 2 oversize in %d gets", job, calls, test.gets)
			}
			agrees(t, e, r.units()-before)
			for _, id := range large {
				m, err := s.Message(t.Context(), ann, id)
				if err != nil || m.ParseStatus != jobs.ParseNever || m.SHA256+m.FullSHA256 != "" || m.Size < 2_500_000 || m.Subject == "" {
					t.Errorf("oversize message: %+v, %v", m, err)
				}
			}
			// The same bound: their sizes are known, so nothing is asked.
			if job, calls := r.ranFiltered(s, test.filter); job.Progress.Oversize != 2 || calls[methodGet] != 0 {
				t.Errorf("%+v after %v, want 2 oversize without a call", job, calls)
			}
			r.cfg.Worker.MaxMessageBytes = config.Bytes(4_000_000)
			job, calls = r.ranFiltered(s, test.filter)
			if job.State != jobs.Completed || job.Progress.Oversize != 0 || job.Progress.Stored != 2 || calls[methodGet] != test.then {
				t.Errorf("%+v after %v, want the 2 bodies in %d gets", job, calls, test.then)
			}
			if test.filter.Format != jobs.FormatFull {
				r.arrived(s)
			}
		})
	}
}

// ranFiltered is [site.filtered] with a process of its own, which has the settings as
// they are now.
func (r *site) ranFiltered(s *sqlite.Store, filter jobs.Filter) (jobs.Job, map[string]int64) {
	r.t.Helper()
	end := make(chan struct{})
	wait := r.runUntil(end)
	defer func() {
		close(end)
		wait()
	}()
	return r.filtered(s, filter)
}
