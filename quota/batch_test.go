package quota_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"headroom/quota"
	"headroom/quota/price"
)

const boundary = "batch_of_tests"

// batchOf writes the body of a batch of request lines.
func batchOf(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "--%s\r\nContent-Type: application/http\r\nContent-ID: <item-%d>\r\n\r\n%s\r\n\r\n", boundary, i, line)
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return b.String()
}

func repeat(line string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line
	}
	return lines
}

// batchRig is a ledger and a server behind a Transport.
type batchRig struct {
	t        *testing.T
	url      string
	client   *http.Client
	ledger   *quota.Ledger
	observed []quota.Observation

	mu       sync.Mutex
	received []string // bodies
}

func newBatchRig(t *testing.T, userUnits int64, base http.RoundTripper) *batchRig {
	calendar, err := price.Load("calendar-2026-05")
	if err == nil {
		calendar, err = calendar.WithLimit(price.UserMinute, 2000)
	}
	if err != nil {
		t.Fatal(err)
	}
	rig := &batchRig{t: t}
	rig.ledger = newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, userUnits, 100000), calendar}}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength >= 0 && r.ContentLength != int64(len(body)) {
			t.Errorf("the server read %d of %d bytes: %v", len(body), r.ContentLength, err)
		}
		rig.mu.Lock()
		rig.received = append(rig.received, string(body))
		rig.mu.Unlock()
		if r.URL.Query().Has("moved") {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	rig.url = server.URL
	rig.client = &http.Client{Transport: &quota.Transport{Base: base, Limiter: rig.ledger,
		Observe: func(o quota.Observation) { rig.observed = append(rig.observed, o) }}}
	return rig
}

func (rig *batchRig) caller() quota.Caller {
	return quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
}

// post sends a batch, with a body that can be read only once.
func (rig *batchRig) post(path, body string, headers ...string) error {
	rig.t.Helper()
	r, err := http.NewRequestWithContext(quota.WithCaller(rig.t.Context(), rig.caller()), http.MethodPost, rig.url+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		rig.t.Fatal(err)
	}
	return rig.do(r, headers...)
}

func (rig *batchRig) do(r *http.Request, headers ...string) error {
	rig.t.Helper()
	r.Header.Set("Content-Type", `multipart/mixed; boundary="`+boundary+`"`)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := rig.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		rig.t.Errorf("answered %s", resp.Status)
	}
	return nil
}

// used is what the ledger has charged the user for an API.
func (rig *batchRig) used(api string) int64 {
	rig.t.Helper()
	d, err := rig.ledger.Peek(rig.t.Context(), rig.caller(), api)
	if err != nil {
		rig.t.Fatal(err)
	}
	return d.Usage[len(d.Usage)-1].Used
}

func TestBatchIsChargedPerPart(t *testing.T) {
	for name, row := range map[string]struct {
		path, api string
		lines     []string
		want      int64
	}{
		"a part":               {"/batch/gmail/v1", "gmail", []string{"GET /gmail/v1/users/me/messages/1?format=raw HTTP/1.1"}, 20},
		"every form of line":   {"/batch/gmail/v1", "gmail", []string{"GET /gmail/v1/users/me/profile", "GET gmail/v1/users/me/profile", "GET https://gmail.googleapis.com/gmail/v1/users/me/messages?q=x HTTP/1.1", "\r\nPOST /gmail/v1/users/me/messages/send HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"}, 1 + 1 + 5 + 100},
		"escaped ids":          {"/batch/gmail/v1", "gmail", []string{"GET /gmail/v1/users/ann%40example.com/labels/a%2Fb"}, 1},
		"behind a proxy":       {"/proxy//batch/gmail/v1/", "gmail", repeat("GET /gmail/v1/users/me/profile", 3), 3},
		"escaped endpoint":     {"/%62atch/gmail/v1", "gmail", repeat("GET /gmail/v1/users/me/profile", 3), 3},
		"as many as may be":    {"/batch/gmail/v1", "gmail", repeat("GET /gmail/v1/users/me/profile", 100), 100},
		"an unknown method":    {"/batch/gmail/v1", "gmail", []string{"GET /gmail/v1/users/me/novelties", "GET /gmail/v1/users/me/profile"}, 100 + 1},
		"another API's path":   {"/batch/gmail/v1", "gmail", []string{"GET /drive/v3/files", "DELETE http:nonsense"}, 100 + 100},
		"the API by its parts": {"/batch", "gmail", []string{"GET /novelties", "GET /gmail/v1/users/me/messages/1"}, 100 + 20},
		"a calendar":           {"/batch/calendar/v3?alt=json", "calendar", []string{"GET /calendar/v3/calendars/a%40b.com/events", "DELETE /calendar/v3/calendars/x/events/1"}, 2},
		"many calendars":       {"/batch/calendar/v3", "calendar", repeat("GET /calendar/v3/users/me/calendarList", 1000), 1000},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newBatchRig(t, 6000, nil)
			body := batchOf(row.lines...)
			if err := rig.post(row.path, body); err != nil {
				t.Fatal(err)
			}
			if got := rig.used(row.api); got != row.want {
				t.Errorf("%d units were charged, want %d", got, row.want)
			}
			if len(rig.received) != 1 || rig.received[0] != body {
				t.Errorf("received %d bodies, want the one that was sent, unchanged", len(rig.received))
			}
			want := quota.Observation{Caller: rig.caller(), Method: quota.Method{API: row.api, ID: quota.MethodBatch}, Cost: row.want}
			if len(rig.observed) != 1 || rig.observed[0].Method != want.Method || rig.observed[0].Cost != want.Cost || rig.observed[0].Err != nil {
				t.Errorf("observed %+v, want %+v", rig.observed, want)
			}
		})
	}
}

// TestBatchIsRefusedAsAWhole: nothing is charged or sent when the sum does not
// fit, though each part alone would.
func TestBatchIsRefusedAsAWhole(t *testing.T) {
	rig := newBatchRig(t, 100, nil)
	if err := rig.post("/batch/gmail/v1", batchOf(repeat("GET /gmail/v1/users/me/messages/1", 3)...)); err != nil {
		t.Fatal(err)
	}
	err := rig.post("/batch/gmail/v1", batchOf(repeat("GET /gmail/v1/users/me/messages/1", 3)...))
	denied, ok := errors.AsType[*quota.DeniedError](err)
	if !ok || denied.Cost != 60 || denied.Used != 60 {
		t.Errorf("got %v, want a refusal of 60 units", err)
	}
	if rig.used("gmail") != 60 || len(rig.received) != 1 {
		t.Errorf("%d units charged and %d batches sent, want those of the first", rig.used("gmail"), len(rig.received))
	}
	if last := rig.observed[len(rig.observed)-1]; last.Cost != 60 || last.Err == nil {
		t.Errorf("observed %+v, want the refusal", last)
	}
	rig = newBatchRig(t, 100, nil)
	err = rig.post("/batch/gmail/v1", batchOf(repeat("GET /gmail/v1/users/me/messages/1", 6)...))
	if !errors.Is(err, quota.ErrNeverFits) {
		t.Errorf("120 units at a limit of 100: got %v, want ErrNeverFits", err)
	}
}

func TestBatchThatCannotBePriced(t *testing.T) {
	profile := "GET /gmail/v1/users/me/profile"
	good := batchOf(profile)
	for name, row := range map[string]struct {
		path, body string
		headers    []string
		want       string
	}{
		"no body":            {"/batch/gmail/v1", "", nil, "find part 1"},
		"no parts":           {"/batch/gmail/v1", "--" + boundary + "--\r\n", nil, "has no parts"},
		"JSON":               {"/batch/gmail/v1", "{}", []string{"Content-Type", "application/json"}, `Content-Type is "application/json"`},
		"no boundary":        {"/batch/gmail/v1", good, []string{"Content-Type", "multipart/mixed"}, "with a boundary"},
		"another boundary":   {"/batch/gmail/v1", good, []string{"Content-Type", "multipart/mixed; boundary=x"}, "find part 1: multipart: NextPart: EOF"},
		"cut short":          {"/batch/gmail/v1", good[:len(good)-30], nil, "find part 2: multipart: NextPart: EOF"},
		"compressed":         {"/batch/gmail/v1", good, []string{"Content-Encoding", "gzip"}, `Content-Encoding "gzip"; send it plain`},
		"too many":           {"/batch/gmail/v1", batchOf(repeat(profile, 101)...), nil, "more than 100 parts"},
		"too many, bare":     {"/batch", batchOf(repeat(profile, 101)...), nil, "more than 100 parts"},
		"too many calendars": {"/batch/calendar/v3", batchOf(repeat("GET /calendar/v3/colors", 1001)...), nil, "more than 1000 parts"},
		"too large":          {"/batch/gmail/v1", batchOf(profile + "\r\n\r\n" + strings.Repeat("x", 8<<20)), nil, "more than 8388608 bytes"},
		"mixed":              {"/batch/gmail/v1", batchOf(profile, "GET /calendar/v3/colors"), nil, "part 2 calls calendar in a batch of gmail"},
		"mixed, bare":        {"/batch", batchOf("GET /calendar/v3/colors", profile), nil, "part 2 calls gmail in a batch of calendar"},
		"neither API":        {"/batch", batchOf("GET /drive/v3/files"), nil, "none of its parts calls Gmail or Calendar"},
		"nested":             {"/batch/gmail/v1", batchOf(profile, "POST /batch/gmail/v1"), nil, "part 2: it is a batch itself"},
		"no request line":    {"/batch/gmail/v1", batchOf("hello"), nil, `part 1: "hello" is no request line`},
		"empty part":         {"/batch/gmail/v1", batchOf(""), nil, "part 1: find its request line"},
		"no address":         {"/batch/gmail/v1", batchOf("GET http://[ HTTP/1.1"), nil, "part 1: read its address"},
		"part of text":       {"/batch/gmail/v1", strings.Replace(good, "application/http", "text/plain", 1), nil, `part 1: its Content-Type is "text/plain"`},
		"part in base64":     {"/batch/gmail/v1", strings.Replace(good, "Content-ID: <item-0>", "Content-Transfer-Encoding: base64", 1), nil, `part 1: its Content-Transfer-Encoding is "base64"`},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newBatchRig(t, 6000, nil)
			err := rig.post(row.path, row.body, row.headers...)
			if !errors.Is(err, quota.ErrBatch) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want ErrBatch with %q", err, row.want)
			}
			if used := rig.used("gmail") + rig.used("calendar"); used != 0 || len(rig.received) != 0 {
				t.Errorf("%d units charged and %d batches sent, want none", used, len(rig.received))
			}
		})
	}
}

// TestBatchIsNoOther: what is no batch is charged as before.
func TestBatchIsNoOther(t *testing.T) {
	rig := newBatchRig(t, 6000, nil)
	if err := rig.post("/gmail/v1/users/me/messages/batchModify", "{}"); err != nil {
		t.Fatal(err)
	}
	if got := rig.used("gmail"); got != 50 {
		t.Errorf("batchModify costs %d, want 50", got)
	}
	r, err := http.NewRequestWithContext(quota.WithCaller(t.Context(), rig.caller()), http.MethodGet, rig.url+"/batch/gmail/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.do(r); !errors.Is(err, quota.ErrUnknownProject) {
		t.Errorf("a GET of the endpoint: got %v, want it refused as a call of no API", err)
	}
}

// TestBatchAttemptsAreCharged: a batch that a redirection makes the client send
// again is charged again.
func TestBatchAttemptsAreCharged(t *testing.T) {
	rig := newBatchRig(t, 6000, nil)
	body := batchOf("GET /gmail/v1/users/me/messages/1", "GET /gmail/v1/users/me/profile")
	r, err := http.NewRequestWithContext(quota.WithCaller(t.Context(), rig.caller()), http.MethodPost, rig.url+"/batch/gmail/v1?moved", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.do(r); err != nil {
		t.Fatal(err)
	}
	if got := rig.used("gmail"); got != 42 || len(rig.received) != 2 || rig.received[1] != body {
		t.Errorf("%d units for %d attempts, want 42 for two", got, len(rig.received))
	}
}

// TestBatchSurvivesADeadConnection: net/http sends a request again on a new
// connection when none of it went out on the old one, if it can read the body a
// second time. That is no second call of Google, and charged once.
func TestBatchSurvivesADeadConnection(t *testing.T) {
	var broken atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &breakable{Conn: conn, broken: &broken}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	rig := newBatchRig(t, 6000, transport)
	body := batchOf("GET /gmail/v1/users/me/messages/1")
	for range 2 {
		if err := rig.post("/batch/gmail/v1", body); err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
	}
	if broken.Load() != true || len(rig.received) != 2 || rig.received[1] != body || rig.used("gmail") != 40 {
		t.Errorf("%d batches received and %d units charged, want 2 and 40", len(rig.received), rig.used("gmail"))
	}
}

// breakable is a connection that fails the next write after broken was set.
type breakable struct {
	net.Conn
	broken *atomic.Bool
}

func (c *breakable) Write(p []byte) (int, error) {
	if c.broken.CompareAndSwap(true, false) {
		return 0, errors.New("the connection is dead")
	}
	return c.Conn.Write(p)
}

// FuzzBatchCalls: whatever the body holds, a batch is refused, or each of its
// calls belongs to its API and their number is within the bounds.
func FuzzBatchCalls(f *testing.F) {
	f.Add("gmail", "multipart/mixed; boundary="+boundary, []byte(batchOf("GET /gmail/v1/users/me/profile", "\r\nPOST x HTTP/1.1")))
	f.Add("", "multipart/mixed; boundary=b", []byte("--b\nContent-Type: application/http\n\nGET /calendar/v3/colors\n--b--"))
	f.Add("calendar", "multipart/mixed; boundary=\"\"", []byte("--\r\n\r\n----"))
	f.Fuzz(func(t *testing.T, api, contentType string, body []byte) {
		if api != "" && api != "gmail" && api != "calendar" {
			api = ""
		}
		got, calls, err := quota.BatchCalls(api, contentType, body)
		if err != nil {
			if !errors.Is(err, quota.ErrBatch) || calls != nil {
				t.Errorf("got %v with %d calls", err, len(calls))
			}
			return
		}
		if len(calls) == 0 || len(calls) > 1000 || got != "gmail" && got != "calendar" || api != "" && got != api {
			t.Errorf("%d calls of %q, asked for %q", len(calls), got, api)
		}
		for _, call := range calls {
			if call.API != got || call.ID != "" && !strings.HasPrefix(call.ID, got+".") {
				t.Errorf("%+v in a batch of %s", call, got)
			}
		}
	})
}
