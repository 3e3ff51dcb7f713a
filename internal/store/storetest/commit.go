package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var commitTests = []test{
	{"the first profile pins the history id", testProfilePinsTheFirstHistoryID},
	{"a listing keeps its order and ignores repeated ids", testListingKeepsOrderAndIgnoresRepeats},
	{"a commit counts every outcome", testCommitCountsEveryOutcome},
	{"an item keeps its first outcome", testOutcomesAreFinal},
	{"deferred items are pending again when they are due", testDeferredItemsComeBackWhenDue},
	{"progress ends a row of refusals and failures", testProgressEndsARowOfRefusals},
	{"an older message never replaces a newer one", testAnOlderMessageNeverReplacesANewerOne},
	{"a stored id is another one each time", testStoredIDVaries},
	{"a commit is all or nothing", testCommitIsAllOrNothing},
	{"a message in format full comes with its attachments and label names", testAttachmentsAndLabels},
	{"messages and failures are listed in pages", testListingsPage},
}

func testProfilePinsTheFirstHistoryID(t *T) {
	s, job := claimed(t)
	for _, p := range []jobs.Profile{{Messages: 10, HistoryID: 1<<63 + 5}, {Messages: 12, HistoryID: 99}} {
		if err := s.SaveProfile(t.Context(), job.Ref(), p); err != nil {
			t.Fatal(err)
		}
	}
	job = must[jobs.Job](t)(s.Job(t.Context(), job.ID))
	if job.Checkpoint.HistoryID != 1<<63+5 || job.Progress.Expected != 12 {
		t.Errorf("history %d, expected %d; want the first history id and the last count", job.Checkpoint.HistoryID, job.Progress.Expected)
	}
}

func testListingKeepsOrderAndIgnoresRepeats(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	job = must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"d", "c", "d"}, Next: "p2"}))
	if job.Checkpoint.PageToken != "p2" || job.Checkpoint.Listed || job.Progress.Listed != 2 {
		t.Errorf("after page 1: %+v %+v", job.Checkpoint, job.Progress)
	}
	must[jobs.Job](t)(s.RestartListing(ctx, ref, time.Time{}))
	if job = must[jobs.Job](t)(s.Job(ctx, job.ID)); job.Checkpoint.PageToken != "" || job.Progress.Listed != 2 {
		t.Errorf("after the restart: %+v %+v", job.Checkpoint, job.Progress)
	}
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"e", "d", "c"}, Next: "p2"}))
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{Next: "p3"}))
	job = must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"b", "a"}}))
	if job.Checkpoint.PageToken != "" || !job.Checkpoint.Listed || job.Progress.Listed != 5 {
		t.Errorf("after the last page: %+v %+v", job.Checkpoint, job.Progress)
	}
	got := must[[]jobs.Item](t)(s.NextItems(ctx, ref, 1, 3))
	if diff := cmp.Diff([]jobs.Item{{Seq: 2, ID: "c"}, {Seq: 3, ID: "e"}, {Seq: 4, ID: "b"}}, got); diff != "" {
		t.Errorf("NextItems after 1, at most 3 (-want +got):\n%s", diff)
	}
}

func testCommitCountsEveryOutcome(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"e", "d", "c", "b", "a"}}))
	odd := stored("d")
	odd.Message.ParseStatus, odd.Message.ParseError, odd.Message.Size = jobs.ParseFailed, "no header\x00", 23
	odd.Message.Subject, odd.Message.Labels, odd.Message.InternalDate = "\xff\x00x", nil, time.UnixMilli(0).UTC()
	fault := &jobs.Failure{Phase: "fetch", Class: jobs.ClassTransient, Reason: "backendError"}
	job = must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{
		stored("e"), odd,
		{ID: "c", Outcome: jobs.ItemGone},
		{ID: "b", Outcome: jobs.ItemFailed, Failure: fault},
		{ID: "a", Outcome: jobs.ItemDeferred, Failure: fault, RetryAt: time.Now().Add(hour)},
	}))
	want := jobs.Progress{Listed: 5, Stored: 2, Gone: 1, Failed: 1, ParseFailed: 1, Bytes: 123}
	if diff := cmp.Diff(want, job.Progress); diff != "" {
		t.Errorf("Progress (-want +got):\n%s", diff)
	}
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); !cmp.Equal(got, job) {
		t.Errorf("Job = %+v, want what Commit returned: %+v", got, job)
	}
	if diff := cmp.Diff(*message("e", 7), must[jobs.Message](t)(s.Message(ctx, "Ann@example.com", "e"))); diff != "" {
		t.Errorf("the stored message (-want +got):\n%s", diff)
	}
	wantOdd := *odd.Message
	wantOdd.ParseError, wantOdd.Subject, wantOdd.Labels = "no header", "\uFFFDx", []string{}
	if diff := cmp.Diff(wantOdd, must[jobs.Message](t)(s.Message(ctx, ann, "d"))); diff != "" {
		t.Errorf("the odd message (-want +got):\n%s", diff)
	}
	if _, err := s.Message(ctx, ann, "c"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("the gone message = %v, want ErrNotFound", err)
	}
}

func testOutcomesAreFinal(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"a"}}))
	once := must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{stored("a"), stored("a")}))
	twice := must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{{ID: "a", Outcome: jobs.ItemGone}}))
	if once.Progress.Stored != 1 || twice.Progress != once.Progress {
		t.Errorf("progress = %+v, then %+v; want one stored in both", once.Progress, twice.Progress)
	}
}

func testDeferredItemsComeBackWhenDue(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	if due := must[time.Time](t)(s.NextDue(ctx, ref)); !due.IsZero() {
		t.Errorf("NextDue of nothing = %s, want zero", due)
	}
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"c", "b", "a"}}))
	if due := must[time.Time](t)(s.NextDue(ctx, ref)); time.Until(due).Abs() > time.Minute {
		t.Errorf("NextDue of fresh items = %s, want now", due)
	}
	fault := func(reason string) *jobs.Failure {
		return &jobs.Failure{Phase: "fetch", Class: jobs.ClassTransient, Reason: reason}
	}
	later := time.Now().Add(hour)
	must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{
		{ID: "c", Outcome: jobs.ItemDeferred, Failure: fault("one"), RetryAt: time.Now().Add(-time.Second)},
		{ID: "b", Outcome: jobs.ItemDeferred, Failure: fault("one"), RetryAt: later},
	}))
	got := must[[]jobs.Item](t)(s.NextItems(ctx, ref, 0, 10))
	if diff := cmp.Diff([]jobs.Item{{Seq: 1, ID: "c", Attempts: 1}, {Seq: 3, ID: "a"}}, got); diff != "" {
		t.Errorf("NextItems: the due one and the fresh one (-want +got):\n%s", diff)
	}
	must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{stored("c"), stored("a")}))
	if got := must[[]jobs.Item](t)(s.NextItems(ctx, ref, 0, 10)); len(got) != 0 {
		t.Errorf("NextItems = %+v, want none until b is due", got)
	}
	if due := must[time.Time](t)(s.NextDue(ctx, ref)); due.Sub(later).Abs() > 5*time.Second {
		t.Errorf("NextDue = %s, want %s", due, later)
	}
	if list := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{GivenUp: true}, "", 0)); len(list) != 0 {
		t.Errorf("an item that will be tried again is listed as a failure: %+v", list)
	}

	first := time.Now()
	must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{{ID: "b", Outcome: jobs.ItemFailed, Failure: fault("two\x00")}}))
	list := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{GivenUp: true}, "", 0))
	if len(list) != 1 {
		t.Fatalf("Failures = %+v, want b", list)
	}
	f := list[0]
	if f.FirstAt.After(first) || f.LastAt.Before(f.FirstAt) {
		t.Errorf("first %s, last %s", f.FirstAt, f.LastAt)
	}
	f.FirstAt, f.LastAt = time.Time{}, time.Time{}
	want := jobs.Failure{Job: job.ID, ID: "b", Phase: "fetch", Class: jobs.ClassTransient, Reason: "two", Attempts: 2, GivenUp: true}
	if f != want {
		t.Errorf("failure = %+v, want %+v", f, want)
	}
}

func testProgressEndsARowOfRefusals(t *T) {
	for _, tc := range []struct {
		name  string
		make  func(id string) jobs.Result
		reset bool
	}{
		{"stored", stored, true},
		{"gone", func(id string) jobs.Result { return jobs.Result{ID: id, Outcome: jobs.ItemGone} }, true},
		{"failed", func(id string) jobs.Result {
			return jobs.Result{ID: id, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{}}
		}, true},
		{"deferred", func(id string) jobs.Result {
			return jobs.Result{ID: id, Outcome: jobs.ItemDeferred, Failure: &jobs.Failure{}}
		}, false},
	} {
		t.Run(tc.name, func(t *T) {
			s, job := claimed(t)
			ctx := t.Context()
			must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"a"}}))
			for _, p := range []jobs.Park{{Refused: true}, {Failure: "x"}} {
				must[jobs.Job](t)(s.Park(ctx, job.Ref(), p))
				job = must[jobs.Job](t)(s.Claim(ctx, job.Ref(), hour))
			}
			job = must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{tc.make("a")}))
			if got := job.Refusals == 0 && job.Failures == 0; got != tc.reset {
				t.Errorf("refusals %d, failures %d", job.Refusals, job.Failures)
			}
		})
	}
}

// Another job of the account stored the same messages first.
func testAnOlderMessageNeverReplacesANewerOne(t *T) {
	s, job := claimed(t)
	ctx, other := t.Context(), claimedFor(t, s, jobs.Filter{Labels: []string{"LIVE"}})
	page := jobs.Page{IDs: []string{"newer", "same", "older"}}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), page))
	must[jobs.Job](t)(s.AddListed(ctx, other.Ref(), page))
	var before []jobs.Result
	for id, history := range map[string]uint64{"newer": 120, "same": 100, "older": 90} {
		m := message(id, history)
		m.Labels, m.SHA256 = []string{"LIVE"}, strings.Repeat("cd", 32)
		before = append(before, jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: m})
	}
	must[jobs.Job](t)(s.Commit(ctx, other.Ref(), before))
	var results []jobs.Result
	for _, id := range []string{"newer", "same", "older"} {
		results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: message(id, 100)})
	}
	job = must[jobs.Job](t)(s.Commit(ctx, job.Ref(), results))
	if job.Progress.Stored != 3 {
		t.Errorf("stored = %d, want 3", job.Progress.Stored)
	}
	for id, want := range map[string]struct {
		history uint64
		label   string
	}{"newer": {120, "LIVE"}, "same": {100, "INBOX"}, "older": {100, "INBOX"}} {
		got := must[jobs.Message](t)(s.Message(ctx, ann, id))
		if got.HistoryID != want.history || got.Labels[0] != want.label {
			t.Errorf("message whose stored row is %s: history %d, labels %q; want %d, %s", id, got.HistoryID, got.Labels, want.history, want.label)
		}
	}
}

func testStoredIDVaries(t *T) {
	s, job := claimed(t)
	ctx := t.Context()
	if id, err := s.StoredID(ctx, ann); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("StoredID of nothing = %q, %v, want ErrNotFound", id, err)
	}
	want := []string{"1a", "5a", "9a", "ca"}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: want}))
	var results []jobs.Result
	for _, id := range want {
		results = append(results, stored(id))
	}
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), results))
	seen := map[string]bool{}
	for range 64 {
		seen[must[string](t)(s.StoredID(ctx, "Ann@example.com"))] = true
	}
	if len(seen) < 2 {
		t.Errorf("StoredID always returns %v, want one of %q", seen, want)
	}
	for id := range seen {
		if !slices.Contains(want, id) {
			t.Errorf("StoredID returns %q, which is not stored", id)
		}
	}
}

func testCommitIsAllOrNothing(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	before := must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"a", "b"}}))
	bad := stored("b")
	bad.Message.SHA256 = "../../etc/passwd"
	for name, res := range map[string]jobs.Result{
		"an id that was not listed": stored("x"),
		"no message":                {ID: "b", Outcome: jobs.ItemStored},
		"another id's message":      {ID: "b", Outcome: jobs.ItemStored, Message: message("c", 1)},
		"no hash":                   bad,
		"no failure":                {ID: "b", Outcome: jobs.ItemFailed},
		"no outcome":                {ID: "b"},
	} {
		if _, err := s.Commit(ctx, ref, []jobs.Result{stored("a"), res}); err == nil {
			t.Errorf("%s: Commit succeeded", name)
		}
	}
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); !cmp.Equal(got, before) {
		t.Errorf("a failed Commit changed the job: %+v, was %+v", got, before)
	}
	if n := len(must[[]jobs.Message](t)(s.Messages(ctx, ann, "", 0))); n != 0 {
		t.Errorf("a failed Commit stored %d messages", n)
	}
	if todo := must[[]jobs.Item](t)(s.NextItems(ctx, ref, 0, 10)); len(todo) != 2 {
		t.Errorf("a failed Commit settled items: %+v left", todo)
	}
}

func testListingsPage(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: ids(50)}))
	var results []jobs.Result
	for i, id := range ids(50) {
		res := stored(id)
		if i%2 == 0 {
			res = jobs.Result{ID: id, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{Phase: "fetch", Reason: fmt.Sprint(i)}}
		}
		results = append(results, res)
	}
	must[jobs.Job](t)(s.Commit(ctx, ref, results))

	var messages, failures []string
	for after := ""; ; after = messages[len(messages)-1] {
		page := must[[]jobs.Message](t)(s.Messages(ctx, strings.ToUpper(ann), after, 7))
		for _, m := range page {
			messages = append(messages, m.ID)
		}
		if len(page) < 7 {
			break
		}
	}
	for after := ""; ; after = failures[len(failures)-1] {
		page := must[[]jobs.Failure](t)(s.Failures(ctx, job.ID, jobs.FailureFilter{}, after, 7))
		for _, f := range page {
			failures = append(failures, f.ID)
		}
		if len(page) < 7 {
			break
		}
	}
	if len(messages) != 25 || len(failures) != 25 || messages[0] != "18c00000001" || failures[24] != "18c00000032" {
		t.Errorf("paged through %d messages from %s and %d failures to %s", len(messages), messages[0], len(failures), failures[24])
	}
}

func testAttachmentsAndLabels(t *T) {
	s, job := claimed(t)
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"a"}}))
	sum := strings.Repeat("ab", 32)
	want := []jobs.Attachment{{Part: "0.2", Filename: "a.txt", MimeType: "text/plain", Size: 3, SHA256: sum}, {Part: "1", Filename: "b.txt", SHA256: sum}}
	for _, a := range []jobs.Attachment{want[1], {Part: "0.2", Filename: "before", SHA256: sum}, want[0]} {
		if err := s.SaveAttachment(ctx, ref, "a", a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveAttachment(ctx, ref, "a", jobs.Attachment{Part: "2", SHA256: "../x"}); err == nil {
		t.Error("SaveAttachment accepts what is no hash")
	}
	if got := must[[]jobs.Attachment](t)(s.Attachments(ctx, "Ann@example.com", "a")); !cmp.Equal(want, got) {
		t.Errorf("Attachments = %+v before the message is stored, want %+v", got, want)
	}
	for _, labels := range [][]jobs.Label{{{ID: "OLD", Name: "old"}}, {{ID: "INBOX", Name: "Inbox"}}} {
		if err := s.SaveLabels(ctx, ref, labels); err != nil {
			t.Fatal(err)
		}
	}
	m := message("a", 7)
	m.SHA256, m.FullSHA256, m.FullSize = "", sum, 9
	must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{{ID: "a", Outcome: jobs.ItemStored, Message: m}}))
	got := must[jobs.Message](t)(s.Message(ctx, ann, "a"))
	if !cmp.Equal(want, got.Attachments) || !cmp.Equal([]string{"Inbox", ""}, got.LabelNames) || got.FullSHA256 != sum || got.SHA256 != "" {
		t.Errorf("Message = %+v, want it with its attachments and the names of its labels", got)
	}
}
