package gmail_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"headroom/internal/lab/fakegoogle/gmail"
)

func TestSplitMbox(t *testing.T) {
	const sep = "From ann@example.com  Mon Mar  2 10:00:00 2026\n"
	for _, test := range []struct {
		name, mbox string
		want       []string
	}{
		{"empty", "", nil},
		{"one", sep + "A: b\n\nbody\n\n", []string{"A: b\n\nbody\n\n"}},
		{"two", sep + "A: b\n\nbody\n\n" + sep + "C: d\n", []string{"A: b\n\nbody\n\n", "C: d\n"}},
		{"line ends", "From a b at example.com  Tue Dec 31 23:59:59 2002\r\nA: b\r\n\r\nx\r\n", []string{"A: b\r\n\r\nx\r\n"}},
		{"one space", "From MAILER-DAEMON Thu Sep 18 17:54:04 2008\nx\n", []string{"x\n"}},
		{"body lines", sep + "\nFrom here to there\nFrom Mon Mar\n>From x\n", []string{"\nFrom here to there\nFrom Mon Mar\n>From x\n"}},
		{"indented", sep + " " + sep, []string{" " + sep}},
		{"no separator", "From Russia with love\nA: b\n", []string{"From Russia with love\nA: b\n"}},
		{"before the first", "lost\n" + sep + "A: b\n", []string{"lost\n", "A: b\n"}},
		{"blank before the first", "\n\n" + sep + "A: b\n", []string{"A: b\n"}},
		{"nothing after", "x\n" + sep[:len(sep)-1], []string{"x\n", ""}},
		{"empty between", sep + sep + "x\n", []string{"", "x\n"}},
	} {
		var got []string
		for _, m := range gmail.SplitMbox([]byte(test.mbox)) {
			got = append(got, string(m))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestReadMailboxOfAFolder(t *testing.T) {
	dir := t.TempDir()
	const sep = "From ann@example.com  Mon Mar  2 10:00:00 2026\n"
	for name, content := range map[string]string{
		"b.mbox": sep + "1\n" + sep + "2\n", "a.eml": sep + "whole\n", "c/d.EML": "", "e.mbox.txt": "3\n",
		"MANIFEST.json": "{}", ".hidden": "x", "README.md": "x",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := gmail.ReadMailbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]byte{[]byte(sep + "whole\n"), []byte("1\n"), []byte("2\n"), {}, []byte("3\n")}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("ReadMailbox = %q, want %q", got, want)
	}
	if _, err := gmail.ReadMailbox(t.TempDir()); err == nil {
		t.Error("an empty folder was read without an error")
	}
}
