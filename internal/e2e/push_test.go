package e2e_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const topic = "projects/p/topics/mail"

// pushing makes mailboxes be watched. The process with the pages is told to the
// fake by [site.pushTo].
func (r *site) pushing() {
	p := &r.cfg.Push.Gmail
	p.Topic, p.Subscription = topic, "projects/p/subscriptions/mail"
	p.ServiceAccount, p.Audience = "push@p.iam.gserviceaccount.com", "https://headroom.example.com/push/gmail"
	p.Issuer = r.cfg.Google.Endpoint // also where a gateway will stand before it
	r.cfg.Sync.Interval = 0          // only what is asked for
	r.renewals()
}

func (r *site) pushTo(a *app.App, change func(*gmail.Push)) {
	r.t.Helper()
	c := r.cfg.Push.Gmail
	p := gmail.Push{URL: "http://" + a.Addr().String() + "/push/gmail", Audience: c.Audience.Reveal(),
		ServiceAccount: c.ServiceAccount, Subscription: c.Subscription, PublishEveryMS: 1}
	if change != nil {
		change(&p)
	}
	if err := r.fake.SetPush(p); err != nil {
		r.t.Fatal(err)
	}
}

// until polls, for half a minute at most.
func (r *site) until(what string, ok func() bool) {
	r.t.Helper()
	for range 1500 {
		if ok() {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatalf("not in time: %s", what)
}

func (r *site) watch(s *sqlite.Store, k jobs.WatchKey) jobs.Watch {
	r.t.Helper()
	w, err := s.Watch(r.t.Context(), k)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// TestAPushBringsMailWithinSeconds: although a backfill of the mailbox takes all
// that it may of the quota.
func TestAPushBringsMailWithinSeconds(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1500)
	r.pushing()
	a := r.run()
	r.pushTo(a, nil)
	box := r.fake.Mailbox(ann)
	r.startBackfill()
	r.until("watched", func() bool { _, ok := box.Watch(); return ok })
	r.until("the sync that made the watch has ended", func() bool { // else it may find the mail itself
		j, err := a.Store().Job(t.Context(), jobs.SyncID(ann))
		return err == nil && j.State.Terminal()
	})
	r.wait(a.Store(), "refused for quota", func(j jobs.Job) bool { return j.Progress.Stored > 200 && j.Requeued > 0 })
	added := time.Now()
	id := box.Add(mail("news"), "INBOX", "UNREAD")
	r.until("the mail is there", func() bool { _, err := a.Store().Message(t.Context(), ann, id); return err == nil })
	sync, err := a.Store().Job(t.Context(), jobs.SyncID(ann))
	if err != nil {
		t.Fatal(err)
	}
	if began := sync.StartedAt.Sub(added); began > 5*time.Second {
		t.Errorf("the sync began %s after the change", began)
	}
	b, err := a.Store().Job(t.Context(), jobs.BackfillID(ann))
	if err != nil || b.State.Terminal() {
		t.Fatalf("the backfill has ended before the push, which proves nothing: %+v, %v", b, err)
	}
	w := r.watch(a.Store(), jobs.WatchKey{Account: ann, Kind: jobs.WatchMail})
	if w.State != jobs.WatchActive || w.LastPushAt.IsZero() || w.RenewAt.After(w.RenewedAt.Add(27*time.Hour)) {
		t.Errorf("watch = %+v, want it active, and to be renewed in a day", w)
	}
	if m := r.fake.Meter(); m.Refused() != 0 {
		t.Errorf("the fake refused %d calls", m.Refused())
	}
	// Whoever has no token is told nothing, under whatever name he asks.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.Addr().String()+"/push/gmail", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "headroom.example.com"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger's push = %d, want 401", resp.StatusCode)
	}
}

// TestAPushDuringASync: what changes while the first sync fetches comes with the
// next, which nobody else asked for.
func TestAPushDuringASync(t *testing.T) {
	t.Parallel()
	r := newSite(t, 20)
	r.pushing()
	var hold, held atomic.Bool
	answers := make(chan struct{})
	r.holdAnswers(func(req *http.Request) bool { return hold.Load() && strings.Contains(req.URL.Path, "/messages/") },
		func() { held.Store(true) }, answers)
	a := r.runBackfilled()
	r.pushTo(a, func(p *gmail.Push) { p.Duplicates = 1 })
	box := r.fake.Mailbox(ann)
	hold.Store(true)
	first := box.Add(mail("one"), "INBOX")
	r.until("the first message is being fetched, the history read", held.Load)
	second := box.Add(mail("two"), "INBOX")
	r.until("the second push", func() bool { return r.fake.Pushed().Delivered >= 4 })
	close(answers)
	r.until("both are there", func() bool {
		_, err := a.Store().Message(t.Context(), ann, first)
		_, err2 := a.Store().Message(t.Context(), ann, second)
		return err == nil && err2 == nil
	})
	r.synced(a.Store(), 0)
	r.equal(a.Store())
}

// TestAWatchIsRenewedInTime: and one that ends before, raises the alarm and comes
// back.
func TestAWatchIsRenewedInTime(t *testing.T) {
	t.Parallel()
	r := newSite(t, 5)
	r.pushing()
	a := r.run()
	r.pushTo(a, func(p *gmail.Push) { p.WatchLifeMS = 2_000 })
	r.startBackfill()
	k := jobs.WatchKey{Account: ann, Kind: jobs.WatchMail}
	r.until("watched", func() bool { return r.watch(a.Store(), k).State == jobs.WatchActive })
	w := r.watch(a.Store(), k)
	if early := w.ExpiresAt.Sub(w.RenewAt); early < w.ExpiresAt.Sub(w.RenewedAt)/10 || w.RenewAt.Before(w.RenewedAt) {
		t.Errorf("watch = %+v, want it renewed well before its end", w)
	}
	r.until("renewed", func() bool { return r.watch(a.Store(), k).RenewedAt.After(w.RenewedAt) })
	// Refused from now on, it lapses.
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.watch", Reason: "forbidden"}); err != nil {
		t.Fatal(err)
	}
	r.until("lapsed, and refused", func() bool { w := r.watch(a.Store(), k); return w.State == jobs.WatchLapsed && w.Failures > 0 })
	if w := r.watch(a.Store(), k); !strings.Contains(w.LastError, "403") {
		t.Errorf("watch = %+v, want the refusal that let it lapse", w)
	}
	if j, err := a.Store().Job(t.Context(), jobs.SyncID(ann)); err != nil || j.LastError != "" {
		t.Errorf("sync = %+v, %v, want it not to suffer", j, err)
	}
}
