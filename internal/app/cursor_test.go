package app_test

import (
	"errors"
	"fmt"
	"testing"

	"headroom/internal/app"
	"headroom/internal/fakegoogle"
	"headroom/internal/store"
	"headroom/jobs"

	"go.uber.org/zap/zaptest"
)

// backfillPart runs the backfill of a part of the mailbox to its end.
func (r *rig) backfillPart(s *store.Store, f jobs.Filter) jobs.Job {
	r.t.Helper()
	started, err := app.StartBackfill(r.t.Context(), r.cfg, ann, f, zaptest.NewLogger(r.t))
	if err != nil || !started.Created {
		r.t.Fatalf("StartBackfill of %+v = %+v, %v", f, started, err)
	}
	return r.ended(s, started.Job.ID)
}

// ended waits until a job has ended.
func (r *rig) ended(s *store.Store, id string) jobs.Job {
	r.t.Helper()
	return r.waitFor(s, id, "ended", terminal)
}

// TestABackfillOfAPartComesBeforeTheWhole: messages that a part has brought are
// known to the backfill of the whole mailbox. What changed in them between the two
// is there after the sync that follows.
func TestABackfillOfAPartComesBeforeTheWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60)
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
	r := newRig(t, 30)
	box := r.fake.Mailbox(ann)
	a := r.run()
	r.startBackfill()
	r.backfilled(a.Store())
	// Nothing ends a sync while its history does not come.
	if err := r.fake.AddFault(fakegoogle.Fault{Method: "gmail.users.history.list", Status: 503}); err != nil {
		t.Fatal(err)
	}
	asked, err := app.StartSync(t.Context(), r.cfg, ann, zaptest.NewLogger(t))
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
	r := newRig(t, 10)
	box := r.fake.Mailbox(ann)
	a := r.run()
	r.startBackfill()
	r.backfilled(a.Store())
	late, gone := box.Add(mail("late"), "INBOX"), box.Add(mail("gone"), "INBOX")
	for _, f := range []fakegoogle.Fault{
		{Method: "gmail.users.messages.get", ID: late, Status: 404, Count: 1},
		{Method: "gmail.users.messages.get", ID: gone, Status: 404},
	} {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := app.StartSync(t.Context(), r.cfg, ann, zaptest.NewLogger(t))
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
	r := newRig(t, 10)
	a := r.run()
	r.startBackfill()
	r.backfilled(a.Store())
	id := r.fake.Mailbox(ann).Messages()[4].ID
	if err := r.fake.AddFault(fakegoogle.Fault{Method: "gmail.users.history.list", Count: 1,
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
