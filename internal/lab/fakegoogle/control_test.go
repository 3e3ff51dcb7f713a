package fakegoogle_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/meter"
)

// do makes a request and returns its body, having checked its status.
func do(t *testing.T, method, url, body string, status int) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient(t, "").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s = %d %s, %v; want %d", method, url, resp.StatusCode, b, err, status)
	}
	return b
}

func post(t *testing.T, url, body string, status int) []byte {
	t.Helper()
	return do(t, http.MethodPost, url, body, status)
}

func decode[T any](t *testing.T, b []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func TestMeterAsJSONIsTheReport(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 6})
	server.AddMailbox(ann).Add(mail(1))
	for range 2 {
		_, _ = client(t, url, ann).Messages.List("me").Do() // the second is refused
	}
	got := decode[meter.Report](t, do(t, "GET", url+"/_fake/meter", "", 200))
	if diff := cmp.Diff(server.Meter(), got); diff != "" {
		t.Errorf("meter by HTTP differs (-Go +JSON):\n%s", diff)
	}
	if u := got.User(ann); u.Calls != 2 || u.Refused != 1 || u.Units != 10 || u.CallsByMethod["gmail.users.messages.list"] != 2 || u.LastCall.Before(u.FirstCall) {
		t.Errorf("report = %+v", u)
	}
	lines := bufio.NewScanner(strings.NewReader(string(do(t, "GET", url+"/_fake/arrivals", "", 200))))
	var refused []meter.Refusal
	for lines.Scan() {
		a := decode[meter.Arrival](t, lines.Bytes())
		if a.User != ann || a.Project != "fake-project" || a.Units != 5 || a.At.IsZero() {
			t.Errorf("arrival = %+v", a)
		}
		refused = append(refused, a.Refused)
	}
	if len(refused) != 2 || refused[0] != "" || refused[1] != meter.RefusedUserUnits {
		t.Errorf("arrivals refused: %q", refused)
	}
}

func TestMailboxControl(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	old := box.Add(mail(1), "INBOX")
	before := box.HistoryID()
	changed := decode[gmail.MailboxChanged](t, post(t, url+"/_fake/mailbox", `{"user":"ann@example.com",
		"add":[{"raw":"Subject: x\r\n\r\ny","labels":["UNREAD"]},{"raw_base64":"AP8K"}],
		"relabel":[{"id":"`+old+`","add":["STARRED"],"remove":["INBOX"]}],
		"delete":["19ffffffffffffff"]}`, 200))
	if len(changed.Added) != 2 || len(changed.Missing) != 1 || changed.HistoryID <= before {
		t.Fatalf("changed = %+v", changed)
	}
	state := decode[gmail.MailboxState](t, do(t, "GET", url+"/_fake/mailbox?user=ann@example.com", "", 200))
	want := []gmail.MessageInfo{
		{ID: changed.Added[1], SHA256: hash([]byte{0, 255, 10}), Size: 3, Labels: []string{"INBOX"}},
		{ID: changed.Added[0], SHA256: hash([]byte("Subject: x\r\n\r\ny")), Size: 15, Labels: []string{"UNREAD"}},
		{ID: old, SHA256: hash(mail(1)), Size: len(mail(1)), Labels: []string{"STARRED"}},
	}
	if diff := cmp.Diff(want, state.Messages); diff != "" || state.User != ann || state.HistoryID != changed.HistoryID {
		t.Errorf("mailbox (-want +got):\n%s", diff)
	}
	post(t, url+"/_fake/mailbox", `{"expire_history":true,"delete":["`+old+`"]}`, 200)
	_, err := client(t, url, ann).History.List("me").StartHistoryId(before).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")

	post(t, url+"/_fake/mailbox", `{"user":"nobody@example.com"}`, 404)
	post(t, url+"/_fake/mailbox", `{"adds":[]}`, 400)
	do(t, "GET", url+"/_fake/nothing", "", 404)
	if r := server.Meter(); r.User(ann).Calls != 1 {
		t.Errorf("%d calls metered, want 1: controls cost nothing", r.User(ann).Calls)
	}
}

func TestFaultControl(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	post(t, url+"/_fake/faults", `{"method":"gmail.users.getProfile","nth":1,"status":503}`, 200)
	post(t, url+"/_fake/faults", `[{"status":500,"count":1,"method":"gmail.users.labels.list"},{"delay_ms":1}]`, 200)
	_, err := client(t, url, ann).GetProfile("me").Do()
	wantError(t, err, 503, "Backend Error", "backendError", "UNAVAILABLE")
	states := decode[[]fault.State](t, do(t, "GET", url+"/_fake/faults", "", 200))
	if len(states) != 3 || states[0].Applied != 1 || states[0].Seen != 1 || states[1].Seen != 0 {
		t.Errorf("faults = %+v", states)
	}
	post(t, url+"/_fake/faults", `[{"status":500},{"status":5}]`, 400)
	post(t, url+"/_fake/faults", `{"stat":500}`, 400)
	if n := len(server.Faults()); n != 3 {
		t.Errorf("%d faults after two bad requests, want 3", n)
	}
	do(t, "DELETE", url+"/_fake/faults", "", 204)
	if _, err := client(t, url, ann).GetProfile("me").Do(); err != nil {
		t.Errorf("after DELETE: %v", err)
	}
}

func TestWire(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	list := url + "/gmail/v1/users/ann%40example.com/messages"
	if got := string(do(t, "GET", list+"?prettyPrint=false&alt=json", "", 200)); got != `{"resultSizeEstimate":0}`+"\n" {
		t.Errorf("empty list = %s, want no messages key", got)
	}
	if got := string(do(t, "GET", list, "", 200)); got != "{\n  \"resultSizeEstimate\": 0\n}\n" {
		t.Errorf("pretty list = %q", got)
	}
	if got := string(do(t, "GET", url+"/gmail/v1/users/me/profile?prettyPrint=false", "", 200)); !strings.Contains(got, `"historyId":"4200"`) {
		t.Errorf("profile = %s, want historyId as a string", got)
	}
	do(t, "GET", list+"?alt=media", "", 400)
	do(t, "GET", list+"?maxResults=many", "", 400)
	do(t, "GET", url+"/gmail/v1/users/me/drafts", "", 404)
	do(t, "POST", url+"/gmail/v1/users/me/drafts", "", 404)
	if n := server.Meter().Unrouted; n != 2 {
		t.Errorf("%d unrouted, want 2", n)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, list+"?prettyPrint=false", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip") // set by hand, so the client leaves the body alone
	resp, err := httpClient(t, "").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("Content-Encoding = %q, want gzip", resp.Header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != `{"resultSizeEstimate":0}`+"\n" {
		t.Errorf("gzip holds %q, %v", b, err)
	}
}
