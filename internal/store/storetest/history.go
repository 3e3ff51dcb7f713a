package storetest

import (
	"errors"
	"fmt"
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
	{"a sync that starts again keeps its failures", testASyncStartsAgainWithItsFailures},
	{"a sync needs a cursor", testASyncNeedsACursor},
	{"a sync is due when it was asked for", testWhatIsDue},
	{"a sync that was stopped starts only when somebody asks for it", testASyncThatRestsIsStartedOnlyWhenAskedFor},
	{"the history is read every hour while a backfill runs", testTheHistoryIsReadEveryHourOfABackfill},
	{"a snapshot is merged only when it is complete", testASnapshotIsMergedOnlyWhenComplete},
	{"a short snapshot deletes nothing", testAShortSnapshotDeletesNothing},
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

func testASyncStartsAgainWithItsFailures(t *T) {
	s, _, sync := synced(t)
	ctx := t.Context()
	apply(t, s, sync, record(110, jobs.MessageAdded, "a", "INBOX"), record(120, jobs.MessageAdded, "b", "INBOX"))
	fetched(t, s, sync, "a", 110, "INBOX")
	fault := &jobs.Failure{Phase: "fetch", Class: jobs.ClassTransient, Reason: "backendError"}
	must[jobs.Job](t)(s.Commit(ctx, sync, []jobs.Result{{ID: "b", Outcome: jobs.ItemFailed, Failure: fault}}))
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	job, started, err := s.StartSync(ctx, ann)
	if err != nil || started || job.Epoch != sync.Epoch {
		t.Fatalf("StartSync while one runs = %+v, %t, %v", job, started, err)
	}
	job = must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: jobs.CompletedWithFailures}))
	if !job.State.Live() || job.Slice != 1 {
		t.Fatalf("the end of a sync while another is asked for = %+v, want its next slice", job)
	}
	job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
	if c := must[jobs.Cursor](t)(s.BeginSync(ctx, job.Ref())); c.HistoryID != 120 {
		t.Errorf("BeginSync = %+v, want to go on at 120", c)
	}
	if c := must[jobs.Cursor](t)(s.Cursor(ctx, ann)); !c.AskedAt.IsZero() {
		t.Errorf("cursor = %+v, want what was asked for answered", c)
	}
	if _, _, err := s.EndSync(ctx, job.Ref()); err != nil {
		t.Fatal(err)
	}
	job = must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures}))
	if job.State != jobs.CompletedWithFailures {
		t.Fatalf("Finish = %+v", job)
	}
	again := startSync(t, s)
	if again.Epoch != job.Epoch+1 || again.Checkpoint.Listed || again.Progress.Stored != 1 || again.Progress.Failed != 1 {
		t.Errorf("the next sync = %+v, want the counters to go on", again)
	}
	if f := must[[]jobs.Failure](t)(s.Failures(ctx, again.ID, jobs.FailureFilter{}, "", 10)); len(f) != 1 || f[0].ID != "b" {
		t.Errorf("failures = %+v, want b, still", f)
	}
}

func testASyncNeedsACursor(t *T) {
	s, job := claimed(t)
	if _, _, err := s.StartSync(t.Context(), ann); !errors.Is(err, jobs.ErrNoCursor) {
		t.Errorf("StartSync before the profile = %v, want ErrNoCursor", err)
	}
	if _, _, err := s.StartSync(t.Context(), "bob@example.com"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("StartSync of nobody = %v, want ErrNotFound", err)
	}
	part, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{Query: "from:bob"})
	if err != nil {
		t.Fatal(err)
	}
	part = must[jobs.Job](t)(s.Claim(t.Context(), part.Ref(), hour))
	for _, row := range []struct {
		ref  jobs.TaskRef
		want error
	}{{part.Ref(), jobs.ErrNoCursor}, {job.Ref(), nil}} {
		if err := s.SaveProfile(t.Context(), row.ref, jobs.Profile{HistoryID: 7}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Cursor(t.Context(), ann); !errors.Is(err, row.want) {
			t.Errorf("Cursor after the profile of %s: %v, want %v", row.ref.Job, err, row.want)
		}
	}
}

func testWhatIsDue(t *T) {
	s, backfill, sync := synced(t)
	ctx := t.Context()
	due := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, must[[]string](t)(s.DueSyncs(ctx))); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", what, diff)
		}
	}
	ask := func() jobs.SlotResult {
		t.Helper()
		if _, err := s.RunSchedule(ctx, jobs.ScheduleMail, []string{ann}, time.Now()); err != nil {
			t.Fatal(err)
		}
		return must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(ctx)).Slots[0].Result
	}
	if err := s.InitSlots(ctx, []jobs.Slot{{Schedule: jobs.ScheduleMail, Account: ann, Slot: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	ask()
	due("while one runs")
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: jobs.Completed}))
	due("after it, as another was asked for meanwhile", ann)
	job := startSync(t, s)
	if _, _, err := s.EndSync(ctx, job.Ref()); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Completed}))
	due("when none was asked for")
	must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
	due("after the backfill", ann)

	job = startSync(t, s)
	if _, err := s.ExpireCursor(ctx, job.Ref(), jobs.HistoryTooOld); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Blocked, Error: "no grant"}))
	if result := ask(); result != jobs.SlotNothing {
		t.Errorf("asked while the account must act: %s", result)
	}
	due("while the account must act")
	job = startSync(t, s)
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Failed, Error: "too often"}))
	ask()
	due("after it failed", ann)
}

// Neither the end of a backfill nor an earlier request starts it.
func testASyncThatRestsIsStartedOnlyWhenAskedFor(t *T) {
	for _, state := range []jobs.State{jobs.Cancelled, jobs.Blocked, jobs.Paused} {
		t.Run(string(state), func(t *T) {
			s, backfill, sync := synced(t)
			ctx := t.Context()
			if _, started, err := s.StartSync(ctx, ann); err != nil || started {
				t.Fatalf("StartSync while one runs: %t, %v", started, err)
			}
			switch state {
			case jobs.Paused:
				if _, _, err := s.Pause(ctx, sync.Job); err != nil {
					t.Fatal(err)
				}
				must[jobs.Job](t)(s.EndSlice(ctx, sync))
			default:
				must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: state, Error: "no grant"}))
			}
			must[jobs.Job](t)(s.Finish(ctx, backfill, jobs.Finish{State: jobs.Completed}))
			if due := must[[]string](t)(s.DueSyncs(ctx)); len(due) != 0 {
				t.Errorf("due after the end of a backfill: %q, want none", due)
			}
			if state == jobs.Paused {
				return // only resumed
			}
			if job, started, err := s.StartDueSync(ctx, ann); err != nil || started || job.State != state {
				t.Errorf("StartDueSync by one who saw it due before = %s, %t, %v", job.State, started, err)
			}
			if job, started, err := s.StartSync(ctx, ann); err != nil || !started || job.State != jobs.Queued {
				t.Errorf("StartSync = %s, %t, %v, want it started", job.State, started, err)
			}
		})
	}
}

// A backfill may take longer than Google keeps the history that its messages need.
func testTheHistoryIsReadEveryHourOfABackfill(t *T) {
	s, job := claimed(t)
	ctx, backfill := t.Context(), job.Ref()
	if err := s.SaveProfile(ctx, backfill, jobs.Profile{HistoryID: 100}); err != nil {
		t.Fatal(err)
	}
	due := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, must[[]string](t)(s.DueSyncs(ctx))); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", what, diff)
		}
	}
	end := func(ref jobs.TaskRef, state jobs.State) {
		t.Helper()
		must[jobs.Job](t)(s.Finish(ctx, ref, jobs.Finish{State: state, Error: "no grant"}))
	}
	t.pass(59 * time.Minute)
	due("within the hour")
	t.pass(2 * time.Minute)
	due("after an hour", ann)
	sync := startSync(t, s).Ref()
	due("while it is read")
	readWhole(t, s, sync)
	if _, err := s.ExpireCursor(ctx, sync, jobs.HistoryTooOld); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	end(sync, jobs.Completed)
	due("right after it was read")
	t.pass(61 * time.Minute)
	due("when it is too old again on the same day")
	sync = startSync(t, s).Ref()
	if _, err := s.BeginSnapshot(ctx, sync, jobs.Profile{HistoryID: 200}); err != nil {
		t.Fatal(err)
	}
	if c := must[jobs.Cursor](t)(s.MergeSnapshot(ctx, sync)); !c.Snapshot.Gap {
		t.Fatalf("cursor = %+v, want a gap before the snapshot", c)
	}
	end(sync, jobs.Failed)
	t.pass(61 * time.Minute)
	due("when the history is read beside the reading of the whole mailbox", ann)
	end(startSync(t, s).Ref(), jobs.Blocked)
	t.pass(61 * time.Minute)
	due("while the account must act")
	sync = startSync(t, s).Ref()
	readWhole(t, s, sync)
	if _, _, err := s.EndSync(ctx, sync); err != nil {
		t.Fatal(err)
	}
	end(sync, jobs.Completed)
	t.pass(61 * time.Minute)
	due("once it has", ann)
	end(backfill, jobs.Cancelled)
	due("when the backfill has ended")
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
