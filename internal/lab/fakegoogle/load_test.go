package fakegoogle_test

import (
	"os"
	"path/filepath"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
)

func TestGeneratedMailboxes(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	for _, user := range []string{ann, bob} {
		if err := server.Load(user, "generate:50"); err != nil {
			t.Fatal(err)
		}
	}
	a, b := server.Mailbox(ann).Messages(), server.Mailbox(bob).Messages()
	if len(a) != 50 || len(b) != 50 || a[0].SHA256 == b[0].SHA256 || a[0].ID == b[0].ID {
		t.Errorf("%d and %d messages, first %v and %v; want 50 different ones each", len(a), len(b), a[0], b[0])
	}
	list, err := client(t, url, ann).Messages.List("me").Do()
	if err != nil || len(list.Messages) != 50 {
		t.Fatalf("listing = %v, %v; want all 50 without asking for spam", list, err)
	}
	m, err := client(t, url, ann).Messages.Get("me", list.Messages[0].Id).Do()
	if err != nil || m.Snippet == "" || m.Payload == nil {
		t.Errorf("newest = %+v, %v", m, err)
	}
}

func TestAFailedLoadMakesNoMailbox(t *testing.T) {
	dir := t.TempDir()
	server, err := fakegoogle.New(fakegoogle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]string{{ann, filepath.Join(dir, "none")}, {ann, "generate:x"}, {ann, "generate:-1"}, {"ann", dir}, {"@example.com", dir}} {
		if err := server.Load(bad[0], bad[1]); err == nil {
			t.Errorf("Load(%q, %q) = nil", bad[0], bad[1])
		}
	}
	if server.Mailbox(ann) != nil {
		t.Error("a failed Load made a mailbox")
	}
}

// testdata returns a folder of the shared test data, or skips.
func testdata(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("HEADROOM_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test data at %s: set HEADROOM_TESTDATA to the folder that holds %s", path, name)
	}
	return path
}

func TestOrdinaryMailHas1022Messages(t *testing.T) {
	messages, err := gmail.ReadMailbox(testdata(t, "mail/ordinary"))
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1022 {
		t.Errorf("%d messages, want 1022", len(messages))
	}
}

func TestNastyMailIsServedInEveryFormat(t *testing.T) {
	dir := testdata(t, "mail/nasty")
	server, url := start(t, fakegoogle.Options{UserLimit: 1e9, ProjectLimit: 1e9})
	if err := server.Load(ann, dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have[hash(b)]++
	}
	users := client(t, url, ann)
	messages := server.Mailbox(ann).Messages()
	for _, m := range messages {
		for _, format := range []string{"full", "metadata", "minimal"} {
			if got, err := users.Messages.Get("me", m.ID).Format(format).Do(); err != nil || got.SizeEstimate != int64(m.Size) {
				t.Errorf("%s as %s: %v", m.SHA256, format, err)
			}
		}
		got, err := users.Messages.Get("me", m.ID).Format("raw").Do()
		if err != nil {
			t.Errorf("raw %s: %v", m.SHA256, err)
			continue
		}
		have[hash(raw(t, got))]--
	}
	for sum, n := range have {
		if n != 0 {
			t.Errorf("%s: %d files not served, want 0", sum, n)
		}
	}
	if len(messages) != len(files) {
		t.Errorf("%d messages of %d files", len(messages), len(files))
	}
}
