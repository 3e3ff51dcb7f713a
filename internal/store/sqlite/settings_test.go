package sqlite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/store/sqlite"
)

// note makes a change that adds a text to a list of texts.
func note(text string) func(sqlite.Setting, uint32) (*sqlite.SettingChange, error) {
	return func(now sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
		var texts []string
		if now.Revision > 0 {
			if err := json.Unmarshal(now.Live, &texts); err != nil {
				return nil, err
			}
		}
		live, err := json.Marshal(append(texts, text))
		return &sqlite.SettingChange{Change: fmt.Sprintf("%s %d", text, next), Live: live}, err
	}
}

func TestSettingsAreAdded(t *testing.T) {
	s, ctx := fresh(t), t.Context()
	if all := must[[]sqlite.Setting](t)(s.Settings(ctx)); len(all) != 0 {
		t.Errorf("a new store has settings: %+v", all)
	}
	change := func(project, text string, after map[string]uint32, apis ...string) []sqlite.Setting {
		t.Helper()
		return must[[]sqlite.Setting](t)(s.ChangeSettings(ctx, project, apis, "ann@desk", after, note(text)))
	}
	change("main", "a", nil, "gmail", "calendar")
	written := change("main", "b", nil, "gmail")
	change("other", "c", map[string]uint32{"gmail": 7, "calendar": 0}, "gmail", "calendar")

	if len(written) != 1 || written[0].Revision != 2 || time.Since(written[0].At).Abs() > time.Minute {
		t.Errorf("written = %+v, want revision 2, now", written)
	}
	type row struct {
		Project, API string
		Revision     uint32
		Change, Live string
	}
	rows := func(all []sqlite.Setting) (rows []row) {
		for _, r := range all {
			if r.Who != "ann@desk" {
				t.Errorf("%+v was not changed by ann@desk", r)
			}
			rows = append(rows, row{r.Project, r.API, r.Revision, r.Change, string(r.Live)})
		}
		return rows
	}
	want := []row{
		{"main", "calendar", 1, "a 1", `["a"]`},
		{"main", "gmail", 2, "b 2", `["a","b"]`},
		{"other", "calendar", 1, "c 1", `["c"]`},
		{"other", "gmail", 8, "c 8", `["c"]`},
	}
	if diff := cmp.Diff(want, rows(must[[]sqlite.Setting](t)(s.Settings(ctx)))); diff != "" {
		t.Errorf("what holds (-want +got):\n%s", diff)
	}
	history := must[[]sqlite.Setting](t)(s.SettingHistory(ctx, "main"))
	if len(history) != 3 || !slices.IsSortedFunc(history, func(a, b sqlite.Setting) int { return a.At.Compare(b.At) }) {
		t.Errorf("history = %+v, want three rows in order", history)
	}
	if got := rows(history); !slices.Contains(got, row{"main", "gmail", 1, "a 1", `["a"]`}) {
		t.Errorf("history = %+v, want the first row as well", got)
	}
}

func TestAChangeOfSettingsIsWholeOrNothing(t *testing.T) {
	s, ctx := fresh(t), t.Context()
	broken := errors.New("broken")
	_, err := s.ChangeSettings(ctx, "main", []string{"gmail", "calendar"}, "ann", nil, func(now sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
		if now.API == "calendar" {
			return nil, broken
		}
		return note("a")(now, next)
	})
	if !errors.Is(err, broken) {
		t.Errorf("ChangeSettings = %v, want the change's error", err)
	}
	none := must[[]sqlite.Setting](t)(s.ChangeSettings(ctx, "main", []string{"gmail"}, "ann", nil,
		func(sqlite.Setting, uint32) (*sqlite.SettingChange, error) { return nil, nil }))
	if all := must[[]sqlite.Setting](t)(s.Settings(ctx)); len(all)+len(none) != 0 {
		t.Errorf("settings = %+v and %+v, want none", all, none)
	}
}

// Changes at once from several handles, as of several processes: none is lost, and
// no revision is given twice.
func TestConcurrentChangesOfSettings(t *testing.T) {
	const handles, each = 4, 10
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	var group sync.WaitGroup
	for i := range handles {
		other := open(t, path)
		group.Go(func() {
			for j := range each {
				if _, err := other.ChangeSettings(t.Context(), "main", []string{"gmail"}, "ann", nil, note(fmt.Sprint(i, j))); err != nil {
					t.Errorf("ChangeSettings = %v", err)
				}
			}
		})
	}
	group.Wait()
	history := must[[]sqlite.Setting](t)(s.SettingHistory(t.Context(), "main"))
	revisions := map[uint32]bool{}
	for _, r := range history {
		revisions[r.Revision] = true
	}
	var texts []string
	if err := json.Unmarshal(must[[]sqlite.Setting](t)(s.Settings(t.Context()))[0].Live, &texts); err != nil {
		t.Fatal(err)
	}
	if len(history) != handles*each || len(revisions) != handles*each || len(texts) != handles*each {
		t.Errorf("%d rows with %d revisions, and %d changes in the last; want %d of each", len(history), len(revisions), len(texts), handles*each)
	}
}
