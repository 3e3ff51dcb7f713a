package jobs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"headroom/jobs"
)

func TestWhatGoogleGaveIsLaidOverTheRow(t *testing.T) {
	deleted := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	raw := func(history uint64, sum string) jobs.Message {
		return jobs.Message{HistoryID: history, SHA256: sum, Labels: []string{sum}, Subject: sum}
	}
	for _, tc := range []struct {
		name     string
		row, got jobs.Message
		want     jobs.Message
	}{
		{"a body where there is none", jobs.UnknownMessage("", ""), raw(5, "new"), raw(5, "new")},
		{"a newer body", raw(4, "old"), raw(5, "new"), raw(5, "new")},
		{"an older body", raw(6, "old"), raw(5, "new"), raw(6, "old")},
		{"an older body for a newer row without one", jobs.Message{HistoryID: 6, Labels: []string{"live"}}, raw(5, "new"),
			jobs.Message{HistoryID: 6, SHA256: "new", Subject: "new", Labels: []string{"live"}}},
		{"an older body for a tombstone", jobs.Message{HistoryID: 6, SHA256: "old", DeletedAt: deleted}, raw(5, "new"),
			jobs.Message{HistoryID: 6, SHA256: "new", Subject: "new", Labels: []string{"new"}}},
		{"metadata beside a body", raw(4, "old"), jobs.Message{HistoryID: 5, Subject: "new"}, raw(4, "old")},
		{"a full body beside a raw one", raw(4, "old"), jobs.Message{HistoryID: 4, FullSHA256: "full", Labels: []string{"old"}, Subject: "new"},
			jobs.Message{HistoryID: 4, SHA256: "old", FullSHA256: "full", Labels: []string{"old"}, Subject: "old"}},
	} {
		m := tc.row
		m.Take(tc.got)
		if m.HistoryID != tc.want.HistoryID || m.SHA256 != tc.want.SHA256 || m.FullSHA256 != tc.want.FullSHA256 || m.Subject != tc.want.Subject ||
			!slices.Equal(m.Labels, tc.want.Labels) || m.Stub || m.BodyWanted || !m.DeletedAt.IsZero() {
			t.Errorf("%s: %+v, want %+v", tc.name, m, tc.want)
		}
	}
}

func TestABodyIsWantedOfStubsOnly(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for labels, want := range map[string]bool{"INBOX": true, "SPAM": false, "INBOX,TRASH": false} {
		m := jobs.UnknownMessage("ann", "m")
		added, ok := m.Change(7, []jobs.Change{{Kind: jobs.MessageAdded, Labels: strings.Split(labels, ",")}}, false, now)
		if !ok || added != want || m.BodyWanted != want {
			t.Errorf("added with %s: %+v, want its body %t", labels, m, want)
		}
		if _, ok := m.Change(7, []jobs.Change{{Kind: jobs.MessageDeleted}}, false, now); ok {
			t.Errorf("a record is applied twice: %+v", m)
		}
		if m.Change(8, []jobs.Change{{Kind: jobs.MessageDeleted}}, false, now); m.BodyWanted || !m.DeletedAt.Equal(now) {
			t.Errorf("deleted: %+v, want a tombstone", m)
		}
	}
	stored := jobs.Message{HistoryID: 5, SHA256: "a"}
	if stored.Change(7, []jobs.Change{{Kind: jobs.LabelsAdded, Changed: []string{"A"}}}, true, now); stored.BodyWanted {
		t.Errorf("the body of a stored message is wanted: %+v", stored)
	}
}
