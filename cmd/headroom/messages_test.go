package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headroom/internal/blob"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// receivedAt is when the first message of keep was received; each other a day later.
var receivedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// keep adds ann's account and stores messages as a backfill does: m0, m1, and so on;
// every second one in INBOX. The body of an empty text is lost.
func (s site) keep(texts ...string) {
	s.t.Helper()
	ctx := s.t.Context()
	if r := s.headroom("account", "add", "ann@example.com", "--project", "main"); r.code != 0 {
		s.t.Fatalf("account add = %+v", r)
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Path: s.dir + "/data/headroom.db"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	job, _, err := db.StartBackfill(ctx, "ann@example.com", jobs.Filter{})
	if err != nil {
		s.t.Fatal(err)
	}
	if job, err = db.Claim(ctx, job.Ref(), time.Hour); err != nil {
		s.t.Fatal(err)
	}
	var page jobs.Page
	var results []jobs.Result
	for i, text := range texts {
		m := &jobs.Message{
			Account: "ann@example.com", ID: fmt.Sprint("m", i), ThreadID: "t", InternalDate: receivedAt.AddDate(0, 0, i),
			Labels: []string{"UNREAD"}, Size: int64(len(text)), Subject: fmt.Sprintf("Subject\x1b[2J %d", i), ParseStatus: jobs.Parsed,
		}
		if i%2 == 0 {
			m.Labels = append(m.Labels, "INBOX")
		}
		w := blob.At(s.dir + "/data/blobs").Create(ctx)
		if _, err := io.WriteString(w, text); err != nil {
			s.t.Fatal(err)
		}
		if m.SHA256, err = w.Commit(); err != nil {
			s.t.Fatal(err)
		}
		if text == "" {
			if err := os.Remove(filepath.Join(s.dir, "data/blobs", m.SHA256[:2], m.SHA256[2:4], m.SHA256)); err != nil {
				s.t.Fatal(err)
			}
		}
		page.IDs = append(page.IDs, m.ID)
		results = append(results, jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: m})
	}
	if _, err := db.AddListed(ctx, job.Ref(), page); err != nil {
		s.t.Fatal(err)
	}
	if _, err := db.Commit(ctx, job.Ref(), results); err != nil {
		s.t.Fatal(err)
	}
}

func TestMessagesList(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1") // messages need no Redis
	s.headroom("messages", "list", "ann@example.com").fails(t, 1, "add an account first")
	s.keep("Subject: 0\r\n", "Subject: 1\r\n", "Subject: 2\r\n", "")
	s.headroom("messages", "list", "bob@example.com").fails(t, 1, "unknown account bob@example.com; add it with: headroom account add bob@example.com --project main")
	for name, row := range map[string]struct {
		flags []string
		want  []string
	}{
		"all":     {nil, []string{"m0", "m1", "m2", "m3"}},
		"label":   {[]string{"--label", "INBOX"}, []string{"m0", "m2"}},
		"dates":   {[]string{"--after", "2026-01-02", "--before", "2026-01-03T12:00:00Z"}, []string{"m1"}},
		"in zone": {[]string{"--after", "2026-01-04", "--zone", "America/Los_Angeles"}, []string{"m3"}},
		"limit":   {[]string{"--limit", "2"}, []string{"m0", "m1"}},
		"none":    {[]string{"--after", "2030-01-01"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range decode[[]jobs.Message](t, s.headroom(append([]string{"messages", "list", "ann@example.com", "--json"}, row.flags...)...)) {
				got = append(got, m.ID)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("listed %q, want %q", got, row.want)
			}
		})
	}
	r := s.headroom("messages", "list", "ann@example.com")
	if strings.Count(r.stdout, "\n") != 5 || !strings.Contains(r.stdout, "UNREAD,INBOX") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("messages list = %+v, want a table without control characters", r)
	}
	s.headroom("messages", "list", "ann@example.com", "--after", "May").fails(t, 2, "--after May is no time")
	s.headroom("messages", "list", "ann@example.com", "--after", "2026-01-02", "--before", "2026-01-01").fails(t, 2, "is not before")
	s.headroom("messages", "list", "ann@example.com", "--limit", "-1").fails(t, 2, "--limit -1 is negative")
}

// Dates that nobody can write, or that are not known, hide no other message.
func TestMessagesOfOddDatesAreListed(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1")
	s.keep("Subject: 0\r\n", "Subject: 1\r\n", "Subject: 2\r\n")
	db, err := sql.Open("sqlite", s.dir+"/data/headroom.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id, ms := range map[string]int64{"m0": 253402300800000, "m1": time.Time{}.UnixMilli()} {
		if _, err := db.ExecContext(t.Context(), "UPDATE messages SET internal_date = ? WHERE id = ?", ms, id); err != nil {
			t.Fatal(err)
		}
	}
	all := decode[[]map[string]any](t, s.headroom("messages", "list", "ann@example.com", "--json"))
	if len(all) != 3 || all[0]["internal_date"] != nil || all[0]["internal_date_ms"] != 253402300800000.0 || all[1]["internal_date"] != nil || all[2]["internal_date"] == nil {
		t.Errorf("messages = %v", all)
	}
	lines := strings.Split(s.headroom("messages", "list", "ann@example.com").stdout, "\n")
	if len(lines) < 4 || !strings.Contains(lines[1], " 10000-01-01") || !strings.Contains(lines[2], "m1  -  ") || !strings.Contains(lines[3], " 2026-01-03") {
		t.Errorf("table = %q", lines)
	}
	for _, id := range []string{"m0", "m1"} {
		if r := s.headroom("messages", "get", "ann@example.com", id); r.code != 0 || strings.Contains(r.stdout, "0001") {
			t.Errorf("get %s = %+v", id, r)
		}
	}
	if r := s.headroom("messages", "export", "ann@example.com", "--out", "-"); r.code != 0 || strings.Count(r.stdout, "Subject: ") != 3 || strings.Contains(r.stdout, " 0001\n") {
		t.Errorf("export = %+v", r)
	}
}

func TestMessagesGet(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1")
	raw := "Subject: \xff\x00\r\n\r\nFrom here\r\nno end"
	s.keep(raw, "")
	if r := s.headroom("messages", "get", "ANN@example.com", "m0", "--raw"); r.code != 0 || r.stdout != raw || r.stderr != "" {
		t.Errorf("get --raw = %+v, want the bytes that were stored", r)
	}
	if m := decode[jobs.Message](t, s.headroom("messages", "get", "ann@example.com", "m0", "--json")); m.ID != "m0" || m.Size != int64(len(raw)) {
		t.Errorf("get --json = %+v", m)
	}
	if r := s.headroom("messages", "get", "ann@example.com", "m1"); r.code != 0 || !strings.Contains(r.stdout, "UNREAD") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("get = %+v", r)
	}
	s.headroom("messages", "get", "ann@example.com", "m1", "--raw").fails(t, 1, `the body of message "m1" of ann@example.com is missing in the blob folder`)
	s.headroom("messages", "get", "ann@example.com", "m2").fails(t, 1, `no message "m2" of ann@example.com is stored; headroom messages list ann@example.com names those that are`)
	s.headroom("messages", "get", "bob@example.com", "m0").fails(t, 1, "unknown account bob@example.com")
	s.headroom("messages", "get", "ann@example.com", "m0", "--raw", "--json").fails(t, 2, "choose one")
}

func TestMessagesExport(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1")
	s.keep("Subject: 0\r\n\r\na\r\n", "Subject: 1\r\n\r\nb\r\n", "Subject: 2\r\n\r\nc\r\n")
	file, folder := filepath.Join(s.dir, "ann.mbox"), filepath.Join(s.dir, "ann")
	r := s.headroom("messages", "export", "ann@example.com", "--out", file)
	if r.code != 0 || r.stdout != "exported 3 messages (51 B) to "+file+"\n" || r.stderr != "" {
		t.Errorf("export = %+v", r)
	}
	mbox, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := gmail.SplitMbox(mbox)
	if len(parts) != 3 || string(parts[1]) != "X-Gmail-Labels: UNREAD\r\nSubject: 1\r\n\r\nb\r\n\n" {
		t.Errorf("mbox = %q", parts)
	}
	if r := s.headroom("messages", "export", "ann@example.com", "--out", "-"); r.code != 0 || r.stdout != string(mbox) {
		t.Errorf("export to stdout = %+v, want the same as in the file", r)
	}
	s.headroom("messages", "export", "ann@example.com", "--out", file).fails(t, 1, file+" exists already; name another file, or replace it with --overwrite")
	if r := s.headroom("messages", "export", "ann@example.com", "--out", file, "--overwrite", "--label", "INBOX"); r.code != 0 || !strings.Contains(r.stdout, "exported 2 messages") {
		t.Errorf("export --overwrite = %+v", r)
	}
	for i, want := range []string{"exported 3 messages (51 B) to " + folder + "\n", "exported 0 messages (0 B) to " + folder + "\n3 were there before\n"} {
		if r := s.headroom("messages", "export", "ann@example.com", "--format", "eml", "--out", folder); r.code != 0 || r.stdout != want {
			t.Errorf("export %d as eml = %+v, want %q", i, r, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(folder, "m2.eml")); err != nil || string(b) != "Subject: 2\r\n\r\nc\r\n" {
		t.Errorf("m2.eml = %q, %v", b, err)
	}
	for want, args := range map[string][]string{
		`--format "pst" is none; there are mbox and eml`: {"--format", "pst", "--out", file},
		"--out is missing":               nil,
		"eml files need a folder":        {"--format", "eml", "--out", "-"},
		"is a folder; name a file in it": {"--out", folder},
		"leave out --json":               {"--out", "-", "--json"},
	} {
		s.headroom(append([]string{"messages", "export", "ann@example.com"}, args...)...).fails(t, 2, want)
	}
}

func TestMessagesExportSaysWhatIsMissing(t *testing.T) {
	s := newSite(t, "redis://127.0.0.1:1")
	s.keep("Subject: 0\r\n", "", "Subject: 2\r\n")
	r := s.headroom("messages", "export", "ann@example.com", "--out", filepath.Join(s.dir, "ann.mbox"), "--json")
	var got struct {
		Messages int
		Missing  struct{ IDs []string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || got.Messages != 2 || !slices.Equal(got.Missing.IDs, []string{"m1"}) {
		t.Errorf("export --json = %+v, %v", r, err)
	}
	if r.code != 1 || !strings.Contains(r.stderr, "of 1 messages no body is stored, and they were left out: m1;") {
		t.Errorf("export = %+v, want code 1 and the reason", r)
	}
}
