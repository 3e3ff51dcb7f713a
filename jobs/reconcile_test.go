package jobs_test

import (
	"strings"
	"testing"
	"time"

	"headroom/jobs"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestWhenAHistoryRunsBackwards(t *testing.T) {
	gap := jobs.Snapshot{Phase: jobs.SnapshotIDs, Gap: true}
	for _, row := range []struct {
		name   string
		cursor jobs.Cursor
		page   jobs.HistoryPage
		want   bool
	}{
		{"the newest id is lower", jobs.Cursor{HistoryID: 4353}, jobs.HistoryPage{HistoryID: 5}, true},
		{"the same on a page that another follows", jobs.Cursor{HistoryID: 4353}, jobs.HistoryPage{HistoryID: 5, Next: "p2"}, true},
		{"nothing is new", jobs.Cursor{HistoryID: 4353}, jobs.HistoryPage{HistoryID: 4353}, false},
		{"something is new", jobs.Cursor{HistoryID: 4353}, jobs.HistoryPage{HistoryID: 4360}, false},
		{"the page names no id", jobs.Cursor{HistoryID: 4353}, jobs.HistoryPage{Next: "p2"}, false},
		{"the mailbox is read as a whole for that", jobs.Cursor{HistoryID: 4353, Snapshot: gap, ReconcileReason: jobs.HistoryBackwards}, jobs.HistoryPage{HistoryID: 5}, false},
		{"it is read as a whole for another reason", jobs.Cursor{HistoryID: 4353, Snapshot: gap, ReconcileReason: jobs.HistoryTooOld}, jobs.HistoryPage{HistoryID: 5}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.cursor.Backwards(row.page); got != row.want {
				t.Errorf("Backwards = %t, want %t", got, row.want)
			}
		})
	}
}

func TestAWholeReadingIsDueOnceADay(t *testing.T) {
	for _, row := range []struct {
		name   string
		cursor jobs.Cursor
		due    time.Duration // from noon on
	}{
		{"never read so before", jobs.Cursor{}, 0},
		{"read so two days ago", jobs.Cursor{ReconciledAt: noon.Add(-48 * time.Hour)}, 0},
		{"read so an hour ago", jobs.Cursor{ReconciledAt: noon.Add(-time.Hour), ReconcileReason: jobs.HistoryTooOld}, 23 * time.Hour},
		{"read so an hour ago, for a schedule", jobs.Cursor{ReconciledAt: noon.Add(-time.Hour), ReconcileReason: jobs.ReconcileAsked}, 0},
		{"known to be too old before", jobs.Cursor{ReconciledAt: noon.Add(-time.Hour), Reconcile: true, ReconcileReason: jobs.HistoryTooOld,
			Snapshot: jobs.Snapshot{Phase: jobs.SnapshotAsked}}, 23 * time.Hour},
		{"read so in the future, by a clock that was ahead", jobs.Cursor{ReconciledAt: noon.Add(time.Hour)}, 0},
		{"asked for already", jobs.Cursor{ReconciledAt: noon.Add(-time.Hour), Snapshot: jobs.Snapshot{Phase: jobs.SnapshotAsked}}, 0},
		{"under way, which is begun anew", jobs.Cursor{Snapshot: jobs.Snapshot{Phase: jobs.SnapshotLabels}}, time.Minute},
		{"begun anew before", jobs.Cursor{Snapshot: jobs.Snapshot{Phase: jobs.SnapshotLabels, Restarts: 2}}, 4 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := row.cursor.Expire(jobs.HistoryTooOld, noon)
			if !c.Reconcile || c.ReconcileReason != jobs.HistoryTooOld || c.Snapshot.Phase != jobs.SnapshotAsked {
				t.Fatalf("cursor = %+v, want a snapshot that is asked for", c)
			}
			if !c.Due(noon.Add(row.due)) || row.due > 0 && c.Due(noon.Add(row.due-time.Millisecond)) {
				t.Errorf("it is due at %s, want %s after noon", c.ReadingFrom(), row.due)
			}
			if text := c.Standstill(); !strings.Contains(text, "no longer reaches back") {
				t.Errorf("Standstill = %q, want why", text)
			}
		})
	}
}

func TestAMomentTooFarAheadIsNotBelieved(t *testing.T) {
	s := jobs.Snapshot{Phase: jobs.SnapshotIDs, NextTry: noon.Add(25 * time.Hour)}
	if !s.Due(noon) {
		t.Error("a snapshot waits for longer than any rule has it wait")
	}
	if (jobs.Snapshot{}).Due(noon) {
		t.Error("no snapshot is due")
	}
}

func TestASnapshotWithoutProgressIsBegunAnew(t *testing.T) {
	s, now := jobs.Snapshot{Phase: jobs.SnapshotLabels, Label: "Label_7", HistoryID: 7, Gap: true}, noon
	var last time.Duration
	for failures := 1; s.Phase == jobs.SnapshotLabels; failures++ {
		if failures > 10 {
			t.Fatalf("after %d failures: %+v", failures, s)
		}
		s = s.Fail("backendError", now)
		wait := s.NextTry.Sub(now)
		if wait <= last || s.Error != "backendError" {
			t.Errorf("failure %d: %+v waits %s, want longer than %s", failures, s, wait, last)
		}
		last, now = wait, s.NextTry
	}
	if want := (jobs.Snapshot{Phase: jobs.SnapshotAsked, Gap: true, Restarts: 1, Error: "backendError", NextTry: s.NextTry}); s != want {
		t.Errorf("begun anew: %+v, want %+v", s, want)
	}
	first := s.NextTry.Sub(now)
	s = jobs.Cursor{HistoryID: 5, Snapshot: s}.BeginReading(jobs.Profile{HistoryID: 9}).Snapshot
	s.Failures = 1
	if s = s.Progress(); s.Failures != 0 || s.Error != "" || !s.NextTry.IsZero() {
		t.Errorf("after progress: %+v", s)
	}
	s = s.Restart("again", now)
	if again := s.NextTry.Sub(now); s.Restarts != 2 || !s.Gap || again < first {
		t.Errorf("the second restart: %+v, want it later than after %s", s, first)
	}
	short := jobs.Snapshot{Phase: jobs.SnapshotMerge, Expected: 100, Seen: 3}.Fail("too short", noon)
	if short.Phase != jobs.SnapshotAsked {
		t.Errorf("a listing that is too short: %+v, want it begun anew at once", short)
	}
}

func TestTheCursorBesideASnapshot(t *testing.T) {
	for _, row := range []struct {
		name   string
		cursor jobs.Cursor
		pinned uint64
		want   uint64 // the history is read from there on
		reason jobs.ReconcileReason
		gap    bool
	}{
		{"asked for, the history is whole", jobs.Cursor{HistoryID: 100, ReconcileReason: jobs.ReconcileAsked}, 300, 100, jobs.ReconcileAsked, false},
		{"the history is too old", jobs.Cursor{HistoryID: 100, Reconcile: true, ReconcileReason: jobs.HistoryTooOld}, 300, 300, jobs.HistoryTooOld, true},
		{"too old, for the mailbox was made anew", jobs.Cursor{HistoryID: 100, Reconcile: true, ReconcileReason: jobs.HistoryTooOld}, 20, 20, jobs.HistoryBackwards, true},
		{"asked for, and the mailbox was made anew", jobs.Cursor{HistoryID: 100, ReconcileReason: jobs.ReconcileAsked}, 20, 20, jobs.HistoryBackwards, true},
		{"the history runs backwards, the profile does not", jobs.Cursor{HistoryID: 100, Reconcile: true, ReconcileReason: jobs.HistoryBackwards}, 100, 100, jobs.HistoryBackwards, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := row.cursor.BeginReading(jobs.Profile{HistoryID: row.pinned, Messages: 8})
			if c.HistoryID != row.cursor.HistoryID || c.Snapshot.Phase != jobs.SnapshotAge || c.Snapshot.Expected != 8 {
				t.Errorf("begun: %+v, want the cursor where it was until the rows are older than the snapshot", c)
			}
			c = c.Aged()
			if c.HistoryID != row.want || c.ReconcileReason != row.reason || c.Snapshot.Gap != row.gap || c.Snapshot.Phase != jobs.SnapshotIDs {
				t.Errorf("cursor = %+v, want %d, gap %t, reason %s", c, row.want, row.gap, row.reason)
			}
			if c.Recover().Reconcile != row.gap {
				t.Errorf("a page of the history leaves reconcile %t, want %t", c.Recover().Reconcile, row.gap)
			}
			c = c.Reconciled(noon)
			if c.Reconcile || c.Snapshot != (jobs.Snapshot{}) || !c.ReconciledAt.Equal(noon) || c.HistoryID != row.want || c.ReconcileReason != row.reason {
				t.Errorf("reconciled: %+v", c)
			}
		})
	}
}

func TestAHistoryThatCanBeReadAfterAllEndsTheNeed(t *testing.T) {
	c := jobs.Cursor{HistoryID: 100, ReconciledAt: noon}.Expire(jobs.HistoryTooOld, noon.Add(time.Hour))
	if got := c.Recover(); got.Reconcile || got.Snapshot != (jobs.Snapshot{}) {
		t.Errorf("cursor = %+v, want nothing left to read as a whole", got)
	}
	if got := c.AskWhole().Recover(); got.Reconcile || !got.Due(noon) || got.ReconcileReason != jobs.ReconcileAsked {
		t.Errorf("cursor = %+v, want what was asked for left to do", got)
	}
}

func TestLabelsThatCannotBeListedBy(t *testing.T) {
	s := jobs.Snapshot{}.Leave("Label_7", false).Leave("Label_8", true).Leave("7", false)
	for _, row := range []struct{ listed, before, want string }{
		{"INBOX STARRED", "INBOX UNREAD", "INBOX STARRED"},
		{"INBOX Label_7", "INBOX Label_7", "INBOX"},            // it was listed by in part, and then deleted
		{"INBOX", "Label_8 UNREAD", "INBOX Label_8"},           // nobody knows better
		{"INBOX Label_8 INBOX", "Label_8", "INBOX Label_8"},    // it was listed by in part
		{"INBOX Label_77 abel_7", "", "INBOX Label_77 abel_7"}, // other labels
	} {
		got := s.Labels(strings.Fields(row.listed), strings.Fields(row.before))
		if strings.Join(got, " ") != row.want {
			t.Errorf("Labels(%s; %s) = %q, want %s", row.listed, row.before, got, row.want)
		}
	}
}

func TestAskingForAWholeReading(t *testing.T) {
	c := jobs.Cursor{ReconciledAt: noon}.AskWhole()
	if !c.Due(noon) || c.ReconcileReason != jobs.ReconcileAsked || c.Reconcile {
		t.Errorf("asked for: %+v", c)
	}
	c = jobs.Cursor{ReconciledAt: noon, ReconcileReason: jobs.HistoryTooOld}.Expire(jobs.HistoryBackwards, noon.Add(time.Minute))
	if c.Due(noon.Add(time.Hour)) {
		t.Fatalf("%+v is due the same day", c)
	}
	if c = c.AskWhole(); !c.Due(noon.Add(time.Hour)) || c.ReconcileReason != jobs.HistoryBackwards || !c.Reconcile {
		t.Errorf("asked for on the same day: %+v, want it due, for its history", c)
	}
	c = jobs.Cursor{Snapshot: jobs.Snapshot{Phase: jobs.SnapshotLabels, Label: "x", NextTry: noon.Add(time.Hour)}}.AskWhole()
	if c.Snapshot.Phase != jobs.SnapshotLabels || c.Snapshot.Label != "x" || !c.Due(noon) {
		t.Errorf("asked for while it is under way: %+v, want it to go on", c)
	}
}
