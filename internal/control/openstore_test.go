package control

import (
	"errors"
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

	"headroom/config"
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

func storeAt(path string) config.Config { return config.Config{Store: config.Store{Path: path}} }

func use(t *testing.T, path string, log *zap.Logger) {
	t.Helper()
	cfg := storeAt(path)
	s, err := MakeStore(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := Blobs(cfg).Create(t.Context())
	if _, err := io.WriteString(w, path); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); err != nil {
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
	s, err := openStore(t.Context(), storeAt(path), zap.New(core))
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
	s, err := MakeStore(t.Context(), storeAt(filepath.Join(dir, "headroom.db")), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if open := opened(t, dir); len(open) != 1 || !strings.HasSuffix(open[0], " "+dir) {
		t.Errorf("others may use %q, want the folder only", open)
	}
}

// TestARefusedStoreLeavesNothing: neither its folder nor that of the bodies.
func TestARefusedStoreLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config.Store
		want string
	}{
		"no path":                   {config.Store{}, "no path"},
		"the path is a folder":      {config.Store{Path: dir, Blobs: filepath.Join(dir, "b")}, "is a folder; name a file in it"},
		"the folder is a file":      {config.Store{Path: filepath.Join(file, "x", "h.db"), Blobs: filepath.Join(dir, "c")}, "choose another path"},
		"the blob folder is a file": {config.Store{Path: filepath.Join(dir, "new", "h.db"), Blobs: file}, "is a file; choose a folder"},
		"no blob folder":            {config.Store{Path: filepath.Join(dir, "a", "b", "h.db"), Blobs: filepath.Join(file, "x")}, "choose another folder"},
		"no database":               {config.Store{Path: file, Blobs: filepath.Join(dir, "d", "e")}, "is not a SQLite database"},
	} {
		s, err := MakeStore(t.Context(), config.Config{Store: tc.Store}, zap.NewNop())
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, tc.want)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

// TestAnExistingStoreIsOpenedWithoutItsBlobs: a command that only reads makes no folder.
func TestAnExistingStoreIsOpenedWithoutItsBlobs(t *testing.T) {
	cfg := storeAt(filepath.Join(t.TempDir(), "headroom.db"))
	s, err := MakeStore(t.Context(), cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg.Store.Blobs = filepath.Join(t.TempDir(), "elsewhere")
	again, err := openStore(t.Context(), cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(cfg.Store.Blobs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob folder was made (%v)", err)
	}
}
