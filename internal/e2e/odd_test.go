package e2e_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const (
	methodList    = "gmail.users.messages.list"
	methodProfile = "gmail.users.getProfile"
)

// filtered starts the backfill of a filter, waits for its end, and returns the
// job and the calls that it took.
func (r *site) filtered(s *sqlite.Store, filter jobs.Filter) (jobs.Job, map[string]int64) {
	r.t.Helper()
	before := r.fake.Meter().User(ann).CallsByMethod
	started, err := r.control().StartBackfill(r.t.Context(), ann, filter)
	if err != nil || !started.Created {
		r.t.Fatalf("StartBackfill = %+v, %v", started, err)
	}
	for range 9000 {
		j, err := s.Job(r.t.Context(), filter.BackfillID(ann))
		if err == nil && j.State.Terminal() {
			calls := map[string]int64{}
			for method, n := range r.fake.Meter().User(ann).CallsByMethod {
				calls[method] = n - before[method]
			}
			return j, calls
		}
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatal("the backfill did not end within three minutes")
	return jobs.Job{}, nil
}

// TestOddListingsLoseNothing lists 70 messages in pages of 16 at most, while the
// fake answers with quirks, as Google does at times.
func TestOddListingsLoseNothing(t *testing.T) {
	const messages = 70
	page := fault.Quirk{PageItems: 16}
	odd := func(f fault.Fault, change func(*fault.Quirk)) fault.Fault {
		f.Method, f.Quirk = methodList, page
		if change != nil {
			change(&f.Quirk)
		}
		return f
	}
	next := func(kind string) func(*fault.Quirk) {
		return func(o *fault.Quirk) { o.NextPage = kind }
	}
	pages := func(kind string) func(*fault.Quirk) { return func(o *fault.Quirk) { o.Page = kind } }
	much := 8000
	for _, tt := range []struct {
		name    string
		faults  []fault.Fault
		profile gmail.Profile
		lists   int64 // calls at most
	}{
		{"a token that is refused", []fault.Fault{{Method: methodList, Nth: 4, Reason: "invalidPageToken"}}, gmail.Profile{}, 9},
		{"a token that nobody takes", []fault.Fault{odd(fault.Fault{Nth: 3}, next(fault.NextDead))}, gmail.Profile{}, 9},
		{"a token that repeats", []fault.Fault{odd(fault.Fault{Nth: 3}, next(fault.NextSame))}, gmail.Profile{}, 9},
		{"tokens in a cycle", []fault.Fault{odd(fault.Fault{Nth: 3}, next(fault.NextFirst))}, gmail.Profile{}, 10},
		{"tokens in a cycle at the end, always", []fault.Fault{odd(fault.Fault{From: 5}, next(fault.NextFirst))}, gmail.Profile{}, 20},
		{"a listing without end", []fault.Fault{odd(fault.Fault{From: 5}, next(fault.NextFresh))}, gmail.Profile{}, 100},
		{"tokens that work once", nil, gmail.Profile{PageTokenUses: 1}, 6},
		{"five empty pages", []fault.Fault{odd(fault.Fault{From: 2, Count: 5}, pages(fault.PageEmpty))}, gmail.Profile{}, 10},
		{"the first page empty", []fault.Fault{odd(fault.Fault{Nth: 1}, pages(fault.PageEmpty))}, gmail.Profile{}, 6},
		{"pages of only a token", []fault.Fault{odd(fault.Fault{From: 1, Count: 3}, pages(fault.PageBare))}, gmail.Profile{}, 8},
		{"pages that name an id twice", []fault.Fault{odd(fault.Fault{}, pages(fault.PageTwice))}, gmail.Profile{}, 5},
		{"pages that overlap", []fault.Fault{odd(fault.Fault{}, pages(fault.PageOverlap))}, gmail.Profile{}, 5},
		{"counts that lie", []fault.Fault{
			odd(fault.Fault{}, func(o *fault.Quirk) { estimate := 201; o.Estimate = &estimate }),
			{Method: methodProfile, Quirk: fault.Quirk{MessagesTotal: &much}},
		}, gmail.Profile{}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: messages})
			r.fake.Mailbox(ann).SetProfile(tt.profile)
			for _, f := range append(tt.faults, odd(fault.Fault{}, nil)) {
				if err := r.fake.AddFault(f); err != nil {
					t.Fatal(err)
				}
			}
			r.run(app.RoleScheduler, app.RoleWorker)
			s := r.open()
			job, calls := r.filtered(s, jobs.Filter{})
			p := job.Progress
			if job.State != jobs.Completed || p.Stored != messages || p.Listed != messages || calls[methodGet] > messages+1 {
				t.Errorf("%+v after %v, want all %d stored once", job, calls, messages)
			}
			for i, f := range r.fake.Faults() {
				if f.Applied == 0 && i < len(tt.faults) {
					t.Errorf("fault %d never applied", i+1)
				}
			}
			if calls[methodList] > tt.lists {
				t.Errorf("%d list calls, want %d at most", calls[methodList], tt.lists)
			}
			r.arrived(s)
		})
	}
}

// TestOddBodiesCostAnotherCall gives one message after another a body that is not
// what it should be.
func TestOddBodiesCostAnotherCall(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 40})
	infos := r.fake.Mailbox(ann).Messages()
	bad := []fault.Fault{
		{Truncate: true},
		{Close: true},
		{Quirk: fault.Quirk{LengthOff: 10}},
		{Quirk: fault.Quirk{LengthOff: -10}},
		{Status: 200, HTML: true},
		{Status: 200, Body: `{"id":"ID","sizeEstimate":9,"raw":"!!"}`},
		{Status: 200, Body: `{"id":"ID","sizeEstimate":9}`},
		{Status: 200, Body: `{"id":"other","raw":"SGkh"}`},
		{Status: 200, Body: `{"raw":"SGkh"}`},
		{Status: 200, Body: `{"id":"ID","raw":"SGkh","raw":"SGkh"}`},
		{Status: 200, Body: `[]`},
	}
	for i, f := range bad {
		f.Method, f.ID, f.Count = methodGet, infos[i].ID, 2
		f.Body = string(bytes.ReplaceAll([]byte(f.Body), []byte("ID"), []byte(infos[i].ID)))
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	job, calls := r.filtered(s, jobs.Filter{})
	if job.State != jobs.Completed || job.Progress.Stored != 40 {
		t.Errorf("%+v, want all 40 stored", job)
	}
	if want := int64(40 + 2*len(bad)); calls[methodGet] < want || calls[methodGet] > want+6 {
		t.Errorf("%d gets, want %d and a few that ask whether Google is out", calls[methodGet], want)
	}
	r.arrived(s)
}

// TestMailThatNoReaderUnderstandsIsKept: what cannot be parsed is stored byte for
// byte like the rest, is counted, and holds nothing up.
func TestMailThatNoReaderUnderstandsIsKept(t *testing.T) {
	t.Parallel()
	nested := "Subject: nested\r\n"
	for i := range 200 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	mails := []string{
		" Aug 22 15:03:38 2008\r\nSubject: begins with a space\r\n\r\nbody\r\n",
		"Subject: with a \x00 in it\r\n\r\nbody\r\n",
		"Subject: strange charset\r\nContent-Type: text/plain; charset=x-unknown\r\n\r\nb\xf6dy\r\n",
		"Subject: raw 8 bit \xfc\xe4\xff\r\nFrom: J\xf6rg <j@example.com>\r\n\r\nbody\r\n",
		"Subject: no end\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\npart",
		nested,
		"Subject: nothing\r\n\r\n",
		"Subject: year 0\r\nDate: Mon, 01 Jan 0000 00:00:00 +0000\r\n\r\nbody\r\n",
	}
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 20})
	for _, raw := range mails {
		r.fake.Mailbox(ann).Add([]byte(raw))
	}
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	job, _ := r.filtered(s, jobs.Filter{})
	p := job.Progress
	if job.State != jobs.Completed || p.Stored != int64(20+len(mails)) || p.ParseFailed == 0 || p.ParseFailed > int64(len(mails)) {
		t.Errorf("%+v, want all %d stored, some of them as not understood", job, 20+len(mails))
	}
	r.arrived(s)
	again, calls := r.filtered(s, jobs.Filter{})
	if again.State != jobs.Completed || calls[methodGet] != 0 {
		t.Errorf("again: %+v after %v, want no get", again, calls)
	}
}

// TestFiltersAreExact brings parts of a mailbox whose search is loose.
func TestFiltersAreExact(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 0})
	box := r.fake.Mailbox(ann)
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var ids []string // the newest last
	for i := range 60 {
		labels := []string{"INBOX"}
		switch {
		case i%10 == 9:
			labels = []string{"SPAM"}
		case i%3 == 0:
			labels = []string{"INBOX", "STARRED"}
		}
		ids = append(ids, box.Add(fmt.Appendf(nil, "Date: %s\r\nSubject: message %d\r\nMessage-ID: <%d@example.com>\r\n\r\n%s",
			start.Add(time.Duration(i)*time.Hour).Format(time.RFC1123Z), i, i, bytes.Repeat([]byte("x"), 100*i)), labels...))
	}
	box.SetProfile(gmail.Profile{LooseSeconds: true, Zone: "America/Los_Angeles"})
	size := map[string]int64{}
	for _, m := range box.Messages() {
		size[m.ID] = int64(m.Size)
	}
	r.run(app.RoleScheduler, app.RoleWorker)
	s := r.open()
	spam := func(i int) bool { return i%10 == 9 }
	for _, tt := range []struct {
		name   string
		filter jobs.Filter
		want   func(i int) bool
	}{
		{"dates", jobs.Filter{After: start.Add(10 * time.Hour), Before: start.Add(20 * time.Hour)}, func(i int) bool { return 10 <= i && i < 20 && !spam(i) }},
		{"a second later", jobs.Filter{After: start.Add(30*time.Hour + time.Second), Before: start.Add(33*time.Hour + time.Second)}, func(i int) bool { return 31 <= i && i <= 33 }},
		{"labels", jobs.Filter{Labels: []string{"INBOX", "STARRED"}, First: 4}, func(i int) bool { return i == 57 || i == 54 || i == 51 || i == 48 }},
		{"spam", jobs.Filter{SpamTrash: true, Labels: []string{"SPAM"}}, spam},
		{"a query", jobs.Filter{Query: "subject:42"}, func(i int) bool { return i == 42 }},
		{"size", jobs.Filter{MaxSize: size[ids[5]]}, func(i int) bool { return i <= 5 }},
		{"the newest before a date, metadata first", jobs.Filter{First: 3, Before: start.Add(25 * time.Hour), Format: jobs.FormatMetadataFirst}, func(i int) bool { return 22 <= i && i <= 24 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			job, calls := r.filtered(s, tt.filter)
			want := int64(0)
			for i, id := range ids {
				if !tt.want(i) {
					continue
				}
				want++
				m, err := s.Message(t.Context(), ann, id)
				if err != nil || m.SHA256 == "" || r.hash(m) != m.SHA256 {
					t.Errorf("message %d: %+v, %v, want it stored", i, m, err)
				}
			}
			p := job.Progress
			if job.State != jobs.Completed || p.Stored+p.Known != want || p.Done() != p.Listed {
				t.Errorf("%+v, want %d stored or known", job, want)
			}
			if calls[methodGet] == 0 && p.Known != want {
				t.Errorf("calls %v", calls)
			}
			again, calls := r.filtered(s, tt.filter)
			if calls[methodGet] != 0 || again.Progress.Known != want {
				t.Errorf("again: %+v after %v, want no get", again, calls)
			}
		})
	}
}
