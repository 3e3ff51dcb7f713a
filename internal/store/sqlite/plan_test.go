package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

// A million items stay fast only while no query of the hot path walks a table.
func TestHotQueriesUseTheirIndex(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tc := range []struct {
		query string
		args  int
		want  []string
	}{
		{nextItems, 9, []string{"INDEX items_pending (job=? AND not_before=? AND seq>?)", "INDEX items_pending (job=? AND not_before>? AND not_before<?)"}},
		{nextItems, 9, []string{"SEARCH m USING PRIMARY KEY (account=? AND id=?)"}},
		{threadItems, 5, []string{"INDEX items_thread (job=? AND thread>? AND thread<?)", "SEARCH m USING PRIMARY KEY (account=? AND id=?)"}},
		{nextDue, 1, []string{"INDEX items_pending (job=?)"}},
		{settleItem, 6, []string{"PRIMARY KEY (job=? AND id=?)"}},
		{selectJob + "WHERE live ORDER BY created_at, id", 0, []string{"INDEX jobs_live"}},
		{askedSyncs, 0, []string{"SEARCH m USING INDEX mailboxes_asked (asked_at>?)", "SEARCH j USING INDEX jobs_account (account=? AND kind=?)"}},
		{crawledSyncs, 1, []string{"SCAN b USING INDEX jobs_live", "SEARCH m USING INDEX sqlite_autoindex_mailboxes_1 (account=?)"}},
		{resumedSyncs, 1, []string{"SEARCH m USING INDEX mailboxes_resume (resume_at>? AND resume_at<?)"}},
		{askedCalendars, 0, []string{"SEARCH l USING INDEX calendar_lists_asked (asked_at>?)", "SEARCH j USING INDEX jobs_account (account=? AND kind=?)"}},
		{resumedCalendars, 1, []string{"SEARCH l USING INDEX calendar_lists_resume (resume_at>? AND resume_at<?)"}},
		{newestJobs, 1, []string{"SEARCH jobs USING INTEGER PRIMARY KEY", "SCAN jobs USING COVERING INDEX jobs_newest"}},
		{selectMessage + "WHERE account = ? AND id > ? ORDER BY id LIMIT ?", 3, []string{"PRIMARY KEY (account=? AND id>?)"}},
	} {
		rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+tc.query, make([]any, tc.args)...)
		if err != nil {
			t.Fatalf("explain %s: %v", tc.query, err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
		got := strings.Join(plan, "\n")
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("plan of %s:\n%s\nwant %q", tc.query, got, want)
			}
		}
	}
}
