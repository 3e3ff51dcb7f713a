package fakegoogle_test

import (
	"bytes"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
)

func TestGeneratedMail(t *testing.T) {
	messages := slices.Collect(gmail.Generate(7, 1000))
	kinds := map[string]int{}
	middle, beyondASCII, replies := 0, 0, 0
	for i, raw := range messages {
		if len(raw) < 900 || len(raw) > 64<<10 {
			t.Errorf("message %d has %d bytes, want 1 to 60 KB", i, len(raw))
		}
		if len(raw) >= 2000 && len(raw) <= 9000 {
			middle++
		}
		if bytes.Count(raw, []byte("\n")) != bytes.Count(raw, []byte("\r\n")) {
			t.Errorf("message %d has line ends other than CRLF", i)
		}
		m, err := netmail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if _, err := m.Header.Date(); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		kind, _, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		kinds[kind]++
		if strings.Contains(m.Header.Get("Subject"), "=?utf-8?") {
			beyondASCII++
		}
		if m.Header.Get("In-Reply-To") != "" {
			replies++
		}
	}
	if middle < 500 || beyondASCII < 100 || replies < 200 || len(kinds) != 3 || kinds["multipart/mixed"] < 100 {
		t.Errorf("of 1000: %d of 2 to 8 KB, %d subjects beyond ASCII, %d replies, kinds %v", middle, beyondASCII, replies, kinds)
	}
	if again := slices.Collect(gmail.Generate(7, 10)); !slices.EqualFunc(again, messages[:10], bytes.Equal) {
		t.Error("the same seed gives other messages")
	}
	if other := slices.Collect(gmail.Generate(8, 1)); bytes.Equal(other[0], messages[0]) {
		t.Error("another seed gives the same message")
	}
}

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
