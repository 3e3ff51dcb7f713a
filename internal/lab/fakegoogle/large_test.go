package fakegoogle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	netmail "net/mail"
	"runtime"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle"
)

func TestLargeMessages(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	users := client(t, url, ann)
	for _, size := range []int{2000, 18_381, 100_000, 1_000_003} {
		id := box.AddLarge(size, "INBOX", "UNREAD")
		info := box.Messages()[0]
		m, err := users.Messages.Get("me", id).Format("raw").Do()
		if err != nil {
			t.Fatal(err)
		}
		message := raw(t, m)
		if len(message) != size || m.SizeEstimate != int64(size) || info.Size != size || hash(message) != info.SHA256 || m.Snippet == "" {
			t.Errorf("of %d bytes: %d came, estimate %d, info %+v, snippet %q", size, len(message), m.SizeEstimate, info, m.Snippet)
		}
		attachment := attached(t, string(message))
		full, err := users.Messages.Get("me", id).Format("full").Do()
		if err != nil {
			t.Fatal(err)
		}
		body := full.Payload.Parts[1].Body
		got, err := users.Messages.Attachments.Get("me", id, body.AttachmentId).Do()
		if err != nil {
			t.Fatal(err)
		}
		data, err := base64.URLEncoding.DecodeString(got.Data)
		if err != nil || hash(data) != hash(attachment) || body.Size != int64(len(attachment)) {
			t.Errorf("of %d bytes: attachment of %d, %d came, %v; want %d", size, body.Size, len(data), err, len(attachment))
		}
	}
	masked, err := users.Messages.Get("me", box.Messages()[0].ID).Format("raw").Fields("id").Do()
	if err != nil || masked.Raw != "" || masked.Id == "" {
		t.Errorf("masked = %+v, %v; want the id alone", masked, err)
	}
	if err := server.Load(bob, "generate:3:5KB"); err != nil || len(server.Mailbox(bob).Messages()) != 3 || server.Mailbox(bob).Messages()[2].Size != 5000 {
		t.Errorf("generate:3:5KB = %v, %v", server.Mailbox(bob), err)
	}
	for _, spec := range []string{"generate:3:1KB", "generate:3:2GB", "generate:3:", "generate:3:99999MB"} {
		if err := server.Load(bob, spec); err == nil {
			t.Errorf("%s was taken", spec)
		}
	}
}

// attached returns the second part of a message, decoded.
func attached(t *testing.T, message string) []byte {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	reader := multipart.NewReader(m.Body, params["boundary"])
	var data []byte
	for range 2 {
		part, err := reader.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(base64.NewDecoder(base64.StdEncoding, part)); err != nil && part.FileName() != "" {
			t.Fatal(err)
		}
	}
	return data
}

// A fake in the process of a test must not spoil what the test measures.
func TestLargeMessagesAreNotHeld(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	const size = 6_000_000
	id := box.AddLarge(size)
	for _, encoding := range []string{"identity", "gzip"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/gmail/v1/users/me/messages/"+id+"?format=raw", nil)
		if err != nil {
			t.Fatal(err)
		}
		if encoding == "identity" {
			r.Header.Set("Accept-Encoding", encoding) // the client asks for gzip by itself
		}
		resp, err := httpClient(t, "").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		err = findRaw(resp.Body, h)
		resp.Body.Close()
		if got := hex.EncodeToString(h.Sum(nil)); err != nil || got != box.Messages()[0].SHA256 {
			t.Errorf("%s: hash %s, %v", encoding, got, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
			t.Errorf("%s: %d bytes were allocated for a message of %d, want few", encoding, used, size)
		}
	}
}

// findRaw copies the data of an answer's field raw.
func findRaw(body io.Reader, w io.Writer) error {
	head := make([]byte, 0, 4096)
	for !strings.HasSuffix(string(head), `"raw": "`) {
		var b [1]byte
		if _, err := io.ReadFull(body, b[:]); err != nil {
			return err
		}
		head = append(head, b[0])
	}
	_, err := io.Copy(w, base64.NewDecoder(base64.URLEncoding, &untilQuote{r: body}))
	return err
}

// untilQuote reads up to the first quotation mark, and then to the end.
type untilQuote struct {
	r    io.Reader
	done bool
}

func (u *untilQuote) Read(p []byte) (int, error) {
	for {
		n, err := u.r.Read(p)
		if u.done {
			n = 0
		} else if i := bytes.IndexByte(p[:n], '"'); i >= 0 {
			n, u.done = i, true
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}
