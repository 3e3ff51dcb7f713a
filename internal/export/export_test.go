package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/blob"
	"headroom/internal/export"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/private"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const ann = "ann@example.com"

// received is when Gmail received the first message; each other a minute later.
var received = time.Date(2026, 1, 9, 7, 8, 9, 0, time.UTC)

// mailbox is a store that holds raw messages by id, and the options to export it.
type mailbox struct {
	export.Options
	store *sqlite.Store
	blobs string
}

// stored stores messages as a backfill does.
func stored(t *testing.T, raw map[string]string) mailbox {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddAccount(ctx, jobs.Account{Email: ann, Project: "main"}); err != nil {
		t.Fatal(err)
	}
	job, _, err := s.StartBackfill(ctx, ann, jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = s.Claim(ctx, job.Ref(), time.Hour); err != nil {
		t.Fatal(err)
	}
	bodies := blob.At(filepath.Join(dir, "blobs"))
	if err := bodies.Make(new(private.Trail)); err != nil {
		t.Fatal(err)
	}
	ids := slices.Sorted(maps.Keys(raw))
	if _, err := s.AddListed(ctx, job.Ref(), jobs.Page{IDs: ids}); err != nil {
		t.Fatal(err)
	}
	var results []jobs.Result
	for i, id := range ids {
		w := bodies.Create(ctx)
		if _, err := io.WriteString(w, raw[id]); err != nil {
			t.Fatal(err)
		}
		sha, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: &jobs.Message{
			Account: ann, ID: id, InternalDate: received.Add(time.Duration(i) * time.Minute), Labels: []string{"INBOX", "Label_1"},
			Size: int64(len(raw[id])), SHA256: sha, ParseStatus: jobs.Parsed,
		}})
	}
	if _, err := s.Commit(ctx, job.Ref(), results); err != nil {
		t.Fatal(err)
	}
	return mailbox{export.Options{Source: s, Bodies: bodies, Account: ann}, s, filepath.Join(dir, "blobs")}
}

// nasty are messages that are hard to bring through an mbox.
func nasty() map[string]string {
	return map[string]string{
		"empty":          "",
		"no-line-end":    "Subject: a\r\n\r\nends here",
		"header-only":    "Subject: a\n",
		"begins-quoted":  "From me\n>From you\n>>From us\n",
		"From-in-body":   "Subject: a\r\n\r\nFrom ann@example.com Fri Jan  9 07:08:09 2026\r\n>From b\r\n>>>> From c\r\n",
		"only-marks":     "Subject: a\n\n>>>>",
		"blank-lines":    "\n\n\nFrom x\n\n\n",
		"lone-returns":   "Subject: a\r\rFrom b\r\nFrom c\r",
		"long-line":      "Subject: a\n\n" + strings.Repeat("From ", 50_000) + "\nFrom \n",
		"many-marks":     "Subject: a\n\n" + strings.Repeat(">", 200_000) + "From b\n",
		"long-not-quote": "Subject: a\n\n" + strings.Repeat(">", 200_000) + "from b",
		"eight-bit":      "Subject: \xff\xfe\x00\n\n\x80From \x00\n",
	}
}

// read reads an mbox back: the messages as they were, by the id in their first
// line. The fake's parser finds their ends.
func read(t *testing.T, mbox []byte) map[string]string {
	t.Helper()
	first := regexp.MustCompile(`(?m)^From (\S+)@xxx \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$`)
	lines := first.FindAllSubmatch(mbox, -1)
	got := map[string]string{}
	for i, part := range gmail.SplitMbox(mbox) {
		text, ok := strings.CutSuffix(string(part), "\n")
		if !ok {
			t.Fatalf("message %d ends without an empty line", i)
		}
		header := regexp.MustCompile(`\AX-Gmail-Labels: INBOX,Label_1\r?\n`).FindString(text)
		if header == "" {
			t.Fatalf("message %d begins with %.60q, want its labels", i, text)
		}
		text = regexp.MustCompile(`(?m)^>(>*From )`).ReplaceAllString(text[len(header):], "$1")
		got[string(lines[i][1])] = text
	}
	return got
}

// ended is a message as a line-based file can have it.
func ended(raw string) string {
	if raw == "" || strings.HasSuffix(raw, "\n") {
		return raw
	}
	if i := strings.IndexByte(raw, '\n'); i > 0 && raw[i-1] == '\r' {
		return raw + "\r\n"
	}
	return raw + "\n"
}

func TestAnMboxHoldsTheSameBytes(t *testing.T) {
	raw := nasty()
	i := 0
	for generated := range gmail.Generate(1, 40) {
		raw[fmt.Sprintf("g%03d", i)] = string(generated)
		i++
	}
	if root := os.Getenv("HEADROOM_TESTDATA"); root != "" {
		field, err := gmail.ReadMailbox(filepath.Join(root, "mail"))
		if err != nil {
			t.Fatal(err)
		}
		for i, one := range field {
			raw[fmt.Sprintf("f%04d", i)] = string(one)
		}
	}
	m := stored(t, raw)
	var out bytes.Buffer
	r, err := export.Mbox(t.Context(), m.Options, &out)
	if err != nil || r.Messages != int64(len(raw)) || !r.Complete() {
		t.Fatalf("Mbox = %+v, %v, want %d messages", r, err, len(raw))
	}
	got := read(t, out.Bytes())
	if len(got) != len(raw) {
		t.Errorf("%d messages come back, want %d", len(got), len(raw))
	}
	for id, want := range raw {
		if got[id] != ended(want) {
			t.Errorf("%s comes back as %.200q, want %.200q", id, got[id], ended(want))
		}
	}
}

func TestAnMboxSaysWhenAndUnderWhichLabels(t *testing.T) {
	m := stored(t, map[string]string{"18c1": "Subject: a\r\n\r\nb\r\n", "18c2": "Subject: c\n\nd\n"})
	var out bytes.Buffer
	if _, err := export.Mbox(t.Context(), m.Options, &out); err != nil {
		t.Fatal(err)
	}
	want := "From 18c1@xxx Fri Jan  9 07:08:09 2026\nX-Gmail-Labels: INBOX,Label_1\r\nSubject: a\r\n\r\nb\r\n\n" +
		"From 18c2@xxx Fri Jan  9 07:09:09 2026\nX-Gmail-Labels: INBOX,Label_1\nSubject: c\n\nd\n\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("mbox (-want +got):\n%s", diff)
	}
	m.Filter = jobs.MessageFilter{After: received.Add(time.Second)}
	out.Reset()
	if r, err := export.Mbox(t.Context(), m.Options, &out); err != nil || r.Messages != 1 || !strings.HasPrefix(out.String(), "From 18c2@") {
		t.Errorf("with a filter = %+v, %v: %q", r, err, out.String())
	}
}

func TestWhatIsMissingOrDamagedIsSaid(t *testing.T) {
	m := stored(t, map[string]string{"a": "Subject: a\n", "b": "Subject: b\n", "c": "Subject: c\n"})
	for id, change := range map[string]func(path string) error{
		"a": os.Remove,
		"b": func(path string) error { return os.WriteFile(path, []byte("Subject: x"), 0o600) },
	} {
		row, err := m.store.Message(t.Context(), ann, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(m.blobs, row.SHA256[:2], row.SHA256[2:4], row.SHA256)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	inMbox, err := export.Mbox(t.Context(), m.Options, &out)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inFolder, err := export.EMLFolder(t.Context(), m.Options, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []export.Result{inMbox, inFolder} {
		if r.Complete() || r.Messages != 1 || !slices.Equal(r.Missing.IDs, []string{"a"}) || !slices.Equal(r.Damaged.IDs, []string{"b"}) {
			t.Errorf("result = %+v, want a missing and b damaged", r)
		}
	}
	if diff := cmp.Diff(map[string]string{"c": "Subject: c\n"}, read(t, out.Bytes())); diff != "" {
		t.Errorf("mbox (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"c.eml": "Subject: c\n"}, files(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}

// files reads all files of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	return got
}

// stopAfter ends the export's context after n messages.
func (m mailbox) stopAfter(t *testing.T, n int) (context.Context, export.Options) {
	ctx, cancel := context.WithCancel(t.Context())
	o := m.Options
	o.DoneFunc = func(int64) {
		if n--; n == 0 {
			cancel()
		}
	}
	return ctx, o
}

func TestAnInterruptedMboxLeavesNothing(t *testing.T) {
	m := stored(t, nasty())
	dir := t.TempDir()
	path := filepath.Join(dir, "ann.mbox")
	ctx, o := m.stopAfter(t, 3)
	if _, err := export.MboxFile(ctx, o, path, false); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted MboxFile = %v", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
	if r, err := export.MboxFile(t.Context(), m.Options, path, false); err != nil || r.Messages != int64(len(nasty())) {
		t.Errorf("MboxFile = %+v, %v", r, err)
	}
	before := files(t, dir)
	if _, err := export.MboxFile(t.Context(), m.Options, path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("MboxFile over a file = %v, want fs.ErrExist", err)
	}
	ctx, o = m.stopAfter(t, 3)
	if _, err := export.MboxFile(ctx, o, path, true); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted MboxFile over a file = %v", err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("an interrupted export has changed the file (-before +after):\n%s", diff)
	}
	m.Filter.After = received.Add(time.Hour)
	if _, err := export.MboxFile(t.Context(), m.Options, path, true); err != nil || len(files(t, dir)["ann.mbox"]) != 0 {
		t.Errorf("MboxFile of nothing over a file = %v, %d bytes", err, len(files(t, dir)["ann.mbox"]))
	}
}

func TestAFolderOfMessagesGoesOn(t *testing.T) {
	raw := nasty()
	raw["../up"] = "Subject: out\n"
	m := stored(t, raw)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	ctx, o := m.stopAfter(t, 4)
	if _, err := export.EMLFolder(ctx, o, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted EMLFolder = %v", err)
	}
	first := files(t, dir)
	if len(first) != 4 {
		t.Errorf("interrupted after 4 messages: %d files", len(first))
	}
	// What a crash of the machine may make of a file.
	if err := os.Truncate(filepath.Join(dir, "From-in-body.eml"), 3); err != nil {
		t.Fatal(err)
	}
	r, err := export.EMLFolder(t.Context(), m.Options, dir)
	if err != nil || r.Present != 3 || r.Messages != int64(len(raw)-3) {
		t.Errorf("EMLFolder = %+v, %v, want 3 that are present", r, err)
	}
	want := map[string]string{}
	for id, text := range raw {
		want[strings.ReplaceAll(id, "/", "%2F")+".eml"] = text
	}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}
