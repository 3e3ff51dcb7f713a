package storetest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// snapshotTests are about reading a mailbox as a whole.
var snapshotTests = []test{
	{"a snapshot is merged only when it is complete", testASnapshotIsMergedOnlyWhenComplete},
	{"a short snapshot deletes nothing", testAShortSnapshotDeletesNothing},
}

// readWhole reads a mailbox without messages as a whole, for the owner of its sync.
func readWhole(t *T, s Store, ref jobs.TaskRef) {
	t.Helper()
	ctx := t.Context()
	must[jobs.Cursor](t)(s.ExpireCursor(ctx, ref, jobs.HistoryTooOld))
	must[jobs.Cursor](t)(s.BeginSnapshot(ctx, ref, jobs.Profile{HistoryID: 150}))
	snap := must[jobs.Cursor](t)(s.MergeSnapshot(ctx, ref)).Snapshot
	snap.Phase = jobs.SnapshotMerge
	must[jobs.Snapshot](t)(s.AddSnapshot(ctx, ref, "", nil, snap))
	for snap.Phase != "" {
		snap = must[jobs.Cursor](t)(s.MergeSnapshot(ctx, ref)).Snapshot
	}
}

func testASnapshotIsMergedOnlyWhenComplete(t *T) {
	s, backfill, sync := synced(t, "kept", "gone", "later")
	ctx := t.Context()
	fetched(t, s, backfill, "kept", 90, "INBOX")
	fetched(t, s, backfill, "gone", 90, "INBOX")
	fetched(t, s, backfill, "later", 250, "INBOX") // came after the snapshot began
	apply(t, s, sync, record(120, jobs.LabelsAdded, "changed", "INBOX"), record(260, jobs.LabelsAdded, "fresh", "NEW"))
	snap := jobs.Snapshot{Phase: jobs.SnapshotIDs, HistoryID: 200, Expected: 4}
	add := func(label string, ids ...string) {
		t.Helper()
		var err error
		if snap, err = s.AddSnapshot(ctx, sync, label, ids, snap); err != nil {
			t.Fatal(err)
		}
	}
	add("", "kept", "changed", "fresh", "kept")
	if _, err := s.MergeSnapshot(ctx, sync); err == nil {
		t.Error("a snapshot that is not complete is merged")
	}
	add("", "unknown")
	snap.Phase = jobs.SnapshotLabels
	add("A", "kept", "unknown", "nobody")
	add("A", "kept")
	add("BA", "kept", "fresh")
	snap.Phase = jobs.SnapshotMerge
	add("TRASH", "changed")
	if snap.Seen != 4 {
		t.Errorf("seen = %d, want 4", snap.Seen)
	}
	for i := 0; snap.Phase != ""; i++ {
		if i == 10 {
			t.Fatalf("the merge does not end: %+v", snap)
		}
		snap = must[jobs.Cursor](t)(s.MergeSnapshot(ctx, sync)).Snapshot
	}
	got := map[string]string{}
	for _, id := range []string{"kept", "gone", "later", "changed", "fresh", "unknown"} {
		m := must[jobs.Message](t)(s.Trace(ctx, ann, id))
		got[id] = fmt.Sprint(m.Labels, " ", m.HistoryID)
		if !m.DeletedAt.IsZero() {
			got[id] += " deleted"
		}
		if m.Stub {
			got[id] += " stub"
		}
	}
	want := map[string]string{"kept": "[A BA] 200", "gone": "[INBOX] 200 deleted", "later": "[INBOX] 250",
		"changed": "[TRASH] 200 stub", "fresh": "[NEW] 260 stub", "unknown": "[A] 200 stub"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if c := must[jobs.Cursor](t)(s.Cursor(ctx, ann)); c.HistoryID != 260 || c.Reconcile || c.ReconciledAt.IsZero() {
		t.Errorf("cursor = %+v, want 260, up to which the history was read meanwhile, and reconciled", c)
	}
}

func testAShortSnapshotDeletesNothing(t *T) {
	s, backfill, sync := synced(t, "a")
	ctx := t.Context()
	fetched(t, s, backfill, "a", 90, "INBOX")
	if _, err := s.AddSnapshot(ctx, sync, "", []string{"b"}, jobs.Snapshot{Phase: jobs.SnapshotMerge, HistoryID: 200, Expected: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MergeSnapshot(ctx, sync); err == nil {
		t.Error("a listing of one message of four is believed")
	}
	c := must[jobs.Cursor](t)(s.FailSnapshot(ctx, sync, "too short"))
	if c.Snapshot.Phase != jobs.SnapshotAsked || c.Snapshot.Restarts != 1 || c.Snapshot.Error != "too short" || c.HistoryID != 100 {
		t.Errorf("cursor = %+v, want a snapshot that begins anew", c)
	}
	if done := must[bool](t)(s.DropSnapshot(ctx, sync)); !done {
		t.Error("the snapshot of one is not dropped")
	}
	must[jobs.Message](t)(s.Message(ctx, ann, "a"))
}
