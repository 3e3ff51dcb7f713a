package fakegoogle_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ann = "ann@example.com"
	bob = "bob@example.com"
)

// start serves a fake until the test ends.
func start(t *testing.T, opts fakegoogle.Options) (*fakegoogle.Server, string) {
	t.Helper()
	server, err := fakegoogle.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return server, listen(t, server)
}

func listen(t *testing.T, server *fakegoogle.Server) string {
	t.Helper()
	url, shutdown, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			t.Errorf("shutdown = %v", err)
		}
	})
	return url
}

// bearer is a transport that sends one token.
type bearer struct {
	token string
	base  *http.Transport
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.base.RoundTrip(r)
}

func httpClient(t *testing.T, token string) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{token: token, base: transport}, Timeout: 30 * time.Second}
}

// client is Google's own client, pointed at the fake.
func client(t *testing.T, url, token string) *gmail.UsersService {
	t.Helper()
	service, err := gmail.NewService(t.Context(), option.WithHTTPClient(httpClient(t, token)), option.WithEndpoint(url))
	if err != nil {
		t.Fatal(err)
	}
	return service.Users
}

func mail(n int) []byte {
	return fmt.Appendf(nil, "From: Ann <ann@example.com>\r\nTo: bob@example.com\r\nSubject: number %d\r\n"+
		"Date: Mon, 02 Mar 2026 10:%02d:00 +0000\r\nMessage-ID: <%d@example.com>\r\n\r\nBody of message %d.\r\n", n, n%60, n, n)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func raw(t *testing.T, m *gmail.Message) []byte {
	t.Helper()
	b, err := base64.URLEncoding.DecodeString(m.Raw)
	if err != nil {
		t.Fatalf("raw of %s: %v", m.Id, err)
	}
	return b
}

func TestClientWithoutAuthenticationSeesTheFirstMailbox(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann).Add(mail(1))
	server.AddMailbox(bob)
	service, err := gmail.NewService(t.Context(), option.WithoutAuthentication(), option.WithEndpoint(url))
	if err != nil {
		t.Fatal(err)
	}
	got, err := service.Users.GetProfile("me").Context(t.Context()).Do()
	if err != nil {
		t.Fatal(err)
	}
	if got.EmailAddress != ann || got.MessagesTotal != 1 || got.ThreadsTotal != 1 || got.HistoryId == 0 {
		t.Errorf("profile = %+v, want one message of %s", got, ann)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestBearerSelectsTheUser(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	server.AddMailbox(bob).Add(mail(1))

	for _, userID := range []string{"me", bob, "Bob@Example.com"} {
		got, err := client(t, url, bob).GetProfile(userID).Do()
		if err != nil {
			t.Fatalf("profile of %s: %v", userID, err)
		}
		if got.EmailAddress != bob || got.MessagesTotal != 1 {
			t.Errorf("profile of %s = %+v, want bob's", userID, got)
		}
	}
	_, err := client(t, url, bob).GetProfile(ann).Do()
	wantError(t, err, 403, "Delegation denied for bob@example.com", "forbidden", "PERMISSION_DENIED")
	_, err = client(t, url, "nobody@example.com").GetProfile("me").Do()
	wantError(t, err, 401, "Invalid Credentials", "authError", "UNAUTHENTICATED")
	if r := server.Meter(); r.Unauthenticated != 1 || r.User(bob).Calls != 4 {
		t.Errorf("meter: %d unauthenticated, %d of bob; want 1 and 4", r.Unauthenticated, r.User(bob).Calls)
	}
}

func TestEveryFormat(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	message := mail(7)
	id := server.AddMailbox(ann).Add(message, "UNREAD", "INBOX")
	users := client(t, url, ann)
	get := func(format string, headers ...string) *gmail.Message {
		t.Helper()
		m, err := users.Messages.Get("me", id).Format(format).MetadataHeaders(headers...).Do()
		if err != nil {
			t.Fatalf("get %s: %v", format, err)
		}
		if m.Id != id || len(id) != 16 || m.ThreadId != id || m.InternalDate != 1772446020000 ||
			m.SizeEstimate != int64(len(message)) || m.Snippet != "Body of message 7." || m.HistoryId == 0 ||
			fmt.Sprint(m.LabelIds) != "[INBOX UNREAD]" {
			t.Errorf("%s: common fields = %+v", format, m)
		}
		return m
	}
	if m := get("raw"); hash(raw(t, m)) != hash(message) || m.Payload != nil {
		t.Errorf("raw is not the message, or has a payload")
	}
	if m := get("minimal"); m.Raw != "" || m.Payload != nil {
		t.Errorf("minimal = %+v, want neither raw nor payload", m)
	}
	if m := get("metadata", "subject", "Message-Id"); len(m.Payload.Headers) != 2 ||
		m.Payload.Headers[0].Name != "Subject" || m.Payload.Headers[1].Value != "<7@example.com>" || m.Payload.Body != nil {
		t.Errorf("metadata = %+v, want Subject and Message-ID only", m.Payload)
	}
	m := get("full")
	if len(m.Payload.Headers) != 5 || m.Payload.MimeType != "text/plain" || m.Payload.Body.Size != 20 {
		t.Errorf("full = %+v", m.Payload)
	}
	if body, _ := base64.URLEncoding.DecodeString(m.Payload.Body.Data); string(body) != "Body of message 7.\r\n" {
		t.Errorf("body = %q", body)
	}
	unspecified, err := users.Messages.Get("me", id).Do()
	if err != nil || unspecified.Payload.Body.Data != m.Payload.Body.Data {
		t.Errorf("no format gives %+v, %v; want full", unspecified, err)
	}
	_, err = users.Messages.Get("me", id).Format("html").Do()
	wantError(t, err, 400, "Invalid value at 'format' (type.googleapis.com/google.apps.gmail.v1.MessageFormat), \"html\"", "invalidArgument", "INVALID_ARGUMENT")
	_, err = users.Messages.Get("me", "19ffffffffffffff").Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
	for _, id := range []string{"a/b", "%41?x=1", "msg-a:r1"} {
		_, err = users.Messages.Get("me", id).Do()
		wantError(t, err, 400, "Invalid id value", "invalidArgument", "INVALID_ARGUMENT")
	}
}

func TestNastyBytesComeBackAsTheyAre(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	deep := ""
	for i := range 200 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	messages := [][]byte{
		{}, []byte("\n"), []byte("\r\n\r\n"), []byte("no header at all"), {0, 255, 254, '\n', 0},
		[]byte(" Aug 22 15:03:38 2008\nSubject: late\n\nx"),
		[]byte("Subject: a\x00b\xff\nDate: Mon, 01 Jan 0000 00:00:00 +0000\n\nx"),
		[]byte("Content-Type: text/plain; charset=x-unknown\n\n\xe4\xf6"),
		[]byte("Subject: =?x-unknown?q?=E4?= =?utf-8?b?####?=\n\n"),
		[]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/png\n\nno closing boundary"),
		[]byte("Content-Type: multipart/mixed; boundary=\"\"\n\n--\n--\n"),
		[]byte("Content-Type: ;;;=\nContent-Transfer-Encoding: base64\n\n!!!=A"),
		[]byte("From ann@example.com  Mon Mar  2 10:00:00 2026\nSubject: from line\n\nx\n"),
		[]byte(deep),
	}
	for i, m := range messages {
		id := box.Add(m)
		for _, format := range []string{"full", "metadata", "minimal", "raw"} {
			got, err := client(t, url, ann).Messages.Get("me", id).Format(format).Do()
			if err != nil {
				t.Errorf("message %d as %s: %v", i, format, err)
			} else if format == "raw" && hash(raw(t, got)) != hash(m) {
				t.Errorf("message %d changed: %q", i, raw(t, got))
			}
		}
	}
	if list, err := client(t, url, ann).Messages.List("me").Q("late").Do(); err != nil || len(list.Messages) != 1 {
		t.Errorf("search through nasty mail = %v, %v; want one", list, err)
	}
}
