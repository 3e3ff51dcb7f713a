package fakegoogle_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
)

func TestMessagesAreInsertedAndImported(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	first := box.Add(mail(1))
	since := box.HistoryID()
	users := client(t, url, ann)
	encoded := base64.URLEncoding.EncodeToString(mail(2))
	written := time.Date(2026, 3, 2, 10, 2, 0, 0, time.UTC).UnixMilli()
	message := func() *gmail.Message {
		return &gmail.Message{Raw: encoded, LabelIds: []string{"UNREAD", "INBOX"}, ThreadId: first}
	}
	bare := func() *gmail.Message { return &gmail.Message{LabelIds: []string{"UNREAD", "INBOX"}, ThreadId: first} }
	media := func() *bytes.Reader { return bytes.NewReader(mail(2)) }
	rfc822 := googleapi.ContentType("message/rfc822")

	var ids []string
	for what, test := range map[string]struct {
		call    func() (*gmail.Message, error)
		written bool // the date is the header's
	}{
		"insert": {func() (*gmail.Message, error) { return users.Messages.Insert("me", message()).Do() }, false},
		"insert by its date": {func() (*gmail.Message, error) {
			return users.Messages.Insert("me", message()).InternalDateSource("dateHeader").Do()
		}, true},
		"insert as media": {func() (*gmail.Message, error) { return users.Messages.Insert("me", bare()).Media(media(), rfc822).Do() }, false},
		"import":          {func() (*gmail.Message, error) { return users.Messages.Import("me", message()).Do() }, true},
		"import as media": {func() (*gmail.Message, error) {
			return users.Messages.Import(ann, bare()).NeverMarkSpam(true).Media(media(), rfc822).Do()
		}, true},
		"import as received just now": {func() (*gmail.Message, error) {
			return users.Messages.Import("me", message()).InternalDateSource("receivedTime").Do()
		}, false},
	} {
		before := time.Now().UnixMilli()
		added, err := test.call()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		got, err := users.Messages.Get("me", added.Id).Format("raw").Do()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if hash(raw(t, got)) != hash(mail(2)) || !slices.Equal(got.LabelIds, []string{"INBOX", "UNREAD"}) || got.ThreadId != first || added.ThreadId != first {
			t.Errorf("%s gives %+v in thread %s, want message 2 in thread %s", what, got, added.ThreadId, first)
		}
		if test.written != (got.InternalDate == written) || !test.written && got.InternalDate < before {
			t.Errorf("%s has the date %d", what, got.InternalDate)
		}
		ids = append(ids, added.Id)
	}
	history, err := users.History.List("me").StartHistoryId(since).HistoryTypes("messageAdded").Do()
	if err != nil || len(history.History) != len(ids) {
		t.Errorf("history = %+v, %v; want %d messages added", history, err, len(ids))
	}
	if calls := server.Meter().User(ann).CallsByMethod; calls["gmail.users.messages.insert"] != 3 || calls["gmail.users.messages.import"] != 3 {
		t.Errorf("calls %v, want three inserts and three imports", calls)
	}
	if units := server.Meter().User(ann).Units; units != 6*25+6*20+2 {
		t.Errorf("%d units, want 25 for each message added and 20 for each fetched", units)
	}

	gone, err := users.Messages.Insert("me", message()).Deleted(true).Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = users.Messages.Get("me", gone.Id).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
}

func TestWhatCannotBeInserted(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	users := client(t, url, ann)
	_, err := users.Messages.Insert("me", &gmail.Message{}).Do()
	wantError(t, err, 400, "'raw' RFC822 payload message string or uploading message via /upload/* URL required", "invalidArgument", "INVALID_ARGUMENT")
	_, err = users.Messages.Insert("me", &gmail.Message{Raw: "eA", ThreadId: "19ffffffffffffff"}).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
	for path, body := range map[string]string{
		"/gmail/v1/users/me/messages":                                   `{"raw":"***"}`,
		"/gmail/v1/users/me/messages/import":                            `{"raw":`,
		"/gmail/v1/users/me/messages?internalDateSource=yesterday":      `{"raw":"eA"}`,
		"/upload/gmail/v1/users/me/messages?uploadType=resumable":       "x",
		"/upload/gmail/v1/users/me/messages?uploadType=multipart":       "no parts",
		"/upload/gmail/v1/users/me/messages/import?uploadType=media":    "",
		"/gmail/v1/users/me/messages?internalDateSource=&deleted=maybe": `{"raw":"eA"}`,
	} {
		do(t, http.MethodPost, url+path, body, 400)
	}
	for _, path := range []string{"/upload/gmail/v1/users/me/watch", "/upload/gmail/v1/users/me/messages/1", "/gmail/v1/users/me/messages/1"} {
		do(t, http.MethodPost, url+path, "{}", 404)
	}
	if n := len(box.Messages()); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
	// Either alphabet of base64 is read, with padding or without.
	want := []byte("Subject: x\r\n\r\n\xfb\xff\xfe?>")
	for _, encoded := range []string{
		base64.URLEncoding.EncodeToString(want), base64.RawURLEncoding.EncodeToString(want),
		base64.StdEncoding.EncodeToString(want), base64.RawStdEncoding.EncodeToString(want),
	} {
		if _, err := users.Messages.Insert("me", &gmail.Message{Raw: encoded}).Do(); err != nil {
			t.Errorf("%q: %v", encoded, err)
		}
	}
	do(t, http.MethodPost, url+"/upload/gmail/v1/users/me/messages?uploadType=media", string(want), 200)
	for _, m := range box.Messages() {
		if m.SHA256 != hash(want) || len(m.Labels) != 0 {
			t.Errorf("message %+v, want what was sent, without labels", m)
		}
	}
	large := []byte("Subject: large\r\n\r\n" + strings.Repeat("a line of text\r\n", 200_000)) // more than other calls may send
	if _, err := users.Messages.Insert("me", &gmail.Message{}).Media(bytes.NewReader(large)).Do(); err != nil {
		t.Errorf("a message of %d bytes: %v", len(large), err)
	}
	if got := box.Messages(); len(got) != 6 || got[0].SHA256 != hash(large) {
		t.Errorf("%d messages, want six, the large one first", len(got))
	}
}
