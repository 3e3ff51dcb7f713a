package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"headroom/jobs"
)

// TestDraftsSavedBesideABackfill: each save of a draft takes a message away and
// puts another in its place, so that some ids are gone between list and get, some
// were never listed, and some were stored before they went.
func TestDraftsSavedBesideABackfill(t *testing.T) {
	t.Parallel()
	const messages, drafts = 150, 20
	r := newSite(t, messages)
	box := r.fake.Mailbox(ann)
	ids := make([]string, drafts) // of the present versions
	for i := range ids {
		ids[i] = box.Add(mail(fmt.Sprint("draft ", i)), "DRAFT")
	}
	var mu sync.Mutex
	gets, saves, over := 0, 0, false
	save := func(i int) {
		saves++
		var there bool
		if ids[i], there = box.EditDraft(ids[i], mail(fmt.Sprintf("draft %d, save %d", i, saves))); !there {
			t.Errorf("draft %d is not in the mailbox", i)
		}
	}
	r.gateway(func(req *http.Request) {
		if !strings.Contains(req.URL.Path, "/messages/") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if gets++; gets == 1 { // the newest are asked for first; these come last of the drafts
			for i := range drafts / 2 {
				save(i)
			}
		}
		if gets%8 == 0 && !over {
			save(gets / 8 % drafts)
		}
	})
	a := r.runBackfilled()
	mu.Lock()
	over = true
	mu.Unlock()
	if j := r.sync(a.Store()); j.State != jobs.Completed {
		t.Fatalf("sync = %+v", j)
	}
	j, err := a.Store().Job(t.Context(), jobs.BackfillID(ann))
	if err != nil || j.State != jobs.Completed || j.Progress.Gone < drafts/2-7 || j.Progress.Failed != 0 {
		t.Errorf("backfill = %+v, %v, want it completed, with drafts gone before they were fetched", j, err)
	}
	if n := len(box.Messages()); n != messages+drafts || saves < drafts {
		t.Fatalf("the mailbox has %d messages after %d saves, want %d after more", n, saves, messages+drafts)
	}
	r.equal(a.Store())
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice", n)
	}
}
