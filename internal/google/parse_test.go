package google

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseReadsSubjects(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"plain", "Subject: Hello\r\n\r\nbody", "Hello"},
		{"folded", "Subject: one\r\n two\r\n\r\n", "one two"},
		{"encoded words of two charsets", "Subject: =?iso-8859-1?q?caf=E9?= =?utf-8?b?w6Q=?=\r\n\r\n", "caféä"},
		{"unknown charset stays as it came", "Subject: =?x-unknown?q?abc?=\r\n\r\n", "=?x-unknown?q?abc?="},
		{"8-bit bytes become marks", "Subject: a\xe4b\r\n\r\n", "a\uFFFDb"},
		{"NUL becomes a space", "Subject: a\x00b\r\n\r\n", "a b"},
		{"absent", "To: ann@example.com\r\n\r\nbody", ""},
		{"bare line feeds, no body, no end", "To: ann@example.com\nSubject: x", "x"},
		{"a line that is no field", "To: ann@example.com\r\n: odd\r\nSubject: x\r\n\r\n", "x"},
		{"an mbox line first", "From ann@example.com Mon Jan  1 00:00:00 2001\nSubject: x\n\n", "x"},
		{"a byte order mark first", "\xef\xbb\xbfSubject: x\r\n\r\n", "x"},
		{"a content type that means nothing", "Content-Type: /;;=\r\nSubject: x\r\n\r\n", "x"},
		{"a multipart that never closes", "Content-Type: multipart/mixed; boundary=b\r\nSubject: x\r\n\r\n--b\r\n", "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Parse([]byte(tt.raw)); got != tt.want || err != nil {
				t.Errorf("Parse = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestParseSaysWhatNoReaderUnderstands(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"empty", "", "empty"},
		{"white space", " \r\n\t\r\n", "empty"},
		{"no header", "\r\nbody", "no header"},
		{"text that is no field", "// not a message", "initial line"},
		{"a continuation of nothing", " Aug 22 15:03:38 2008\r\nSubject: x\r\n\r\n", "initial line"},
		{"only an mbox line", "From ann@example.com Mon Jan  1 00:00:00 2001\n", "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.raw))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse = %q, %v, want an error that says %q", got, err, tt.want)
			}
			if err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\r\n")) {
				t.Errorf("the error is not one short line: %q", err)
			}
		})
	}
}

// hostile messages are cheap to send and dear to read for a naive parser.
func hostile() map[string]string {
	var deep strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&deep, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	return map[string]string{
		"15,000 unclosed multiparts": deep.String(),
		"an endless line":            "Subject: " + strings.Repeat("x", 1<<20),
		"an endless coded subject":   "Subject: " + strings.Repeat("=?utf-8?q?a?= ", 90_000),
		"half-opened coded words":    "Subject: " + strings.Repeat("=?=?utf-8?q?=", 90_000),
		"endless folding":            "A: b" + strings.Repeat("\r\n c", 200_000),
		"endless fields":             strings.Repeat("A: b\r\n", 90_000),
		"endless odd fields":         "A: b\r\n" + strings.Repeat("\xff : b\r\n", 90_000),
		"endless text without colon": "A: b\r\n" + strings.Repeat("A b\r\n", 90_000),
	}
}

func TestParseIsNotSlowedByHostileMessages(t *testing.T) {
	for name, raw := range hostile() {
		start := time.Now()
		subject, err := Parse([]byte(raw))
		if took := time.Since(start); took > 3*time.Second { // tens of milliseconds, but for a busy machine
			t.Errorf("%s took %s", name, took)
		}
		if err != nil || len(subject) > maxSubject {
			t.Errorf("%s: subject of %d bytes, %v", name, len(subject), err)
		}
	}
}

// testdata is the folder of test data that is no part of the module.
func testdata(t *testing.T, dir string) string {
	t.Helper()
	root := os.Getenv("HEADROOM_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(root, dir)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no test data at %s; set HEADROOM_TESTDATA to its folder", dir)
	}
	return dir
}

func TestParseOfNastyMail(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata(t, "mail/nasty"), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var failed []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		subject, err := Parse(raw)
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s took %s", filepath.Base(file), took)
		}
		if err != nil {
			failed = append(failed, filepath.Base(file))
		}
		if !utf8.ValidString(subject) || strings.ContainsAny(subject, "\r\n\x00") {
			t.Errorf("%s: subject %q is not one line of UTF-8", filepath.Base(file), subject)
		}
	}
	t.Logf("%d of %d cannot be read: %q", len(failed), len(files), failed)
	if len(failed) == 0 || len(failed) > len(files)/20 {
		t.Errorf("%d of %d nasty messages cannot be read, want some and few", len(failed), len(files))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("Subject: =?utf-8?b?w6Q=?=\r\nTo: x\r\n\r\nbody"))
	f.Add([]byte("From x\n: \n\xef\xbb\xbf =?"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		subject, _ := Parse(raw)
		if !utf8.ValidString(subject) || len(subject) > maxSubject || strings.ContainsAny(subject, "\r\n") {
			t.Errorf("subject %q is not one short line of UTF-8", subject)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw := []byte("To: ann@example.com\r\nSubject: =?utf-8?b?w6Q=?=\r\nDate: Mon, 2 Feb 2026 10:00:00 +0000\r\n\r\n" + strings.Repeat("text\r\n", 1000))
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
