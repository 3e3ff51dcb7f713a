package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// TestSortingNeedsNoFiles: what SQLite sorts is in memory, whatever TMPDIR is.
func TestSortingNeedsNoFiles(t *testing.T) {
	for _, name := range []string{"SQLITE_TMPDIR", "TMPDIR"} {
		t.Setenv(name, tmpfs(t, "64k"))
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(tmpfs(t, "32m"), "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sortMuch := func(q sqlite.Connection) error {
		_, err := q.QueryRow(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
			SELECT COUNT(*) FROM (SELECT hex(randomblob(200)) AS x FROM n ORDER BY x LIMIT 20000 OFFSET 1)`)
		return err
	}
	for name, q := range sqlite.Connections(s) {
		if err := sortMuch(q); err != nil {
			t.Errorf("sort by the %s: %v", name, err)
		}
	}
}

// TestTemporaryDataIsInMemory is the same where no folder can be made small.
func TestTemporaryDataIsInMemory(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, q := range sqlite.Connections(s) {
		if mode, err := q.QueryRow(t.Context(), "PRAGMA temp_store"); err != nil || mode != 2 {
			t.Errorf("the %s has temp_store %d, %v, want 2 (memory)", name, mode, err)
		}
	}
}

// TestAFullDatabaseNamesItsFolder: a write that finds no room says where, leaves
// nothing, and succeeds once there is room.
func TestAFullDatabaseNamesItsFolder(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	writer := sqlite.Connections(s)["writer"]
	if _, err := writer.QueryRow(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as many as there are
		t.Fatal(err)
	}
	added := 0
	add := func() error {
		err := s.AddAccount(t.Context(), jobs.Account{Email: fmt.Sprintf("ann%d@example.com", added), Project: "main"})
		if err == nil {
			added++
		}
		return err
	}
	for err = add(); err == nil && added < 1000; {
		err = add()
	}
	if !errors.Is(err, jobs.ErrNoRoom) || !strings.Contains(err.Error(), "the disk is full: make room in "+dir) {
		t.Errorf("a write without room = %v, want the folder %s", err, dir)
	}
	if all, err := s.Accounts(t.Context()); err != nil || len(all) != added {
		t.Errorf("%d accounts, %v, want the %d that were added", len(all), err, added)
	}
	if _, err := writer.QueryRow(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := add(); err != nil {
		t.Errorf("a write with room = %v", err)
	}
}

// tmpfs mounts a folder of a size, and skips the test where it may not.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 || exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).Run() != nil {
		t.Skip("only root may mount a small disk")
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}
