package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// backfillPart runs the backfill of a part of the mailbox to its end.
func (r *site) backfillPart(s *sqlite.Store, f jobs.Filter) jobs.Job {
	r.t.Helper()
	started, err := r.control().StartBackfill(r.t.Context(), ann, f)
	if err != nil || !started.Created {
		r.t.Fatalf("StartBackfill of %+v = %+v, %v", f, started, err)
	}
	return r.ended(s, started.Job.ID)
}

// ended waits until a job has ended.
func (r *site) ended(s *sqlite.Store, id string) jobs.Job {
	r.t.Helper()
	return r.waitFor(s, id, "ended", terminal)
}

// TestABackfillOfAPartComesBeforeTheWhole: messages that a part has brought are
// known to the backfill of the whole mailbox. What changed in them between the two
// is there after the sync that follows.
func TestABackfillOfAPartComesBeforeTheWhole(t *testing.T) {
	t.Parallel()
	r := newSite(t, 60)
	a := r.run()
	for _, f := range []jobs.Filter{{First: 20}, {First: 5, Format: jobs.FormatMetadataFirst}} {
		r.backfillPart(a.Store(), f)
	}
	box := r.fake.Mailbox(ann)
	all := box.Messages()
	box.Delete(all[3].ID)
	box.Relabel(all[4].ID, []string{"STARRED"}, []string{"INBOX"})
	r.startBackfill()
	r.backfilled(a.Store())
	r.equal(a.Store())
	if m, err := a.Store().Trace(t.Context(), ann, all[3].ID); err != nil || m.DeletedAt.IsZero() {
		t.Errorf("the deleted message = %+v, %v, want a tombstone", m, err)
	}
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice, want none", n)
	}
}

// TestACancelledSyncRestsThroughBackfills: it begins again when it is asked for, and
// not because a backfill ends.
func TestACancelledSyncRestsThroughBackfills(t *testing.T) {
	t.Parallel()
	r := newSite(t, 30)
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	// Nothing ends a sync while its history does not come.
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.history.list", Status: 503}); err != nil {
		t.Fatal(err)
	}
	asked, err := r.control().StartSync(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	r.waitFor(a.Store(), asked.Job.ID, "backing off", func(j jobs.Job) bool { return j.Failures > 0 })
	if _, _, err := a.Store().Cancel(t.Context(), asked.Job.ID); err != nil {
		t.Fatal(err)
	}
	cancelled := r.ended(a.Store(), asked.Job.ID)
	if cancelled.State != jobs.Cancelled {
		t.Fatalf("the sync = %+v, want it cancelled", cancelled)
	}
	r.fake.ClearFaults()
	box.Add(mail("new"), "INBOX")
	before := r.calls()
	r.backfillPart(a.Store(), jobs.Filter{First: 5})
	// The end of the backfill would have asked for a sync, or started it by now.
	c, err := a.Store().Cursor(t.Context(), ann)
	if err != nil || !c.AskedAt.IsZero() {
		t.Errorf("after the backfill: %+v, %v, want no sync asked for", c, err)
	}
	if j := r.ended(a.Store(), asked.Job.ID); j.Epoch != cancelled.Epoch || j.State != jobs.Cancelled {
		t.Errorf("the sync after the backfill = %+v, want it as it was cancelled", j)
	}
	if n := since(r.calls(), before)["gmail.users.history.list"]; n != 0 {
		t.Errorf("the history was read %d times after the sync was cancelled", n)
	}
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Errorf("the sync that was asked for = %+v", j)
	}
	r.equal(a.Store())
}

// TestAMessageThatIsJustAddedIsLookedForAgain: the history names it, and the first
// get does not find it. The next does, with no sync between.
func TestAMessageThatIsJustAddedIsLookedForAgain(t *testing.T) {
	t.Parallel()
	r := newSite(t, 10)
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	late, gone := box.Add(mail("late"), "INBOX"), box.Add(mail("gone"), "INBOX")
	for _, f := range []fault.Fault{
		{Method: "gmail.users.messages.get", ID: late, Status: 404, Count: 1},
		{Method: "gmail.users.messages.get", ID: gone, Status: 404},
	} {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := r.control().StartSync(t.Context(), ann)
	if err != nil || !asked.Started {
		t.Fatalf("StartSync = %+v, %v", asked, err)
	}
	r.waitFor(a.Store(), asked.Job.ID, "waiting for both", func(j jobs.Job) bool { return j.State == jobs.Waiting && j.Progress.Stored == 0 })
	if m, err := a.Store().Trace(t.Context(), ann, late); err != nil || !m.DeletedAt.IsZero() {
		t.Errorf("after the first get: %+v, %v, want no tombstone", m, err)
	}
	box.Delete(gone) // what a record calls deleted is asked for no more
	r.synced(a.Store(), asked.Job.Epoch)
	r.equal(a.Store())
	if m, err := a.Store().Trace(t.Context(), ann, gone); err != nil || m.DeletedAt.IsZero() {
		t.Errorf("the deleted message = %+v, %v, want a tombstone", m, err)
	}
	if m, err := a.Store().Message(t.Context(), ann, late); err != nil || m.SHA256 == "" {
		t.Errorf("the late message = %+v, %v, want it stored", m, err)
	}
}

// TestABackfillLiftsATombstone: live sync took a message for deleted that Google
// gives a later backfill.
func TestABackfillLiftsATombstone(t *testing.T) {
	t.Parallel()
	r := newSite(t, 10)
	a := r.runBackfilled()
	id := r.fake.Mailbox(ann).Messages()[4].ID
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.history.list", Count: 1,
		Body: fmt.Sprintf(`{"history":[{"id":"%[2]d","messagesDeleted":[{"message":{"id":"%[1]s","threadId":"%[1]s"}}]}],"historyId":"%[2]d"}`,
			id, r.fake.Mailbox(ann).HistoryID()+1000)}); err != nil {
		t.Fatal(err)
	}
	r.sync(a.Store())
	if _, err := a.Store().Message(t.Context(), ann, id); !errors.Is(err, jobs.ErrNotFound) {
		t.Fatalf("the message after a record of its deletion: %v, want it gone", err)
	}
	r.backfillPart(a.Store(), jobs.Filter{First: 8})
	if m, err := a.Store().Message(t.Context(), ann, id); err != nil || m.SHA256 == "" {
		t.Errorf("the message after the backfill = %+v, %v", m, err)
	}
}

// TestALabelIsDeletedWhileTheMailboxIsReadAsAWhole: Google refuses to list by it, at
// its first page or at a later one. It is left out, and the sync goes on.
func TestALabelIsDeletedWhileTheMailboxIsReadAsAWhole(t *testing.T) {
	t.Parallel()
	r := newSite(t, 20)
	box := r.fake.Mailbox(ann)
	for i, m := range box.Messages() {
		box.Relabel(m.ID, []string{"Label_7", fmt.Sprint("Label_", 8+i%2)}, nil)
	}
	var armed atomic.Bool
	var once sync.Once
	r.gateway(func(req *http.Request) {
		if q := req.URL.Query(); armed.Load() && q.Get("labelIds") == "Label_7" && q.Get("pageToken") != "" {
			once.Do(func() { box.DeleteLabel("Label_7"); box.DeleteLabel("Label_8") })
		}
	})
	a := r.runBackfilled()
	armed.Store(true)
	// One label is refused although it is there: what is known of it stays.
	r.addFault(fault.Fault{Method: "gmail.users.messages.list", Nth: 8, Status: 400, Message: "Invalid label: CATEGORY_PERSONAL"})
	r.addFault(fault.Fault{Method: "gmail.users.messages.list", Quirk: fault.Quirk{PageItems: 8}})
	box.Add(mail("new"), "INBOX")
	box.ExpireHistory()
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v", j)
	}
	r.sync(a.Store())
	r.equal(a.Store())
	if c := r.cursor(a.Store()); c.ReconciledAt.IsZero() || c.Reconcile || c.Snapshot != (jobs.Snapshot{}) {
		t.Errorf("cursor = %+v, want the reading to be complete", c)
	}
}

// addFault puts a fault in force.
func (r *site) addFault(f fault.Fault) {
	r.t.Helper()
	if err := r.fake.AddFault(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *site) cursor(s *sqlite.Store) jobs.Cursor {
	r.t.Helper()
	c, err := s.Cursor(r.t.Context(), ann)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// arrivesBefore waits until a message is stored, which must come before something
// else.
func (r *site) arrivesBefore(s *sqlite.Store, id, what string, over func(jobs.Cursor) bool) {
	r.t.Helper()
	for range 1000 {
		over := over(r.cursor(s))
		if m, err := s.Message(r.t.Context(), ann, id); err == nil && m.SHA256 != "" {
			return
		}
		if over {
			r.t.Fatalf("message %s is not stored before %s", id, what)
		}
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatalf("message %s is never stored", id)
}

// TestHistoryGoesOnWhileTheMailboxIsReadAsAWhole: new mail, deletions and labels come
// while the reading takes long, and while its calls fail.
func TestHistoryGoesOnWhileTheMailboxIsReadAsAWhole(t *testing.T) {
	t.Parallel()
	r := newSite(t, 60)
	r.cfg.Worker.Slice = 100 * time.Millisecond
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	all := box.Messages()
	box.Delete(all[0].ID)
	box.ExpireHistory() // that deletion is in no history any more
	r.addFault(fault.Fault{Method: "gmail.users.messages.list", DelayMS: 100})
	asked, err := r.control().StartSync(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	r.waitFor(a.Store(), asked.Job.ID, "reading labels", func(jobs.Job) bool { return r.cursor(a.Store()).Snapshot.Phase == jobs.SnapshotLabels })
	id := box.Add(mail("news"), "INBOX")
	box.Relabel(all[5].ID, []string{"STARRED"}, nil)
	box.Delete(all[6].ID)
	complete := func(c jobs.Cursor) bool { return !c.ReconciledAt.IsZero() }
	r.arrivesBefore(a.Store(), id, "the reading is complete", complete)
	for !complete(r.cursor(a.Store())) {
		<-time.After(20 * time.Millisecond)
	}
	r.synced(a.Store(), asked.Job.Epoch)
	r.equal(a.Store())

	// The same while its listing fails, which ends no sync.
	if _, err := a.Store().RunSchedule(t.Context(), jobs.ScheduleReconcile, []string{ann}, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.fake.ClearFaults()
	r.addFault(fault.Fault{Method: "gmail.users.messages.list", Status: 503})
	box.Add(mail("more news"), "INBOX")
	failing := func(c jobs.Cursor) bool { return c.Snapshot.Failures > 0 }
	for !failing(r.cursor(a.Store())) {
		<-time.After(20 * time.Millisecond)
	}
	if j := r.synced(a.Store(), 0); j.State != jobs.Completed {
		t.Errorf("the sync beside = %+v, want it completed", j)
	}
	r.equal(a.Store())
	if c := r.cursor(a.Store()); c.Snapshot.Error == "" || c.Snapshot.NextTry.IsZero() || c.ReconcileReason != jobs.ReconcileAsked {
		t.Errorf("cursor = %+v, want why the reading waits, and until when", c)
	}
	before := r.cursor(a.Store()).ReconciledAt
	r.fake.ClearFaults()
	for range 1500 { // it goes on by itself
		if r.cursor(a.Store()).ReconciledAt.After(before) {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("the reading did not go on: %+v", r.cursor(a.Store()))
}

// TestHistoryThatRunsBackwards: the mailbox is read as a whole once, and not again
// the same day, whatever Google says; the state says why.
func TestHistoryThatRunsBackwards(t *testing.T) {
	t.Parallel()
	r := newSite(t, 30)
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	box.Delete(box.Messages()[3].ID)
	box.Relabel(box.Messages()[4].ID, []string{"STARRED"}, nil)
	r.addFault(fault.Fault{Method: "gmail.users.history.list", Body: `{"historyId":"5"}`})
	before := r.calls()
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v, want it completed by reading the mailbox as a whole", j)
	}
	r.equal(a.Store())
	if c := r.cursor(a.Store()); c.ReconcileReason != jobs.HistoryBackwards || c.ReconciledAt.IsZero() || c.HistoryID != box.HistoryID() {
		t.Errorf("cursor = %+v, want why the mailbox was read as a whole, and %d", c, box.HistoryID())
	}
	for range 2 {
		if j := r.sync(a.Store()); j.State != jobs.Failed || !strings.Contains(j.LastError, "runs backwards") {
			t.Errorf("the next sync = %+v, want it failed", j)
		}
	}
	if n := since(r.calls(), before)["gmail.users.getProfile"]; n != 1 {
		t.Errorf("the mailbox was read as a whole %d times in a day, want once", n)
	}
	if _, err := a.Store().RunSchedule(t.Context(), jobs.ScheduleReconcile, []string{ann}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if j := r.synced(a.Store(), r.ended(a.Store(), jobs.SyncID(ann)).Epoch+1); j.State != jobs.Completed {
		t.Errorf("the sync after somebody has asked for the reading = %+v, want it completed", j)
	}
	r.fake.ClearFaults()
	box.Add(mail("new"), "INBOX")
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Errorf("the sync once that is over = %+v", j)
	}
	r.equal(a.Store())
}

// TestAMailboxMadeAnew: rows that are not in the new mailbox become tombstones,
// although their history ids are far above those of the new one, whose history is
// then followed.
func TestAMailboxMadeAnew(t *testing.T) {
	t.Parallel()
	r := newSite(t, 30)
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	old := box.Messages()
	box.MakeAnew()
	for i := range 10 {
		box.Add(mail(fmt.Sprint("new ", i)), "INBOX")
	}
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v", j)
	}
	r.equal(a.Store())
	for _, m := range old {
		if trace, err := a.Store().Trace(t.Context(), ann, m.ID); err != nil || trace.DeletedAt.IsZero() || trace.SHA256 == "" {
			t.Errorf("a message of the old mailbox = %+v, %v, want a tombstone with its body", trace, err)
		}
	}
	if c := r.cursor(a.Store()); c.ReconcileReason != jobs.HistoryBackwards {
		t.Errorf("cursor = %+v, want why", c)
	}
	box.Relabel(box.Messages()[2].ID, []string{"STARRED"}, nil)
	box.Delete(box.Messages()[3].ID)
	box.Add(mail("newer"), "INBOX")
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("the next sync = %+v", j)
	}
	r.equal(a.Store())
}

// TestWhatAWholeReadingSaysIsTaken: rows were told of changes, with history ids far
// ahead, that the mailbox knows nothing of.
func TestWhatAWholeReadingSaysIsTaken(t *testing.T) {
	t.Parallel()
	r := newSite(t, 20)
	box := r.fake.Mailbox(ann)
	a := r.runBackfilled()
	all, ahead := box.Messages(), box.HistoryID()+1000
	r.addFault(fault.Fault{Method: "gmail.users.history.list", Count: 1, Body: fmt.Sprintf(`{"history":[
		{"id":"%[3]d","messagesDeleted":[{"message":{"id":"%[1]s","threadId":"%[1]s"}}]},
		{"id":"%[4]d","labelsAdded":[{"message":{"id":"%[2]s","threadId":"%[2]s","labelIds":["STARRED"]},"labelIds":["STARRED"]}]}],
		"nextPageToken":"x"}`, all[2].ID, all[3].ID, ahead, ahead+1)})
	r.addFault(fault.Fault{Method: "gmail.users.history.list", Count: 1, Body: fmt.Sprintf(`{"historyId":"%d"}`, box.HistoryID())})
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v", j)
	}
	r.sync(a.Store())
	r.equal(a.Store())
}

// TestAMailboxMadeAnewBeforeItsFirstWholeBackfill: what a part of the old one has
// brought is not in the new one.
func TestAMailboxMadeAnewBeforeItsFirstWholeBackfill(t *testing.T) {
	t.Parallel()
	r := newSite(t, 20)
	box := r.fake.Mailbox(ann)
	a := r.run()
	r.backfillPart(a.Store(), jobs.Filter{First: 8})
	box.MakeAnew()
	for i := range 5 {
		box.Add(mail(fmt.Sprint("new ", i)), "INBOX")
	}
	r.startBackfill()
	r.backfilled(a.Store())
	r.equal(a.Store())
}
