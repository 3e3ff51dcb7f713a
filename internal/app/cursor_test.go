package app_test

import (
	"testing"

	"headroom/internal/app"
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
