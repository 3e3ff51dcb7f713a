package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var listingTests = []test{
	{"a listing stops at the number that the filter asks for", testAListingIsCutAtTheWantedNumber},
	{"a message outside the filter is fetched once", testWhatIsOutsideTheFilterIsLookedAtOnce},
	{"the expected number follows the filter", testTheProfilePromisesWhatTheFilterMayLetThrough},
	{"messages with metadata only are pending again for their bodies", testNotedMessagesHaveARowAndComeAgainForTheirBodies},
	{"the items of a thread are those that nobody tried", testThreadItems},
}

// claimedFor returns a store in which ann's backfill with a filter is claimed.
func claimedFor(t *T, s Store, filter jobs.Filter) jobs.Job {
	t.Helper()
	job, _, err := s.StartBackfill(t.Context(), ann, filter)
	if err != nil {
		t.Fatal(err)
	}
	return must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour))
}

// pending lists the ids of the items that are due, and how many of them have their metadata.
func pending(t *T, s Store, job jobs.Job) (ids []string, noted int) {
	t.Helper()
	for _, item := range must[[]jobs.Item](t)(s.NextItems(t.Context(), job.Ref(), 0, 100)) {
		ids = append(ids, item.ID)
		if item.Noted {
			noted++
		}
	}
	return ids, noted
}

func testAListingIsCutAtTheWantedNumber(t *T) {
	s, _ := claimed(t)
	job := claimedFor(t, s, jobs.Filter{First: 3})
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"f", "e"}, Next: "p2"}))
	job = must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"e", "d", "c", "b"}, Next: "p3"}))
	if c := job.Checkpoint; !c.Listed || !c.Cut || c.PageToken != "p2" || job.Progress.Listed != 3 || job.ListsOn() {
		t.Errorf("cut within page 2: %+v, want 3 listed and the same page next", job)
	}
	if got, _ := pending(t, s, job); !slices.Equal(got, []string{"f", "e", "d"}) {
		t.Errorf("pending %q, want the newest three", got)
	}
	job = must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{{ID: "f", Outcome: jobs.ItemGone}, {ID: "e", Outcome: jobs.ItemSkipped}}))
	if !job.ListsOn() || job.Room() != 2 {
		t.Errorf("one gone and one skipped: %+v, want room for 2", job)
	}
	job = must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"e", "d", "c", "b"}, Next: ""}))
	if c := job.Checkpoint; !c.Listed || c.Cut || job.Progress.Listed != 5 {
		t.Errorf("the page was the last, and fits: %+v", job)
	}
	if got, _ := pending(t, s, job); !slices.Equal(got, []string{"d", "c", "b"}) {
		t.Errorf("pending %q, want the newest three that count", got)
	}
}

func testWhatIsOutsideTheFilterIsLookedAtOnce(t *T) {
	s, whole := claimed(t)
	ctx := t.Context()
	must[jobs.Job](t)(s.AddListed(ctx, whole.Ref(), jobs.Page{IDs: []string{"d", "c"}}))
	at := message("d", 7).InternalDate
	late := stored("d")
	late.Message.InternalDate = at.Add(time.Hour)
	must[jobs.Job](t)(s.Commit(ctx, whole.Ref(), []jobs.Result{late, stored("c")}))

	filter := jobs.Filter{Before: at.Add(time.Minute)}
	job := claimedFor(t, s, filter)
	job = must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"d", "c", "b", "a"}}))
	if p := job.Progress; p.Skipped != 1 || p.Known != 1 {
		t.Errorf("%+v, want the stored message that is too new skipped and the other known", p)
	}
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{{ID: "b", Outcome: jobs.ItemSkipped}, stored("a")}))
	must[jobs.Job](t)(s.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.Completed}))

	again := claimedFor(t, s, filter)
	if again.Epoch == job.Epoch || again.Progress != (jobs.Progress{}) {
		t.Errorf("started again: %+v, want a new run", again)
	}
	again = must[jobs.Job](t)(s.AddListed(ctx, again.Ref(), jobs.Page{IDs: []string{"d", "c", "b", "a"}}))
	if p := again.Progress; p.Listed != 4 || p.Skipped != 2 || p.Known != 2 || p.Done() != 4 {
		t.Errorf("%+v, want nothing left to look at", p)
	}
	again = must[jobs.Job](t)(s.AddListed(ctx, again.Ref(), jobs.Page{IDs: []string{"b", "a"}}))
	if again.Progress.Skipped != 2 || again.Progress.Listed != 4 {
		t.Errorf("listed twice: %+v, want each counted once", again.Progress)
	}
}

func testTheProfilePromisesWhatTheFilterMayLetThrough(t *T) {
	for _, tt := range []struct {
		filter jobs.Filter
		want   int64
	}{{jobs.Filter{}, 1000}, {jobs.Filter{First: 30}, 30}, {jobs.Filter{First: 3000}, 1000}, {jobs.Filter{Query: "x"}, 0}} {
		s, ref := claimed(t)
		if !tt.filter.Whole() {
			ref = claimedFor(t, s, tt.filter)
		}
		if err := s.SaveProfile(t.Context(), ref.Ref(), jobs.Profile{Messages: 1000, HistoryID: 5}); err != nil {
			t.Fatal(err)
		}
		if got := must[jobs.Job](t)(s.Job(t.Context(), ref.ID)).Progress.Expected; got != tt.want {
			t.Errorf("%+v: %d expected, want %d", tt.filter, got, tt.want)
		}
	}
}

func testNotedMessagesHaveARowAndComeAgainForTheirBodies(t *T) {
	s, _ := claimed(t)
	job := claimedFor(t, s, jobs.Filter{Format: jobs.FormatMetadataFirst})
	ctx, ref := t.Context(), job.Ref()
	must[jobs.Job](t)(s.AddListed(ctx, ref, jobs.Page{IDs: []string{"b", "a"}}))
	noted := func(id string) jobs.Result {
		m := message(id, 7)
		m.SHA256, m.ParseStatus = "", jobs.ParseLater
		return jobs.Result{ID: id, Outcome: jobs.ItemNoted, Message: m}
	}
	if more := must[bool](t)(s.NextPass(ctx, ref)); more {
		t.Error("there is a next pass before any metadata is stored")
	}
	job = must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{noted("b"), noted("a")}))
	if p := job.Progress; p.Noted != 2 || p.Stored != 0 || p.Done() != 0 {
		t.Errorf("%+v, want metadata of two, and none done", p)
	}
	m := must[jobs.Message](t)(s.Message(ctx, ann, "a"))
	if m.Subject == "" || m.SHA256 != "" || m.ParseStatus != jobs.ParseLater {
		t.Errorf("the row is %+v, want metadata without a body", m)
	}
	if ids, _ := pending(t, s, job); len(ids) != 0 {
		t.Errorf("pending %q, want none before the next pass", ids)
	}
	if more := must[bool](t)(s.NextPass(ctx, ref)); !more {
		t.Error("there is no next pass")
	}
	if ids, noted := pending(t, s, job); fmt.Sprint(ids) != "[b a]" || noted != 2 {
		t.Errorf("pending %q, %d with metadata, want both", ids, noted)
	}
	job = must[jobs.Job](t)(s.Commit(ctx, ref, []jobs.Result{stored("b"), stored("a")}))
	if p := job.Progress; p.Stored != 2 || p.Done() != 2 {
		t.Errorf("%+v, want each stored once", p)
	}
	// A message that has its body is known to every later job.
	other := claimedFor(t, s, jobs.Filter{Format: jobs.FormatMetadataFirst, Query: "x"})
	other = must[jobs.Job](t)(s.AddListed(ctx, other.Ref(), jobs.Page{IDs: []string{"a"}}))
	if other.Progress.Known != 1 {
		t.Errorf("%+v, want the stored message known", other.Progress)
	}
	if m := must[jobs.Message](t)(s.Message(ctx, ann, "a")); m.SHA256 == "" {
		t.Error("the body was lost")
	}
}

func testThreadItems(t *T) {
	s, _ := claimed(t)
	ctx, job := t.Context(), claimedFor(t, s, jobs.Filter{Format: jobs.FormatFull})
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"a", "b", "c", "d"}, Threads: []string{"t1", "t2", "t1", "t1"}}))
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), []jobs.Result{{ID: "c", Outcome: jobs.ItemDeferred, Failure: &jobs.Failure{}}}))
	var got []string
	for _, i := range must[[]jobs.Item](t)(s.ThreadItems(ctx, job.Ref(), "t1", 10)) {
		got = append(got, i.ID)
	}
	if diff := cmp.Diff([]string{"a", "d"}, got); diff != "" {
		t.Errorf("items of t1 (-want +got):\n%s", diff)
	}
	if one := must[[]jobs.Item](t)(s.ThreadItems(ctx, job.Ref(), "t1", 1)); len(one) != 1 {
		t.Errorf("%d items, want 1", len(one))
	}
	if none := must[[]jobs.Item](t)(s.ThreadItems(ctx, job.Ref(), "", 10)); len(none) != 0 {
		t.Errorf("items of no thread = %+v", none)
	}
}
