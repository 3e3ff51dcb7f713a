package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var historyTests = []test{
	{"a backfill never undoes what live sync wrote", testABackfillNeverUndoesWhatLiveSyncWrote},
	{"a deletion takes a message off every list", testADeletionTakesAMessageOffEveryList},
	{"a fetch lifts a tombstone", testAFetchLiftsATombstone},
	{"a message that was fetched too early is fetched again", testAGetThatCameTooEarly},
	{"a sync that waits for items only is woken", testASyncThatWaitsForItemsOnlyIsWoken},
	{"a backfill does not fetch what live sync has fetched", testWhatLiveSyncFetchedIsKnownToTheBackfill},
	{"labels are changed where a record does not list all of them", testLabelsWithoutTheRecordsList},
	{"the cursor moves with its page", testTheCursorMovesWithItsPage},
	{"stubs are fetched once the backfill is complete", testStubsAreFetchedOnceTheBackfillIsComplete},
}

// synced is a store with a backfill whose history is pinned at 100 and whose
// listing holds ids, and a live sync; both are claimed.
func synced(t *T, ids ...string) (s Store, backfill, sync jobs.TaskRef) {
	t.Helper()
	s, job := claimed(t)
	ctx := t.Context()
	if err := s.SaveProfile(ctx, job.Ref(), jobs.Profile{Messages: 3, HistoryID: 100}); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: ids}))
	return s, job.Ref(), startSync(t, s).Ref()
}

func startSync(t *T, s Store) jobs.Job {
	t.Helper()
	job, started, err := s.StartSync(t.Context(), "Ann@example.com")
	if err != nil || !started {
		t.Fatalf("StartSync = %+v, %t, %v", job, started, err)
	}
	return must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour))
}

// record is a history record with one change, after which the message has labels.
func record(id uint64, kind jobs.ChangeKind, message string, labels ...string) jobs.HistoryRecord {
	return jobs.HistoryRecord{ID: id, Changes: []jobs.Change{{Kind: kind, ID: message, ThreadID: "t", Labels: labels}}}
}

func apply(t *T, s Store, ref jobs.TaskRef, records ...jobs.HistoryRecord) jobs.Job {
	t.Helper()
	return must[jobs.Job](t)(s.ApplyHistory(t.Context(), ref, jobs.HistoryPage{Records: records}))
}

// fetched commits a message as Google gave it at a history id.
func fetched(t *T, s Store, ref jobs.TaskRef, id string, history uint64, labels ...string) {
	t.Helper()
	m := message(id, history)
	m.Labels = labels
	must[jobs.Job](t)(s.Commit(t.Context(), ref, []jobs.Result{{ID: id, Outcome: jobs.ItemStored, Message: m}}))
}

func testABackfillNeverUndoesWhatLiveSyncWrote(t *T) {
	for _, row := range []struct {
		name    string
		live    jobs.HistoryRecord
		before  bool // the backfill's body is there before live sync
		get     uint64
		labels  []string
		deleted bool
	}{
		{"changed at 120, read at 100", record(120, jobs.LabelsRemoved, "m", "INBOX"), false, 100, []string{"INBOX"}, false},
		{"changed at 120, read at 120", record(120, jobs.LabelsRemoved, "m", "INBOX"), false, 120, []string{"INBOX", "UNREAD"}, false},
		{"changed at 120, read at 130", record(120, jobs.LabelsRemoved, "m", "INBOX"), false, 130, []string{"INBOX", "UNREAD"}, false},
		{"changed at 120, stored at 100", record(120, jobs.LabelsRemoved, "m", "INBOX"), true, 100, []string{"INBOX"}, false},
		{"changed at 120, stored at 130", record(120, jobs.LabelsRemoved, "m", "INBOX"), true, 130, []string{"INBOX", "UNREAD"}, false},
		{"deleted at 120, stored at 100", record(120, jobs.MessageDeleted, "m"), true, 100, []string{"INBOX", "UNREAD"}, true},
	} {
		t.Run(row.name, func(t *T) {
			s, backfill, sync := synced(t, "m")
			if row.before {
				fetched(t, s, backfill, "m", row.get, "INBOX", "UNREAD")
			}
			apply(t, s, sync, row.live)
			if !row.before {
				if _, err := s.Message(t.Context(), ann, "m"); !errors.Is(err, jobs.ErrNotFound) {
					t.Errorf("the stub is shown as a message: %v", err)
				}
				fetched(t, s, backfill, "m", row.get, "INBOX", "UNREAD")
			}
			got := must[jobs.Message](t)(s.Trace(t.Context(), ann, "m"))
			if !slices.Equal(got.Labels, row.labels) || got.DeletedAt.IsZero() == row.deleted || got.SHA256 == "" || got.Stub || got.Size != 100 {
				t.Errorf("message = %+v, want its body, labels %q, deleted %t", got, row.labels, row.deleted)
			}
			shown := must[[]jobs.Message](t)(s.Messages(t.Context(), ann, "", 10))
			if (len(shown) == 0) != row.deleted {
				t.Errorf("%d messages are shown, deleted %t", len(shown), row.deleted)
			}
		})
	}
}

// A deleted message is not fetched, and a body that comes all the same does not restore
// it.
func testADeletionTakesAMessageOffEveryList(t *T) {
	s, backfill, sync := synced(t, "a", "b", "noted")
	ctx := t.Context()
	must[jobs.Job](t)(s.Commit(ctx, backfill, []jobs.Result{{ID: "noted", Outcome: jobs.ItemNoted, Message: message("noted", 100)}}))
	apply(t, s, sync, record(110, jobs.MessageAdded, "new", "INBOX"))
	job := apply(t, s, sync, record(120, jobs.MessageDeleted, "a"), record(130, jobs.MessageDeleted, "new"),
		record(135, jobs.MessageDeleted, "noted"))
	if job.Progress.Listed != 1 || job.Progress.Gone != 1 {
		t.Errorf("the sync's progress = %+v, want the new message listed and gone", job.Progress)
	}
	if b := must[jobs.Job](t)(s.Job(ctx, backfill.Job)); b.Progress.Gone != 2 {
		t.Errorf("the backfill's progress = %+v, want two gone", b.Progress)
	}
	if diff := cmp.Diff([]jobs.Item{{Seq: 2, ID: "b"}}, must[[]jobs.Item](t)(s.NextItems(ctx, backfill, 0, 10))); diff != "" {
		t.Errorf("left to fetch (-want +got):\n%s", diff)
	}
	fetched(t, s, backfill, "a", 100, "INBOX") // its get was under way
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "a")); m.DeletedAt.IsZero() {
		t.Errorf("the deleted message = %+v, want a tombstone", m)
	}
	apply(t, s, sync, record(140, jobs.MessageAdded, "a", "INBOX")) // such as an import under the same id
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "a")); !m.DeletedAt.IsZero() {
		t.Errorf("the message that came back = %+v", m)
	}
}

// A message that can be fetched exists, in whatever format it was fetched, and however
// old the history id of the answer is.
func testAFetchLiftsATombstone(t *T) {
	full := func(m *jobs.Message) jobs.Result {
		m.FullSHA256, m.FullSize, m.SHA256 = m.SHA256, m.Size, ""
		return jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: m}
	}
	raw := func(m *jobs.Message) jobs.Result {
		return jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: m}
	}
	noted := func(m *jobs.Message) jobs.Result {
		m.SHA256, m.ParseStatus = "", jobs.ParseLater
		return jobs.Result{ID: m.ID, Outcome: jobs.ItemNoted, Message: m}
	}
	for _, row := range []struct {
		name   string
		stored bool // its body is stored before
		filter jobs.Filter
		result func(*jobs.Message) jobs.Result
	}{
		{"raw, no body before", false, jobs.Filter{First: 1}, raw},
		{"raw, a body before", true, jobs.Filter{First: 1}, raw},
		{"full, no body before", false, jobs.Filter{First: 1, Format: jobs.FormatFull}, full},
		{"full, a raw body before", true, jobs.Filter{First: 1, Format: jobs.FormatFull}, full},
		{"metadata, no body before", false, jobs.Filter{First: 1, Format: jobs.FormatMetadataFirst}, noted},
		{"metadata, a body before", true, jobs.Filter{First: 1, Format: jobs.FormatMetadataFirst}, noted},
	} {
		t.Run(row.name, func(t *T) {
			s, backfill, sync := synced(t, "m")
			ctx := t.Context()
			if row.stored {
				fetched(t, s, backfill, "m", 100, "INBOX")
			}
			apply(t, s, sync, record(120, jobs.MessageDeleted, "m"))
			again, _, err := s.StartBackfill(ctx, ann, row.filter)
			if err != nil {
				t.Fatal(err)
			}
			ref := must[jobs.Job](t)(s.Claim(ctx, again.Ref(), hour)).Ref()
			job := must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"m"}}))
			if job.Progress.Known != 0 {
				t.Fatalf("progress = %+v: a tombstone is known, so nobody asks for it", job.Progress)
			}
			m := message("m", 100)
			m.Labels = []string{"STARRED"}
			must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{row.result(m)}))
			got := must[jobs.Message](t)(s.Message(ctx, ann, "m"))
			if !slices.Equal(got.Labels, []string{"STARRED"}) || row.stored && got.SHA256 == "" || row.stored && got.ParseStatus != jobs.Parsed {
				t.Errorf("message = %+v, want it as Google gave it, with its body", got)
			}
		})
	}
}

// A backfill that does not find the message leaves it to live sync. If live sync does
// not find it either, it is a tombstone until a record of its labels comes.
func testAGetThatCameTooEarly(t *T) {
	s, backfill, sync := synced(t, "m")
	ctx := t.Context()
	apply(t, s, sync, record(110, jobs.LabelsAdded, "m", "INBOX"))
	gone := []jobs.Result{{ID: "m", Outcome: jobs.ItemGone}}
	must[jobs.Job](t)(s.Commit(ctx, backfill, gone))
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "m")); !m.DeletedAt.IsZero() {
		t.Errorf("after the backfill's get: %+v, want no tombstone", m)
	}
	must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
	list := func() int {
		t.Helper()
		if _, _, err := s.EndSync(ctx, sync); err != nil {
			t.Fatal(err)
		}
		return len(must[[]jobs.Item](t)(s.NextItems(ctx, sync, 0, 10)))
	}
	if n := list(); n != 1 {
		t.Fatalf("live sync has %d messages to fetch, want the one", n)
	}
	must[jobs.Job](t)(s.Commit(ctx, sync, gone))
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "m")); m.DeletedAt.IsZero() {
		t.Errorf("after live sync's last get: %+v, want a tombstone", m)
	}
	apply(t, s, sync, record(120, jobs.LabelsAdded, "m", "INBOX", "STARRED"))
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "m")); !m.DeletedAt.IsZero() || !m.Stub {
		t.Errorf("after a later change of labels: %+v, want a stub", m)
	}
}

// A request does not wait until failed items are tried again.
func testASyncThatWaitsForItemsOnlyIsWoken(t *T) {
	for _, row := range []struct {
		name  string
		park  jobs.Park
		wakes bool
	}{
		{"for items", jobs.Park{For: "the retry of 1 items", Until: time.Now().Add(hour)}, true},
		{"for quota", jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true}, false},
		{"after a fault", jobs.Park{For: "backendError", Until: time.Now().Add(hour), Failure: "backendError"}, false},
	} {
		t.Run(row.name, func(t *T) {
			s, _, sync := synced(t)
			ctx := t.Context()
			must[jobs.Job](t)(s.Park(ctx, sync, row.park))
			if outcome := must[jobs.PushOutcome](t)(s.PushMail(ctx, ann, 900)); outcome != jobs.PushAsked {
				t.Fatalf("PushMail = %s", outcome)
			}
			if due := must[[]string](t)(s.DueSyncs(ctx)); (len(due) == 1) != row.wakes {
				t.Errorf("due = %q, want it to wake: %t", due, row.wakes)
			}
			job, started, err := s.StartDueSync(ctx, ann)
			if err != nil || started != row.wakes || (job.Epoch > sync.Epoch) != row.wakes || (job.State == jobs.Queued) != row.wakes {
				t.Errorf("StartDueSync = %+v, %t, %v, want it to wake: %t", job, started, err, row.wakes)
			}
		})
	}
}

func testWhatLiveSyncFetchedIsKnownToTheBackfill(t *T) {
	s, backfill, sync := synced(t, "new", "old")
	apply(t, s, sync, record(110, jobs.MessageAdded, "new", "INBOX"), record(120, jobs.MessageAdded, "old", "INBOX"))
	fetched(t, s, backfill, "old", 100, "INBOX")
	fetched(t, s, sync, "new", 110, "INBOX")
	b := must[jobs.Job](t)(s.Job(t.Context(), backfill.Job))
	if b.Progress.Known != 1 || b.Progress.Stored != 1 || b.Progress.Done() != b.Progress.Listed {
		t.Errorf("the backfill's progress = %+v, want one stored, one known", b.Progress)
	}
	apply(t, s, sync, record(110, jobs.MessageAdded, "new", "INBOX"), record(130, jobs.MessageAdded, "old", "INBOX"))
	if items := must[[]jobs.Item](t)(s.NextItems(t.Context(), sync, 0, 10)); len(items) != 1 || items[0].ID != "old" {
		t.Errorf("left for live sync: %+v, want the one that it had listed before the backfill fetched it", items)
	}
}

func testLabelsWithoutTheRecordsList(t *T) {
	s, _, sync := synced(t)
	change := func(id uint64, kind jobs.ChangeKind, changed ...string) jobs.HistoryRecord {
		return jobs.HistoryRecord{ID: id, Changes: []jobs.Change{{Kind: kind, ID: "m", Changed: changed}}}
	}
	apply(t, s, sync, change(110, jobs.LabelsAdded, "UNREAD", "INBOX"), change(120, jobs.LabelsRemoved, "UNREAD"),
		jobs.HistoryRecord{ID: 130, Changes: []jobs.Change{
			{Kind: jobs.LabelsAdded, ID: "m", Changed: []string{"STARRED"}},
			{Kind: jobs.LabelsRemoved, ID: "m", Changed: []string{"INBOX"}}}},
		change(125, jobs.LabelsAdded, "OLD"))
	if got := must[jobs.Message](t)(s.Trace(t.Context(), ann, "m")); !slices.Equal(got.Labels, []string{"STARRED"}) || got.HistoryID != 130 {
		t.Errorf("message = %+v, want label STARRED at 130", got)
	}
}

func testTheCursorMovesWithItsPage(t *T) {
	s, backfill, sync := synced(t)
	ctx := t.Context()
	cursor := func() uint64 { return must[jobs.Cursor](t)(s.Cursor(ctx, ann)).HistoryID }
	if c := cursor(); c != 100 {
		t.Errorf("cursor = %d, want 100 as pinned", c)
	}
	page := jobs.HistoryPage{Records: []jobs.HistoryRecord{record(110, jobs.MessageAdded, "m")}, Next: "p2", HistoryID: 200}
	must[jobs.Job](t)(s.ApplyHistory(ctx, sync, page))
	if c := cursor(); c != 110 {
		t.Errorf("cursor after a page with a next one = %d, want 110", c)
	}
	stale := jobs.TaskRef{Job: sync.Job, Epoch: sync.Epoch, Slice: 7}
	if _, err := s.ApplyHistory(ctx, stale, jobs.HistoryPage{HistoryID: 900}); !errors.Is(err, jobs.ErrStale) || cursor() != 110 {
		t.Errorf("a slice that does not own the job: %v, cursor %d", err, cursor())
	}
	for _, id := range []uint64{200, 90} { // Google's word may lag
		must[jobs.Job](t)(s.ApplyHistory(ctx, sync, jobs.HistoryPage{HistoryID: id}))
		if c := cursor(); c != 200 {
			t.Errorf("cursor after the last page, at %d, = %d, want 200", id, c)
		}
	}
	if err := s.SaveProfile(ctx, backfill, jobs.Profile{HistoryID: 300}); err != nil || cursor() != 200 {
		t.Errorf("a later profile: %v, cursor %d, want it left", err, cursor())
	}
}

// Until then the backfill may fetch them.
func testStubsAreFetchedOnceTheBackfillIsComplete(t *T) {
	s, backfill, sync := synced(t)
	ctx := t.Context()
	apply(t, s, sync, record(110, jobs.LabelsAdded, "m", "INBOX"), record(120, jobs.LabelsAdded, "junk", "SPAM"),
		record(130, jobs.MessageAdded, "bin", "TRASH"))
	job, done, err := s.EndSync(ctx, sync)
	if err != nil || !done || !job.Checkpoint.Listed || job.Progress.Listed != 0 {
		t.Errorf("EndSync beside the backfill = %+v, %t, %v, want nothing to fetch", job, done, err)
	}
	if c := must[jobs.Cursor](t)(s.Cursor(ctx, ann)); !c.AskedAt.IsZero() || c.SyncedAt.IsZero() {
		t.Errorf("cursor = %+v, want synced, nothing asked", c)
	}
	must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
	if c := must[jobs.Cursor](t)(s.Cursor(ctx, ann)); c.AskedAt.IsZero() {
		t.Errorf("cursor = %+v, want a sync asked for when the backfill completes", c)
	}
	job, done, err = s.EndSync(ctx, sync)
	if err != nil || !done || job.Progress.Listed != 1 {
		t.Errorf("EndSync after the backfill = %+v, %t, %v, want one to fetch", job, done, err)
	}
	apply(t, s, sync, record(140, jobs.LabelsRemoved, "junk", "INBOX"))
	job, _, _ = s.EndSync(ctx, sync)
	if items := must[[]jobs.Item](t)(s.NextItems(ctx, sync, 0, 10)); len(items) != 2 || items[1].ID != "junk" || job.Progress.Listed != 2 {
		t.Errorf("to fetch: %+v, want the message that is spam no more, too", items)
	}
	must[jobs.Job](t)(s.Commit(ctx, sync, []jobs.Result{{ID: "m", Outcome: jobs.ItemGone}}))
	if m := must[jobs.Message](t)(s.Trace(ctx, ann, "m")); m.DeletedAt.IsZero() {
		t.Errorf("the stub whose message is gone = %+v, want a tombstone", m)
	}
}
