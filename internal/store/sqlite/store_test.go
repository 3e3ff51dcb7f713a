package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(child(path, os.Getenv(childDoes), os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

const (
	ann  = "ann@example.com"
	hour = time.Hour
)

// open opens a store on path, and closes it with the test.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	return openWith(t, sqlite.Options{Path: path, Watched: jobs.WatchKinds})
}

func openWith(t testing.TB, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	opts.Log = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	s, err := sqlite.Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

func fresh(t testing.TB) *sqlite.Store {
	t.Helper()
	return open(t, emptyDatabase(t))
}

// emptyDatabase is the path of a database without a row.
func emptyDatabase(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headroom.db")
	if err := os.WriteFile(path, migrated(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// migrated is the file of a store without a row. It is made once: the migrations
// take longer than most tests.
var migrated = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "headroom-store-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "headroom.db")
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Log: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	if err := s.Close(); err != nil { // and writes everything into the one file
		panic(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return file
})

// must stops the test on an error.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// claimed returns a store in which ann's backfill is claimed.
func claimed(t testing.TB) (*sqlite.Store, jobs.Job) {
	t.Helper()
	s := fresh(t)
	return s, start(t, s)
}

func start(t testing.TB, s *sqlite.Store) jobs.Job {
	t.Helper()
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil && !errors.Is(err, jobs.ErrExists) {
		t.Fatal(err)
	}
	job, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour))
}

// ids are n message ids, newest first as Gmail lists them.
func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("18c%08x", n-i)
	}
	return all
}

func message(id string, history uint64) *jobs.Message {
	return &jobs.Message{
		Account: ann, ID: id, ThreadID: "t" + id, HistoryID: history,
		InternalDate: time.UnixMilli(1767225600123).UTC(), Labels: []string{"INBOX", "UNREAD"},
		Size: 100, SHA256: strings.Repeat("ab", 32), Subject: "Grüße", ParseStatus: jobs.Parsed,
	}
}

func stored(id string) jobs.Result {
	return jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: message(id, 7)}
}

func TestOpenMakesADatabaseAndReopens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b", "c #%41")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "headroom.db")
	s := open(t, path)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
	job := start(t, s)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the database at its path = %v, %v, want one for its owner only", info, err)
	}
	got := must[jobs.Job](t)(open(t, path).Job(t.Context(), job.ID))
	if diff := cmp.Diff(job, got); diff != "" {
		t.Errorf("a second handle sees another job (-want +got):\n%s", diff)
	}
}

func TestOpenNamesWhatIsWrongWithAPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	open(t, newer)
	raw := must[*sql.DB](t)(sql.Open("sqlite", newer))
	defer raw.Close()
	must[sql.Result](t)(raw.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"))

	for _, tc := range []struct {
		name string
		opts sqlite.Options
		want string
	}{
		{"no path", sqlite.Options{}, "no path"},
		{"the path is a folder", sqlite.Options{Path: dir}, "is a folder; name a file in it"},
		{"the folder is a file", sqlite.Options{Path: filepath.Join(file, "x", "h.db")}, "check the owner of the file and its folder"},
		{"the file is no database", sqlite.Options{Path: file}, "is not a SQLite database; choose another path"},
		{"a newer schema", sqlite.Options{Path: newer}, "the store was written by a newer version of headroom"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), tc.opts)
			if err == nil {
				s.Close()
				t.Fatal("Open succeeded")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Open = %q, want one line with %q", err, tc.want)
			}
		})
	}
}

func TestAnExistingStoreIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	if s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Existing: true}); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			s.Close()
		}
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open has made a store (%v)", err)
	}
}

func TestManyOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
			if err != nil {
				t.Errorf("Open = %v", err)
				return
			}
			defer s.Close()
			if _, err := s.Accounts(context.Background()); err != nil {
				t.Errorf("Accounts = %v", err)
			}
		})
	}
	wg.Wait()
}
