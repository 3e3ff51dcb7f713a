package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

func TestBodiesAndKnownIDs(t *testing.T) {
	s, job := claimed(t)
	var ids []string
	var results []jobs.Result
	for i, m := range []jobs.Message{
		{Size: 10, Labels: []string{"INBOX", "Work"}}, {Size: 20, SHA256: "s", Labels: []string{"INBOX"}},
		{Size: 30, Labels: []string{"SPAM"}}, {Size: 40, SHA256: "s", Labels: []string{"TRASH", "Work"}},
	} {
		m.ID, m.SHA256, m.ParseStatus = fmt.Sprintf("%04d", i), fmt.Sprintf("%064d", i), jobs.Parsed
		ids = append(ids, m.ID)
		results = append(results, jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: &m})
	}
	must[jobs.Job](t)(s.AddListed(t.Context(), job.Ref(), jobs.Page{IDs: ids}))
	must[jobs.Job](t)(s.Commit(t.Context(), job.Ref(), results))
	for _, test := range []struct {
		label     string
		spamTrash bool
		want      sqlite.Bodies
	}{
		{"", false, sqlite.Bodies{Count: 2, Bytes: 30, Squares: 500}},
		{"", true, sqlite.Bodies{Count: 4, Bytes: 100, Squares: 3000}},
		{"Work", false, sqlite.Bodies{Count: 1, Bytes: 10, Squares: 100}},
		{"Work", true, sqlite.Bodies{Count: 2, Bytes: 50, Squares: 1700}},
		{"work", true, sqlite.Bodies{}},
	} {
		got, err := s.Bodies(t.Context(), ann, jobs.FormatRaw, test.label, test.spamTrash)
		if err != nil || got != test.want {
			t.Errorf("Bodies(%q, %v) = %+v, %v, want %+v", test.label, test.spamTrash, got, err, test.want)
		}
	}
	asked := append([]string{"0001", "none", "0003"}, make([]string, 1200)...)
	got, err := s.KnownAmong(t.Context(), ann, jobs.FormatRaw, asked)
	if diff := cmp.Diff(map[string]bool{"0001": true, "0003": true}, got); err != nil || diff != "" {
		t.Errorf("KnownAmong: %v, -want +got: %s", err, diff)
	}
}
