package blob

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNewBlobFoldersAreSynced: a blob is only there after a crash if the names of the
// folders above it are, up to the root, also of those that somebody else has made and
// not synced.
func TestNewBlobFoldersAreSynced(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := At(root)
	var synced []string
	b.sync = func(dir string) error { synced = append(synced, dir); return nil }
	put := func(text string) string {
		t.Helper()
		synced = nil
		w := b.Create(t.Context())
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		sha, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(b.path(sha))
	}
	dir := put("a")
	if want := []string{root, filepath.Dir(dir), dir}; !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
	for _, path := range []string{dir} { // the same folder again
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if put("a"); !slices.Equal(synced, []string{dir}) {
		t.Errorf("synced %q, want the blob's folder alone", synced)
	}
	b.synced.Clear() // another process
	if err := os.Remove(b.path("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")); err != nil {
		t.Fatal(err)
	}
	if put("a"); !slices.Equal(synced, []string{root, filepath.Dir(dir), dir}) {
		t.Errorf("synced %q, want all folders", synced)
	}
}
