package export_test

import (
	"os"
	"path/filepath"
	"testing"

	"headroom/internal/export"
)

// TestExportedListsAreForTheirOwnerOnly holds a new file to it and one that is
// there.
func TestExportedListsAreForTheirOwnerOnly(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there.csv")
	if err := os.WriteFile(there, []byte("a long list"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{there, filepath.Join(t.TempDir(), "new.csv"), "/dev/null"} {
		f, err := export.CreatePrivate(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("a"); err != nil {
			t.Error(err)
		}
		f.Close()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() && (info.Mode() != 0o600 || info.Size() != 1) {
			t.Errorf("%s: %s, %d bytes, want -rw------- and 1", path, info.Mode(), info.Size())
		}
	}
}
