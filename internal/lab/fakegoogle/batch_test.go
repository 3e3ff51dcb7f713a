package fakegoogle_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
)

// inBatch is one call of a batch: its id, and its request with headers.
type inBatch struct{ id, request string }

// gets asks for a message n times; the ids are 0 to n-1.
func gets(message string, n int) []inBatch {
	calls := make([]inBatch, n)
	for i := range calls {
		calls[i] = inBatch{fmt.Sprint(i), "GET /gmail/v1/users/me/messages/" + message + "?format=raw"}
	}
	return calls
}

// postBatch sends a batch as a plain client would.
func postBatch(t *testing.T, url, token string, calls ...inBatch) (*http.Response, []byte, error) {
	t.Helper()
	var body bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&body, "--b1\r\nContent-Type: application/http\r\nContent-ID: <%s>\r\n\r\n%s\r\n\r\n", c.id, c.request)
	}
	body.WriteString("--b1--")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "multipart/mixed; boundary=b1")
	resp, err := httpClient(t, token).Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp, answer, err
}

// answered is the answer to one call of a batch.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// batch sends a batch and takes the answer apart, by the ids of the calls and in
// the order in which they came.
func batch(t *testing.T, url, token string, calls ...inBatch) (answers map[string]answered, order []string) {
	t.Helper()
	resp, body, err := postBatch(t, url, token, calls...)
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" || resp.StatusCode != 200 {
		t.Fatalf("%s with %q: %s", resp.Status, resp.Header.Get("Content-Type"), body)
	}
	answers = map[string]answered{}
	for parts := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return answers, order
		}
		if err != nil {
			t.Fatal(err)
		}
		id, ok := strings.CutPrefix(strings.TrimSuffix(part.Header.Get("Content-ID"), ">"), "<response-")
		if !ok || part.Header.Get("Content-Type") != "application/http" {
			t.Errorf("part has the headers %v", part.Header)
		}
		inner, err := http.ReadResponse(bufio.NewReader(part), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(inner.Body)
		if err != nil {
			t.Errorf("answer %s: %v", id, err)
		}
		answers[id] = answered{inner.StatusCode, inner.Header, text}
		order = append(order, id)
	}
}

// statuses counts the answers by their status.
func statuses(answers map[string]answered) map[int]int {
	n := map[int]int{}
	for _, a := range answers {
		n[a.status]++
	}
	return n
}

func TestBatchAnswersEachCallByItself(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	server.AddMailbox(bob)
	for _, path := range []string{"/batch/gmail/v1", "/batch"} {
		answers, _ := batch(t, url+path, ann,
			inBatch{"profile", "GET /gmail/v1/users/me/profile"},
			inBatch{"message@example.com", "GET " + url + "/gmail/v1/users/me/messages/" + id + "?format=minimal&fields=id HTTP/1.1\r\nAccept: application/json"},
			inBatch{"relative", "GET gmail/v1/users/me/labels"},
			inBatch{"gone", "GET /gmail/v1/users/me/messages/19ffffffffffffff HTTP/1.1"},
			inBatch{"bob", "GET /gmail/v1/users/me/profile HTTP/1.1\r\nAuthorization: Bearer " + bob + "\r\nX-Goog-User-Project: two"},
			inBatch{"nobody", "GET /gmail/v1/users/me/profile HTTP/1.1\r\nAuthorization: Bearer nobody"},
			inBatch{"unknown", "GET /gmail/v1/users/me/novelties"},
			inBatch{"calendar", "GET /calendar/v3/users/me/calendarList"},
			inBatch{"nested", "POST /batch/gmail/v1 HTTP/1.1"},
		)
		for name, want := range map[string]int{"profile": 200, "message@example.com": 200, "relative": 200, "gone": 404,
			"bob": 200, "nobody": 401, "unknown": 404, "calendar": 404, "nested": 404} {
			if got := answers[name]; got.status != want || got.header.Get("Content-Type") != "application/json; charset=UTF-8" || !json.Valid(got.body) {
				t.Errorf("%s: %s answered %d %v %s, want %d", path, name, got.status, got.header, got.body, want)
			}
		}
		if got := answers["message@example.com"].body; string(bytes.TrimSpace(got)) != "{\n  \"id\": \""+id+"\"\n}" {
			t.Errorf("message = %s", got)
		}
		if got := answers["bob"].body; !bytes.Contains(got, []byte(bob)) {
			t.Errorf("a call with a token of its own = %s", got)
		}
	}
	r := server.Meter()
	want := map[string]int64{"gmail.users.getProfile": 2, "gmail.users.messages.get": 4, "gmail.users.labels.list": 2}
	if user := r.User(ann); user.Units != 2*(1+20+1+20) || user.Calls != 8 || fmt.Sprint(user.CallsByMethod) != fmt.Sprint(want) {
		t.Errorf("meter of ann = %+v, want %v", user, want)
	}
	if user := r.User(bob); user.Units != 2 || user.Project != "two" || r.Unauthenticated != 2 || r.Unrouted != 6 {
		t.Errorf("meter of bob = %+v, %d unauthenticated, %d unrouted", user, r.Unauthenticated, r.Unrouted)
	}
}

func TestBatchIsRefusedCallByCall(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 100})
	id := server.AddMailbox(ann).Add(mail(1))
	answers, _ := batch(t, url+"/batch/gmail/v1", ann, gets(id, 8)...)
	if got := statuses(answers); got[200] != 5 || got[403] != 3 {
		t.Errorf("answers = %v, want 5 times 200 and 3 times 403", got)
	}
	for id, a := range answers {
		if a.status == 403 && (!bytes.Contains(a.body, []byte("rateLimitExceeded")) || id < "5") {
			t.Errorf("refusal of %s = %s, want the last three", id, a.body)
		}
	}
	user := server.Meter().User(ann)
	if user.Units != 160 || user.UnitsAdmitted != 100 || user.Refusals[meter.RefusedUserUnits] != 3 || user.Fetches != 5 || user.Refetched != 4 {
		t.Errorf("meter = %+v", user)
	}
}

// TestBatchIsAsManyCallsInFlight: all calls of a batch are under way at once.
func TestBatchIsAsManyCallsInFlight(t *testing.T) {
	server, url := start(t, fakegoogle.Options{InFlightLimit: 20, Latency: 50 * time.Millisecond})
	id := server.AddMailbox(ann).Add(mail(1))
	began := time.Now()
	answers, _ := batch(t, url+"/batch", ann, gets(id, 40)...)
	if took := time.Since(began); took > 20*50*time.Millisecond {
		t.Errorf("took %s: the calls were answered one after another", took)
	}
	if got := statuses(answers); got[200] != 20 || got[429] != 20 {
		t.Errorf("answers = %v, want 20 of each", got)
	}
	if user := server.Meter().User(ann); user.MostInFlight != 21 || user.Refusals[meter.RefusedConcurrency] != 20 {
		t.Errorf("meter = %+v", user)
	}
	if answers, _ := batch(t, url+"/batch", ann, gets(id, 20)...); statuses(answers)[200] != 20 {
		t.Errorf("afterwards: %v, want room for 20 again", statuses(answers))
	}
}

func TestBatchAnswersInNoOrderButTheSeeds(t *testing.T) {
	orders := map[uint64][]string{}
	for range 2 {
		for _, seed := range []uint64{1, 2} {
			server, url := start(t, fakegoogle.Options{Seed: seed})
			_, order := batch(t, url+"/batch", ann, gets(server.AddMailbox(ann).Add(mail(1)), 10)...)
			if before := orders[seed]; before != nil && !slices.Equal(before, order) {
				t.Errorf("seed %d: %v, then %v", seed, before, order)
			}
			orders[seed] = order
		}
	}
	if slices.Equal(orders[1], orders[2]) || slices.IsSorted(orders[1]) || len(orders[1]) != 10 {
		t.Errorf("orders = %v, want two different ones", orders)
	}
}

func TestBatchOfCalendarReachesCalendarOnly(t *testing.T) {
	server, url := start(t, fakegoogle.Options{InFlightLimit: 1000, CalendarUserLimit: 1000})
	server.AddMailbox(ann)
	var calls []inBatch
	for i := range 1000 {
		calls = append(calls, inBatch{fmt.Sprint(i), "GET /calendar/v3/calendars/ann%40example.com/events"})
	}
	calls[0].request = "GET /gmail/v1/users/me/profile"
	answers, _ := batch(t, url+"/batch/calendar/v3", ann, calls...)
	if statuses(answers)[200] != 999 || server.Meter().Unrouted != 1 || server.Meter().User(ann).Calls != 0 {
		t.Errorf("answers = %v, %d unrouted", statuses(answers), server.Meter().Unrouted)
	}
}

func TestBatchFaults(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	addFault(t, server, fault.Fault{Nth: 2, Status: 503})
	answers, _ := batch(t, url+"/batch", ann, gets(id, 3)...)
	if answers["0"].status != 200 || answers["1"].status != 503 || answers["2"].status != 200 {
		t.Errorf("answers = %v, want 503 for the second call only", statuses(answers))
	}
	fetches := server.Meter().User(ann).Fetches
	for _, f := range []fault.Fault{{Nth: 2, Close: true}, {Nth: 3, Truncate: true}} {
		server.ClearFaults()
		addFault(t, server, f)
		if resp, _, err := postBatch(t, url+"/batch", ann, gets(id, 3)...); err == nil {
			t.Errorf("%+v: %s, want the whole batch cut", f, resp.Status)
		}
	}
	if got := server.Meter().User(ann); got.Fetches != fetches || got.Calls != 9 {
		t.Errorf("meter = %+v, want nothing of a cut batch counted as delivered", got)
	}
}

func TestBatchThatIsNone(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	for name, row := range map[string]struct {
		contentType, body, want string
	}{
		"JSON":            {"application/json", "{}", "is not multipart/mixed"},
		"nothing":         {"multipart/mixed; boundary=b", "--b--", "0 items"},
		"cut":             {"multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\nGET /", "EOF"},
		"text":            {"multipart/mixed; boundary=b", "--b\r\nContent-Type: text/plain\r\n\r\nGET /\r\n--b--", "request 1: Content-Type"},
		"no request line": {"multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\nhello\r\n--b--", "request 1: request line"},
		"empty":           {"multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\n\r\n--b--", "request 1: no request line"},
		"bad headers":     {"multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\nGET / HTTP/1.1\r\n: x\r\n\r\n\r\n--b--", "request 1: headers"},
		"too many":        {"multipart/mixed; boundary=b", strings.Repeat("--b\r\nContent-Type: application/http\r\n\r\nGET /\r\n", 101) + "--b--", "more than 100"},
		"too large":       {"multipart/mixed; boundary=b", "--b\r\nContent-Type: application/http\r\n\r\nGET /\r\n\r\n" + strings.Repeat("x", 9<<20) + "\r\n--b--", "too large"},
	} {
		resp, err := httpClient(t, ann).Post(url+"/batch/gmail/v1", row.contentType, strings.NewReader(row.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 400 || !bytes.Contains(body, []byte(row.want)) {
			t.Errorf("%s: %s %s, want 400 with %q", name, resp.Status, body, row.want)
		}
	}
	resp, err := httpClient(t, ann).Get(url + "/batch")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 || server.Meter().User(ann).Calls != 0 {
		t.Errorf("a GET = %s, want 404", resp.Status)
	}
}
