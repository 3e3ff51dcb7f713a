package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headroom/internal/blob"
	"headroom/internal/private"
	"headroom/jobs"
)

const hour = time.Hour

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// open makes a folder of bodies.
func open(t *testing.T, root string) *blob.Folder {
	t.Helper()
	f := blob.At(root)
	if err := f.Make(new(private.Trail)); err != nil {
		t.Fatal(err)
	}
	return f
}

// put stores raw in two steps.
func put(ctx context.Context, f *blob.Folder, raw []byte) (string, error) {
	w := f.Create(ctx)
	defer w.Close()
	for _, part := range [][]byte{raw[:len(raw)/2], raw[len(raw)/2:]} {
		if _, err := w.Write(part); err != nil {
			return "", err
		}
	}
	return w.Commit()
}

func TestBlobsComeBackByteForByte(t *testing.T) {
	root := filepath.Join(t.TempDir(), "blobs")
	s := open(t, root)
	for name, raw := range map[string][]byte{
		"empty":        nil,
		"CRLF":         []byte("Subject: x\r\n\r\nbody\r\n"),
		"bare LF, NUL": []byte("a\nb\x00\xff"),
		"a megabyte":   bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
	} {
		sum := sha256.Sum256(raw)
		want := hex.EncodeToString(sum[:])
		sha := must[string](t)(put(t.Context(), s, raw))
		if sha != want {
			t.Errorf("%s: Commit = %s, want %s", name, sha, want)
		}
		r := must[io.ReadCloser](t)(s.Open(t.Context(), sha))
		got := must[[]byte](t)(io.ReadAll(r))
		r.Close()
		if !bytes.Equal(got, raw) {
			t.Errorf("%s: %d bytes came back other than they went", name, len(got))
		}
		file := filepath.Join(root, sha[:2], sha[2:4], sha)
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExistingBlobIsNotWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "blobs"))
	sha := must[string](t)(put(t.Context(), s, []byte("once")))
	file := filepath.Join(dir, "blobs", sha[:2], sha[2:4], sha)
	old := time.Now().Add(-24 * hour).Truncate(time.Second)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	before := must[os.FileInfo](t)(os.Stat(file))
	must[string](t)(put(t.Context(), s, []byte("once")))
	info := must[os.FileInfo](t)(os.Stat(file))
	if !os.SameFile(before, info) {
		t.Error("the file was written again")
	}
	if time.Since(info.ModTime()) > hour { // or a check would take it for one without a row
		t.Errorf("the file is of %s, want as good as new", info.ModTime())
	}
	if err := os.Truncate(file, 2); err != nil {
		t.Fatal(err)
	}
	must[string](t)(put(t.Context(), s, []byte("once")))
	if got := must[[]byte](t)(os.ReadFile(file)); string(got) != "once" {
		t.Errorf("a file cut short stayed %q", got)
	}
}

func TestConcurrentPutsOfEqualContent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "blobs"))
	raw := bytes.Repeat([]byte("x"), 100_000)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := put(t.Context(), s, raw); err != nil {
				t.Errorf("Commit = %v", err)
			}
		})
	}
	wg.Wait()
	if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(dir, "blobs", "tmp"))); len(left) != 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}

func TestBlobRefusesWhatItDoesNotHave(t *testing.T) {
	s := open(t, t.TempDir())
	sum := sha256.Sum256([]byte("never stored"))
	if _, err := s.Open(t.Context(), hex.EncodeToString(sum[:])); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("an absent blob = %v, want ErrNotFound", err)
	}
	for _, sha := range []string{"", "abcd", "../../../../etc/passwd", hex.EncodeToString(sum[:])[:63] + "G"} {
		if _, err := s.Open(t.Context(), sha); err == nil || errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("Open(%q) = %v, want an error about the hash", sha, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := put(ctx, s, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit after cancel = %v", err)
	}
}

func TestMakeClearsWhatKilledProcessesLeft(t *testing.T) {
	dir := t.TempDir()
	blobs := filepath.Join(dir, "elsewhere")
	if err := os.MkdirAll(filepath.Join(blobs, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"put-old": 2 * hour, "put-new": time.Minute} {
		file := filepath.Join(blobs, "tmp", name)
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	open(t, blobs)
	left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(blobs, "tmp")))
	if len(left) != 1 || left[0].Name() != "put-new" {
		t.Errorf("left = %v, want only the file that is still being written", left)
	}
}

// TestAWriterThatIsClosedLeavesNothing: of a small body, which was in memory, and of a
// large one, which was in a file.
func TestAWriterThatIsClosedLeavesNothing(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	for _, size := range []int{10, 1 << 20} {
		w := f.Create(t.Context())
		if _, err := w.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close after %d bytes = %v", size, err)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMakeNamesWhatIsWrongWithItsFolder, and leaves none that it has made.
func TestMakeNamesWhatIsWrongWithItsFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[string]string{file: "is a file; choose a folder", filepath.Join(file, "x"): "choose another folder"} {
		var made private.Trail
		err := blob.At(root).Make(&made)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Make %s = %v, want %q", root, err, want)
		}
		made.Undo()
	}
	if left := must[[]os.DirEntry](t)(os.ReadDir(dir)); len(left) != 1 {
		t.Errorf("Make has left %v", left)
	}
}

// TestStraysAreOldFilesWithoutARow: a young one may be about to get its row, and one
// that is committed again while it is removed stays.
func TestStraysAreOldFilesWithoutARow(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	age := func(sum string) {
		t.Helper()
		old := time.Now().Add(-2 * hour)
		if err := os.Chtimes(filepath.Join(root, sum[:2], sum[2:4], sum), old, old); err != nil {
			t.Fatal(err)
		}
	}
	known, stray, again, young := must[string](t)(put(t.Context(), f, []byte("known"))), must[string](t)(put(t.Context(), f, []byte("stray"))),
		must[string](t)(put(t.Context(), f, []byte("again"))), must[string](t)(put(t.Context(), f, []byte("young")))
	age(known)
	age(stray)
	age(again)
	found := must[[]blob.File](t)(f.Strays(t.Context(), func(sum string) bool { return sum == known }))
	if len(found) != 2 || found[0].Bytes != 5 {
		t.Errorf("strays = %+v, want the two old ones", found)
	}
	must[string](t)(put(t.Context(), f, []byte("again")))
	if n := must[int](t)(f.Remove(t.Context(), found)); n != 1 {
		t.Errorf("%d files removed, want 1", n)
	}
	for sum, there := range map[string]bool{known: true, stray: false, again: true, young: true} {
		if _, err := f.Check(t.Context(), sum); (err == nil) != there {
			t.Errorf("Check(%s) = %v, want it there: %t", sum, err, there)
		}
	}
	if err := f.SetAside(known); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), known); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("a body that was set aside = %v, want ErrNotFound", err)
	}
	if _, err := os.Stat(filepath.Join(root, "damaged", known)); err != nil {
		t.Errorf("a body that was set aside: %v", err)
	}
}

func BenchmarkCommit(b *testing.B) {
	f := blob.At(b.TempDir())
	if err := f.Make(new(private.Trail)); err != nil {
		b.Fatal(err)
	}
	raw := bytes.Repeat([]byte("0123456789abcdef"), 20_000/16)
	for i := 0; b.Loop(); i++ {
		copy(raw, strconv.Itoa(i))
		if _, err := put(b.Context(), f, raw); err != nil {
			b.Fatal(err)
		}
	}
}
