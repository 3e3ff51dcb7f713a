package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// sync asks for a live sync and waits until it has ended, half a minute at most. One
// that began by itself, as after a backfill, is waited for first.
func (r *site) sync(s *sqlite.Store) jobs.Job {
	r.t.Helper()
	for range 3 {
		asked, err := r.control().StartSync(r.t.Context(), ann)
		if err != nil {
			r.t.Fatalf("StartSync = %+v, %v", asked, err)
		}
		j := r.synced(s, asked.Job.Epoch)
		if asked.Started {
			return j
		}
	}
	r.t.Fatal("three times another sync was under way")
	return jobs.Job{}
}

// synced waits until the sync of an epoch, or a later one, has ended.
func (r *site) synced(s *sqlite.Store, epoch int64) jobs.Job {
	r.t.Helper()
	var last jobs.Job
	for range 1500 {
		j, err := s.Job(r.t.Context(), jobs.SyncID(ann))
		if err == nil && j.State.Terminal() && j.Epoch >= epoch {
			return j
		}
		last = j
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatalf("the sync did not end: %+v", last)
	return jobs.Job{}
}

// backfilled waits for the backfill and for the sync that follows it.
func (r *site) backfilled(s *sqlite.Store) {
	r.t.Helper()
	r.wait(s, "ended", terminal)
	for range 500 {
		if c, err := s.Cursor(r.t.Context(), ann); err == nil && c.AskedAt.IsZero() && !c.SyncedAt.IsZero() {
			r.synced(s, 0)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatal("no sync began after the backfill")
}

// runBackfilled runs a process until the mailbox is backfilled and synced.
func (r *site) runBackfilled() *app.App {
	r.t.Helper()
	a := r.run()
	r.startBackfill()
	r.backfilled(a.Store())
	return a
}

// equal checks that the store shows what the mailbox does: ids, bytes and labels.
func (r *site) equal(s *sqlite.Store) {
	r.t.Helper()
	r.arrived(s)
	want, got := map[string]string{}, map[string]string{}
	for _, m := range r.fake.Mailbox(ann).Messages() {
		want[m.ID] = strings.Join(m.Labels, " ")
	}
	for after := ""; ; {
		page, err := s.Messages(r.t.Context(), ann, after, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			after, got[m.ID] = m.ID, strings.Join(slices.Sorted(slices.Values(m.Labels)), " ")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("labels (-mailbox +store):\n%s", diff)
	}
}

func mail(subject string) []byte {
	return fmt.Appendf(nil, "Subject: %s\r\nFrom: bob@example.com\r\nDate: Mon, 02 Mar 2026 10:00:00 +0000\r\n\r\nbody of %s\r\n", subject, subject)
}

// gateway stands before the fake and shows every request to a function, which may
// hold it up.
func (r *site) gateway(before func(*http.Request)) {
	r.t.Helper()
	target, err := url.Parse(r.cfg.Google.Endpoint.Reveal())
	if err != nil {
		r.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		before(req)
		proxy.ServeHTTP(w, req)
	}))
	r.t.Cleanup(server.Close)
	r.cfg.Google.Endpoint = config.URL(server.URL)
}

// calls counts the calls that have come to the fake since it was made, by method.
func (r *site) calls() map[string]int64 {
	n := map[string]int64{}
	for a := range r.fake.Select(meter.Filter{}) {
		n[a.Method]++
	}
	return n
}

func since(now, then map[string]int64) map[string]int64 {
	d := map[string]int64{}
	for method, n := range now {
		if n > then[method] {
			d[method] = n - then[method]
		}
	}
	return d
}

func TestLiveSyncBringsWhatChanged(t *testing.T) {
	t.Parallel()
	r := newSite(t, 60)
	a := r.runBackfilled()
	box, before := r.fake.Mailbox(ann), r.calls()
	all := box.Messages()
	box.Relabel(all[3].ID, []string{"STARRED"}, []string{"INBOX"})
	box.Relabel(all[4].ID, nil, all[4].Labels)
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v", j)
	}
	r.equal(a.Store())
	if diff := cmp.Diff(map[string]int64{"gmail.users.history.list": 1, "gmail.users.labels.list": 1}, since(r.calls(), before)); diff != "" {
		t.Errorf("calls for changes of labels (-want +got):\n%s", diff)
	}
	box.Delete(all[0].ID)
	box.Add(mail("new"), "INBOX", "UNREAD")
	draft := box.Add(mail("draft"), "DRAFT")
	box.Delete(draft) // saved again, under another id
	box.Add(mail("draft, better"), "DRAFT")
	spam := box.Add(mail("spam"), "SPAM")
	before = r.calls()
	r.sync(a.Store())
	if diff := cmp.Diff(map[string]int64{"gmail.users.history.list": 1, "gmail.users.labels.list": 1, "gmail.users.messages.get": 2}, since(r.calls(), before)); diff != "" {
		t.Errorf("calls for two new messages (-want +got):\n%s", diff)
	}
	if m, err := a.Store().Trace(t.Context(), ann, spam); err != nil || !m.Stub || m.Labels[0] != "SPAM" {
		t.Errorf("the spam = %+v, %v, want a stub without a body", m, err)
	}
	if m, err := a.Store().Trace(t.Context(), ann, all[0].ID); err != nil || m.DeletedAt.IsZero() || m.SHA256 == "" {
		t.Errorf("the deleted message = %+v, %v, want a tombstone with its body", m, err)
	}
	box.Relabel(spam, []string{"INBOX"}, []string{"SPAM"}) // no spam after all
	for range 300 {                                        // more history than a page holds
		box.Relabel(all[6].ID, []string{"STARRED"}, nil)
		box.Relabel(all[6].ID, nil, []string{"STARRED"})
	}
	box.Relabel(all[5].ID, []string{"TRASH"}, []string{"INBOX"})
	r.sync(a.Store())
	r.equal(a.Store())
	if m := r.fake.Meter(); m.Refetched() != 0 || m.OverLimit() != 0 {
		t.Errorf("the fake's meter: %d refetched, %d over the limit; want none", m.Refetched(), m.OverLimit())
	}
}

// TestMailDuringTheGap: a crawl stops after its third page; what happens until it
// goes on, to messages it had and to others, is there after one sync.
func TestMailDuringTheGap(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1700)
	crashed := make(chan struct{})
	var lists, starts []string
	var mu sync.Mutex
	r.gateway(func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch q := req.URL.Query(); {
		case strings.HasSuffix(req.URL.Path, "/history"):
			starts = append(starts, q.Get("startHistoryId"))
		case strings.HasSuffix(req.URL.Path, "/messages"):
			lists = append(lists, q.Get("pageToken"))
		}
	})
	r.cfg.Sync.Interval = 0
	box := r.fake.Mailbox(ann)
	pinned := fmt.Sprint(box.HistoryID())
	// The fourth page never comes, until the fault ends.
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.messages.list", From: 4, Status: 503}); err != nil {
		t.Fatal(err)
	}
	s := r.open()
	r.startBackfill()
	stop := r.runUntil(crashed)
	r.wait(s, "three pages listed", func(j jobs.Job) bool { return j.Progress.Listed == 1500 && j.Failures > 0 })
	close(crashed)
	stop()

	all := box.Messages()
	for i := range 50 {
		box.Add(mail(fmt.Sprint("new ", i)), "INBOX", "UNREAD")
	}
	for i := range 10 {
		box.Delete(all[i].ID)
	}
	for i := 10; i < 15; i++ {
		box.Relabel(all[i].ID, []string{"STARRED"}, []string{"INBOX"})
	}
	for i := 1600; i < 1605; i++ {
		box.Delete(all[i].ID)
	}
	r.fake.ClearFaults()
	a := r.run()
	r.backfilled(a.Store())
	r.equal(a.Store())
	mu.Lock()
	defer mu.Unlock()
	if len(starts) == 0 || starts[0] != pinned {
		t.Errorf("history was read from %q, want first from %s, which was the mailbox's before the first page", starts, pinned)
	}
}

// TestChangesWhileAStoppedCrawlHasHalf: the same where a crawl stops while it
// fetches, so that some of what changes is stored already.
func TestChangesWhileAStoppedCrawlHasHalf(t *testing.T) {
	t.Parallel()
	const messages = 300
	r := newSite(t, messages)
	r.cfg.Sync.Interval = 0
	box := r.fake.Mailbox(ann)
	s := r.open()
	r.startBackfill()
	crashed := make(chan struct{})
	stop := r.runUntil(crashed)
	r.wait(s, "under way", storedAtLeast(100))
	close(crashed)
	stop()
	var had, others []string
	for _, m := range box.Messages() {
		if stored, err := s.Message(t.Context(), ann, m.ID); err == nil && stored.SHA256 != "" {
			had = append(had, m.ID)
		} else {
			others = append(others, m.ID)
		}
	}
	if len(had) < 100 || len(others) < 50 {
		t.Fatalf("%d of %d messages are stored, want half", len(had), messages)
	}
	for i := range 50 {
		box.Add(mail(fmt.Sprint("new ", i)), "INBOX", "UNREAD")
	}
	for i := range 10 {
		box.Delete(had[i])
	}
	for i := range 5 {
		box.Relabel(had[10+i], []string{"STARRED"}, []string{"INBOX"})
		box.Relabel(others[i], []string{"STARRED"}, []string{"INBOX"})
		box.Delete(others[10+i])
	}
	a := r.run()
	r.backfilled(a.Store())
	r.equal(a.Store())
	j := r.wait(s, "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Gone != 5 || j.Progress.Stored != messages-5 {
		t.Errorf("job = %+v, want all stored but the 5 that were deleted before their turn", j)
	}
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice", n)
	}
}

// runUntil runs scheduler and worker until a channel is closed, and returns what
// waits for their end.
func (r *site) runUntil(end <-chan struct{}) (wait func()) {
	r.t.Helper()
	a, err := app.New(r.t.Context(), r.cfg, app.Options{Roles: []app.Role{app.RoleScheduler, app.RoleWorker}, Version: "test", Log: zaptest.NewLogger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := withEnd(r.t.Context(), end)
	ended := make(chan error, 1)
	go func() { defer cancel(); ended <- a.Run(ctx) }()
	return func() {
		if err := <-ended; err != nil {
			r.t.Errorf("Run = %v, want nil", err)
		}
	}
}

// TestAGetThatIsOpenAcrossASync: the backfill has asked for two messages when live
// sync reads that one was changed and the other deleted. The answers, which tell
// of the time before, undo neither.
func TestAGetThatIsOpenAcrossASync(t *testing.T) {
	t.Parallel()
	r := newSite(t, 2)
	box := r.fake.Mailbox(ann)
	all := box.Messages()
	changed, deleted := all[0].ID, all[1].ID
	answers := make(chan struct{})
	var asked sync.WaitGroup
	asked.Add(2)
	r.holdAnswers(func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/messages/") }, asked.Done, answers)
	a := r.run()
	r.startBackfill()
	asked.Wait() // both gets have their answers, which the worker has not seen
	box.Relabel(changed, []string{"STARRED"}, []string{"INBOX"})
	box.Delete(deleted)
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v, want it completed while the gets are open", j)
	}
	for _, id := range []string{changed, deleted} {
		if m, err := a.Store().Trace(t.Context(), ann, id); err != nil || m.SHA256 != "" || !m.Stub {
			t.Errorf("before its body comes: %+v, %v, want a stub", m, err)
		}
	}
	close(answers)
	r.backfilled(a.Store())
	r.equal(a.Store())
	if m, err := a.Store().Trace(t.Context(), ann, deleted); err != nil || m.DeletedAt.IsZero() {
		t.Errorf("the deleted message = %+v, %v, want a tombstone", m, err)
	}
}

// holdAnswers stands before the fake and holds some of its answers.
func (r *site) holdAnswers(which func(*http.Request) bool, held func(), until <-chan struct{}) {
	r.t.Helper()
	fake := r.cfg.Google.Endpoint.Reveal()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		out, err := http.NewRequestWithContext(req.Context(), req.Method, fake+req.URL.RequestURI(), req.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		out.Header = req.Header.Clone()
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if which(req) && resp.StatusCode == http.StatusOK {
			select {
			case <-until:
			default:
				held()
				select {
				case <-until:
				case <-req.Context().Done():
					return
				}
			}
		}
		for name, values := range resp.Header {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	}))
	r.t.Cleanup(server.Close)
	r.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r.cfg.Google.Endpoint = config.URL(server.URL)
}

// TestHistoryTooOld: thirty messages were deleted and forty added meanwhile, and
// labels changed. The mailbox is read as a whole once, and the next sync is cheap.
func TestHistoryTooOld(t *testing.T) {
	t.Parallel()
	r := newSite(t, 520)
	r.cfg.Worker.Slice = 50 * time.Millisecond // so that it takes several
	a := r.runBackfilled()
	box := r.fake.Mailbox(ann)
	all := box.Messages()
	for i := range 30 {
		box.Delete(all[i].ID)
	}
	for i := range 40 {
		box.Add(mail(fmt.Sprint("new ", i)), "INBOX", "Label_7")
	}
	box.Relabel(all[40].ID, []string{"STARRED", "Label_7"}, []string{"INBOX"})
	box.Relabel(all[41].ID, []string{"TRASH"}, []string{"INBOX"}) // is not deleted
	box.ExpireHistory()
	// The second page of ids is asked for in vain, and the listing starts over.
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.messages.list", Nth: 2, Reason: "invalidPageToken"}); err != nil {
		t.Fatal(err)
	}
	before := r.calls()
	if j := r.sync(a.Store()); j.State != jobs.Completed || j.Slice < 2 {
		t.Fatalf("sync = %+v, want it completed in several slices", j)
	}
	r.equal(a.Store())
	tombstones := 0
	for i := range 30 {
		if m, err := a.Store().Trace(t.Context(), ann, all[i].ID); err == nil && !m.DeletedAt.IsZero() {
			tombstones++
		}
	}
	if tombstones != 30 {
		t.Errorf("%d tombstones, want 30", tombstones)
	}
	did := since(r.calls(), before)
	if did["gmail.users.messages.get"] != 40 || did["gmail.users.getProfile"] != 1 || did["gmail.users.messages.list"] > 25 || did["gmail.users.history.list"] < 2 {
		t.Errorf("calls = %v, want one get for each new message, one profile, and a listing for each label", did)
	}
	before = r.calls()
	r.sync(a.Store())
	if diff := cmp.Diff(map[string]int64{"gmail.users.history.list": 1}, since(r.calls(), before)); diff != "" {
		t.Errorf("the next sync's calls (-want +got):\n%s", diff)
	}

	// Too old again on the same day: said, and not done.
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.history.list", Status: 404}); err != nil {
		t.Fatal(err)
	}
	before = r.calls()
	if j := r.sync(a.Store()); j.State != jobs.Failed || !strings.Contains(j.LastError, "no longer reaches back") || !strings.Contains(j.LastError, "once a day") {
		t.Errorf("the sync after it = %+v, want it failed", j)
	}
	if diff := cmp.Diff(map[string]int64{"gmail.users.history.list": 1}, since(r.calls(), before)); diff != "" {
		t.Errorf("its calls (-want +got):\n%s", diff)
	}
	r.fake.ClearFaults()
	if j := r.sync(a.Store()); j.State != jobs.Completed { // it was a passing fault
		t.Errorf("the sync after that = %+v, want it completed", j)
	}
}

// TestGoneBetweenListAndGet: such messages are counted and are no fault.
func TestGoneBetweenListAndGet(t *testing.T) {
	t.Parallel()
	r := newSite(t, 500)
	box := r.fake.Mailbox(ann)
	all := box.Messages()
	var once sync.Once
	r.gateway(func(req *http.Request) {
		if strings.Contains(req.URL.Path, "/messages/") {
			once.Do(func() {
				for i := range 20 {
					box.Delete(all[400+i].ID)
				}
			})
		}
	})
	a := r.runBackfilled()
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Gone != 20 || j.Progress.Stored != 480 || j.Progress.Failed != 0 {
		t.Errorf("job = %+v, want 480 stored and 20 gone", j)
	}
	r.equal(a.Store())
}

// TestLiveSyncNeverWaitsForABackfill: a backfill takes all it may of a user's quota
// when a sync is asked for.
func TestLiveSyncNeverWaitsForABackfill(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1500)
	a := r.run()
	r.startBackfill()
	// Two of quota's minutes are four seconds here.
	r.wait(a.Store(), "refused for quota", func(j jobs.Job) bool { return j.Progress.Stored > 300 && j.Requeued > 0 })
	id := r.fake.Mailbox(ann).Add(mail("news"), "INBOX", "UNREAD")
	asked := time.Now()
	j := r.sync(a.Store())
	if began := j.StartedAt.Sub(asked); began > 5*time.Second || j.State != jobs.Completed {
		t.Errorf("the sync began after %s and is %s", began, j.State)
	}
	if _, err := a.Store().Message(t.Context(), ann, id); err != nil {
		t.Errorf("the new message after the sync: %v", err)
	}
	b, err := a.Store().Job(t.Context(), jobs.BackfillID(ann))
	if err != nil || b.State.Terminal() {
		t.Fatalf("the backfill has ended before the sync, which proves nothing: %+v, %v", b, err)
	}
	r.backfilled(a.Store())
	r.equal(a.Store())
	if m := r.fake.Meter(); m.Refused() != 0 || m.Refetched() != 0 {
		t.Errorf("the fake's meter: %d refused, %d refetched; want none", m.Refused(), m.Refetched())
	}
}

// TestASyncAskedForWhileOneRunsFollowsIt.
func TestASyncAskedForWhileOneRunsFollowsIt(t *testing.T) {
	t.Parallel()
	r := newSite(t, 10)
	r.cfg.Sync.Interval = 0
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	armed := make(chan struct{})
	r.gateway(func(req *http.Request) {
		select {
		case <-armed:
		default:
			return
		}
		if strings.HasSuffix(req.URL.Path, "/history") {
			once.Do(func() { close(held); <-hold })
		}
	})
	a := r.runBackfilled()
	close(armed)
	first, err := r.control().StartSync(t.Context(), ann)
	if err != nil || !first.Started {
		t.Fatalf("StartSync = %+v, %v", first, err)
	}
	<-held
	second, err := r.control().StartSync(t.Context(), ann)
	if err != nil || second.Started || second.Job.ID != first.Job.ID {
		t.Fatalf("StartSync while one runs = %+v, %v", second, err)
	}
	close(hold)
	r.synced(a.Store(), first.Job.Epoch+1)
	if _, err := r.control().StartSync(t.Context(), "nobody@example.com"); err == nil || !strings.Contains(err.Error(), "account add") {
		t.Errorf("StartSync of an unknown account = %v", err)
	}
}

// TestAHistoryThatTakesLongerThanASlice is read by each slice of a sync, and what it
// tells of is fetched all the same.
func TestAHistoryThatTakesLongerThanASlice(t *testing.T) {
	t.Parallel()
	r := newSite(t, 5)
	r.cfg.Worker.Slice = 100 * time.Millisecond
	a := r.runBackfilled()
	r.addFault(fault.Fault{Method: "gmail.users.history.list", DelayMS: 150})
	r.fake.Mailbox(ann).Add(mail("news"), "INBOX")
	if j := r.sync(a.Store()); j.State != jobs.Completed || j.Slice > 3 {
		t.Errorf("sync = %+v, want it completed within few slices", j)
	}
	r.equal(a.Store())
}
