package google

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

func TestHistoryIsReadInOrder(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{})
	g := newTestGoogle(t, Options{Endpoint: url})
	m := open(t, g)
	kept, gone := box.Add([]byte("Subject: a\r\n\r\n"), "INBOX"), box.Add([]byte("Subject: b\r\n\r\n"), "INBOX")
	start := box.HistoryID()
	box.Relabel(kept, []string{"STARRED"}, []string{"INBOX"})
	box.Delete(gone)
	added := box.Add([]byte("Subject: c\r\n\r\n"), "SPAM")

	page, err := m.History(t.Context(), start, "")
	if err != nil || page.Next != "" || page.HistoryID != box.HistoryID() {
		t.Fatalf("History = %+v, %v, want all, up to %d", page, err, box.HistoryID())
	}
	var changes []jobs.Change
	last := start
	for _, record := range page.Records {
		if record.ID <= last {
			t.Errorf("record %d comes after %d", record.ID, last)
		}
		last = record.ID
		changes = append(changes, record.Changes...)
	}
	want := []jobs.Change{
		{Kind: jobs.LabelsAdded, ID: kept, ThreadID: kept, Labels: []string{"INBOX", "STARRED"}, Changed: []string{"STARRED"}},
		{Kind: jobs.LabelsRemoved, ID: kept, ThreadID: kept, Labels: []string{"STARRED"}, Changed: []string{"INBOX"}},
		{Kind: jobs.MessageDeleted, ID: gone, ThreadID: gone, Labels: []string{"INBOX"}},
		{Kind: jobs.MessageAdded, ID: added, ThreadID: added, Labels: []string{"SPAM"}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if page, err := m.History(t.Context(), box.HistoryID(), ""); err != nil || len(page.Records) != 0 || page.HistoryID != box.HistoryID() {
		t.Errorf("History of nothing new = %+v, %v", page, err)
	}

	box.ExpireHistory()
	if _, err := m.History(t.Context(), start, ""); !isCursor(err) {
		t.Errorf("History that is too old = %v, want the cursor to be at fault", err)
	}
	if _, err := m.History(t.Context(), box.HistoryID(), "no-token"); !isCursor(err) {
		t.Errorf("a dead page token = %v, want the cursor to be at fault", err)
	}
}

func isCursor(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassCursor
}

func TestSpamAndTrashAreListedWithTheRest(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{})
	m := open(t, newTestGoogle(t, Options{Endpoint: url}))
	var all, tagged []string
	for _, labels := range [][]string{{"INBOX", "Label_1"}, {"SPAM"}, {"TRASH", "Label_1"}} {
		id := box.Add([]byte("Subject: x\r\n\r\n"), labels...)
		all = append(all, id)
		if slices.Contains(labels, "Label_1") {
			tagged = append(tagged, id)
		}
	}
	for label, want := range map[string][]string{"": all, "Label_1": tagged, "CHAT": nil} {
		page, err := m.ListAll(t.Context(), label, "")
		slices.Sort(page.IDs)
		if err != nil || page.Next != "" || !slices.Equal(page.IDs, want) {
			t.Errorf("ListAll with label %q = %+v, %v, want %q", label, page, err, want)
		}
	}
	labels, err := m.Labels(t.Context())
	if err != nil || !slices.ContainsFunc(labels, func(l jobs.Label) bool { return l.ID == "Label_1" && l.Name != "" }) ||
		!slices.Contains(labels, jobs.Label{ID: "INBOX", Name: "INBOX"}) {
		t.Errorf("Labels = %v, %v", labels, err)
	}
	if _, err := m.ListAll(t.Context(), "", "no-token"); !isCursor(err) {
		t.Errorf("a dead page token = %v, want the cursor to be at fault", err)
	}
}

// TestAnEmptyAnswerIsNoHistory: it must not pass for a mailbox in which nothing
// has changed.
func TestAnEmptyAnswerIsNoHistory(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	_, err := open(t, newTestGoogle(t, Options{Endpoint: server.URL})).History(t.Context(), 7, "")
	call, ok := errors.AsType[*jobs.CallError](err)
	if !ok || call.Class != jobs.ClassTransient || call.Reason != "noHistoryID" {
		t.Errorf("History = %v, want a passing fault", err)
	}
}
