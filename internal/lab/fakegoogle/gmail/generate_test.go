package gmail_test

import (
	"bytes"
	"mime"
	"net/mail"
	"slices"
	"strings"
	"testing"

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
		m, err := mail.ReadMessage(bytes.NewReader(raw))
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
