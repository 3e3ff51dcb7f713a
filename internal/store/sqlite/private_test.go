package sqlite_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// opened is everything below a folder that others than its owner may do anything
// with.
func opened(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			paths = append(paths, info.Mode().String()+" "+path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func use(t *testing.T, path string, log *zap.Logger) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.PutBlob(t.Context(), func(w io.Writer) error { _, err := io.WriteString(w, path); return err }); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAccount(t.Context(), jobs.Account{Email: "ann@example.com", Project: "main"}); err != nil {
		t.Fatal(err)
	}
	if open := opened(t, filepath.Dir(path)); len(open) > 0 {
		t.Errorf("while the store is open, others may use %s", strings.Join(open, "\n"))
	}
}

// TestAStoreIsForItsOwnerOnly: database, WAL, shared memory, blobs and folders.
func TestAStoreIsForItsOwnerOnly(t *testing.T) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0))
	use(t, filepath.Join(root, "a", "b", "headroom.db"), zap.NewNop())
	if open := opened(t, filepath.Join(root, "a")); len(open) > 0 {
		t.Errorf("others may use %s", strings.Join(open, "\n"))
	}
}

// TestAnOpenStoreIsClosedToOthers: what an earlier version has left is mended, and
// said.
func TestAnOpenStoreIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "headroom.db")
	use(t, path, zap.NewNop())
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, map[bool]fs.FileMode{true: 0o755, false: 0o644}[d.IsDir()])
	})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Log: zap.New(core), Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if open := opened(t, dir); len(open) > 0 {
		t.Errorf("others may use %s", strings.Join(open, "\n"))
	}
	var told []string
	for _, e := range logged.All() {
		told = append(told, e.ContextMap()["path"].(string))
	}
	if want := []string{path, dir, filepath.Join(dir, "blobs")}; !slices.Equal(told, want) {
		t.Errorf("the log tells of %q, want %q", told, want)
	}
}

// TestAFolderWithOtherThingsIsLeftOpen: it may be a home or /tmp.
func TestAFolderWithOtherThingsIsLeftOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if open := opened(t, dir); len(open) != 1 || !strings.HasSuffix(open[0], " "+dir) {
		t.Errorf("others may use %q, want the folder only", open)
	}
}
