package fakegoogle_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lab/fakegoogle"
)

func withAttachment() []byte {
	return []byte(strings.ReplaceAll(`Subject: parts
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=iso-8859-1

`+strings.Repeat("\xe4", 300<<10)+`
--b
Content-Type: application/pdf; name=x.pdf
Content-Transfer-Encoding: base64

AAEC
--b--
`, "\n", "\r\n"))
}

func TestAttachments(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	id := box.Add(withAttachment())
	other := box.Add(mail(1))
	users := client(t, url, ann)
	parts := func() []*gmail.MessagePart {
		t.Helper()
		m, err := users.Messages.Get("me", id).Format("full").Do()
		if err != nil {
			t.Fatal(err)
		}
		return m.Payload.Parts
	}
	fetch := func(messageID, attachmentID string) ([]byte, error) {
		body, err := users.Messages.Attachments.Get("me", messageID, attachmentID).Do()
		if err != nil {
			return nil, err
		}
		data, err := base64.URLEncoding.DecodeString(body.Data)
		if err != nil || int64(len(data)) != body.Size {
			t.Errorf("attachment of %d bytes holds %d, %v", body.Size, len(data), err)
		}
		return data, nil
	}
	p, again := parts(), parts()
	text, file := p[0].Body, p[1].Body
	if text.Data != "" || text.Size != 600<<10 || file.Data != "" || file.Size != 3 {
		t.Errorf("bodies = %+v, %+v; want both elsewhere: one is large, one a file", text, file)
	}
	if again[1].Body.AttachmentId == file.AttachmentId {
		t.Error("two gets give the same attachment id, want another each time")
	}
	for _, attachment := range []string{file.AttachmentId, again[1].Body.AttachmentId} {
		if data, err := fetch(id, attachment); err != nil || !bytes.Equal(data, []byte{0, 1, 2}) {
			t.Errorf("file = %v, %v; want 0 1 2", data, err)
		}
	}
	if data, err := fetch(id, text.AttachmentId); err != nil || string(data) != strings.Repeat("ä", 300<<10) {
		t.Errorf("text has %d bytes, %v; want it in UTF-8", len(data), err)
	}
	dead := func(messageID, attachmentID string) {
		t.Helper()
		_, err := fetch(messageID, attachmentID)
		wantError(t, err, 400, "Invalid attachment token", "invalidArgument", "INVALID_ARGUMENT")
	}
	dead(other, file.AttachmentId)
	dead(id, "garbage")
	box.ExpireAttachmentIDs()
	dead(id, file.AttachmentId)
	if data, err := fetch(id, parts()[1].Body.AttachmentId); err != nil || len(data) != 3 {
		t.Errorf("with a fresh id: %v, %v", data, err)
	}
	u := server.Meter().User(ann)
	if n := u.CallsByMethod["gmail.users.messages.attachments.get"]; n != 7 || u.Units != 10*20 || u.Fetches != 3 {
		t.Errorf("meter: %d attachments, %d units, %d fetches; want 7, 200 and 3", n, u.Units, u.Fetches)
	}
}
