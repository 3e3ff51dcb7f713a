package quota_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tripRig is a Google that answers as told, behind a transport.
type tripRig struct {
	t        *testing.T
	ledger   *quota.Ledger
	reg      *prometheus.Registry
	released *atomic.Int64 // slots
	tr       *quota.Transport
}

func newTripRig(t *testing.T, base http.RoundTripper) *tripRig {
	rdb := newClient(t, realRedis.Addr)
	rig := &tripRig{t: t, reg: prometheus.NewRegistry(), released: new(atomic.Int64)}
	rdb.AddHook(releaseHook{rig.released})
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, FailOpen: quota.NoFailOpen, KeyPrefix: ownPrefix(t), Fresh: true, Registerer: rig.reg,
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 100, 100_000)}}}})
	if err != nil {
		t.Fatal(err)
	}
	rig.ledger, rig.tr = ledger, &quota.Transport{Base: base, Limiter: ledger}
	return rig
}

// releaseHook counts the calls of release.lua.
type releaseHook struct{ n *atomic.Int64 }

func (h releaseHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h releaseHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h releaseHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if args := cmd.Args(); args[0] == "evalsha" && args[1] == quota.ReleaseHash {
				h.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

func (rig *tripRig) request(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(quota.WithCaller(ctx, ann(quota.Interactive)), http.MethodGet, "http://gmail.test/gmail/v1/users/me/messages/1?format=raw", nil)
	if err != nil {
		rig.t.Fatal(err)
	}
	return r
}

func (rig *tripRig) state() quota.FlightState {
	rig.t.Helper()
	s, err := rig.ledger.InFlight(rig.t.Context(), "p", "ann@example.com", "gmail")
	if err != nil {
		rig.t.Fatal(err)
	}
	return s
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestEveryEndGivesThePlaceBackOnce beside a call that has its place throughout.
func TestEveryEndGivesThePlaceBackOnce(t *testing.T) {
	ok := roundTrip(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, "0123456789"), nil })
	for _, test := range []struct {
		name  string
		base  roundTrip
		run   func(rig *tripRig)
		bytes int64
	}{
		{"read to the end, then closed twice", ok, func(rig *tripRig) {
			resp := rig.send(t.Context())
			if got := rig.state().InFlight; got != 2 {
				rig.t.Errorf("%d in flight before the body is read, want 2", got)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				rig.t.Error(err)
			}
			resp.Body.Close()
			resp.Body.Close()
		}, 10},
		{"closed in the middle", ok, func(rig *tripRig) {
			resp := rig.send(t.Context())
			if _, err := io.CopyN(io.Discard, resp.Body, 4); err != nil {
				rig.t.Error(err)
			}
			resp.Body.Close()
			resp.Body.Close()
		}, 4},
		{"without a body", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
		}, func(rig *tripRig) { rig.send(t.Context()) }, 0},
		{"the body fails", func(*http.Request) (*http.Response, error) {
			resp := answer(http.StatusOK, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("012"), failing{}))
			return resp, nil
		}, func(rig *tripRig) {
			resp := rig.send(t.Context())
			if body, err := io.ReadAll(resp.Body); string(body) != "012" || !errors.Is(err, errFailing) {
				rig.t.Errorf("read %q, %v", body, err)
			}
		}, 3},
		{"the context ends and nobody closes the body", ok, func(rig *tripRig) {
			ctx, cancel := context.WithCancel(t.Context())
			rig.send(ctx)
			cancel()
		}, 0},
		{"the request cannot be sent", func(*http.Request) (*http.Response, error) { return nil, errFailing }, func(rig *tripRig) {
			if _, err := rig.tr.RoundTrip(rig.request(t.Context())); !errors.Is(err, errFailing) {
				rig.t.Errorf("got %v", err)
			}
		}, 0},
		{"no units", ok, func(rig *tripRig) {
			if _, err := rig.ledger.Take(t.Context(), ann(quota.Interactive), "gmail", 90); err != nil {
				rig.t.Fatal(err)
			}
			var denied *quota.DeniedError
			if _, err := rig.tr.RoundTrip(rig.request(t.Context())); !errors.As(err, &denied) || denied.Limit != price.UserMinute {
				rig.t.Errorf("got %v, want a refusal for units", err)
			}
		}, 0},
		{"a panic in Observe", ok, func(rig *tripRig) {
			rig.tr.Observe = func(quota.Observation) { panic("observed") }
			defer func() {
				if recover() == nil {
					rig.t.Error("no panic")
				}
			}()
			rig.tr.RoundTrip(rig.request(t.Context()))
		}, 0},
		{"a refusal that nobody reads", func(*http.Request) (*http.Response, error) { return answer(http.StatusTooManyRequests, "enough"), nil },
			func(rig *tripRig) { rig.send(t.Context()) }, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			rig := newTripRig(t, test.base)
			other, err := rig.ledger.Try(t.Context(), quota.Call{Caller: ann(quota.Interactive), API: "gmail"})
			if err != nil {
				t.Fatal(err)
			}
			test.run(rig)
			for deadline := time.Now().Add(5 * time.Second); rig.state().InFlight > 1 && time.Now().Before(deadline); {
				wait(t.Context(), 5*time.Millisecond)
			}
			if s := rig.state(); s.InFlight != 1 || s.Bytes != test.bytes || rig.ledger.Slots() != 1 {
				t.Errorf("%+v, %d renewed, want the other call's place and %d bytes", s, rig.ledger.Slots(), test.bytes)
			}
			want := int64(1)
			if test.name == "no units" { // then it got no slot either
				want = 0
			}
			if got := rig.released.Load(); got != want {
				t.Errorf("the slot was released %d times, want %d", got, want)
			}
			if err := other.Release(t.Context(), outcome(0, quota.Refusal{})); err != nil {
				t.Error(err)
			}
		})
	}
}

func (rig *tripRig) send(ctx context.Context) *http.Response {
	rig.t.Helper()
	resp, err := rig.tr.RoundTrip(rig.request(ctx))
	if err != nil {
		rig.t.Fatal(err)
	}
	return resp
}

var errFailing = errors.New("cut off")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

const crowdedAnswer = `{"error":{"code":429,"message":"Too many concurrent requests for user.","errors":[{"reason":"rateLimitExceeded"}]}}`
const userAnswer = `{"error":{"code":403,"message":"Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute per user' of service 'gmail.googleapis.com'.","status":"PERMISSION_DENIED","errors":[{"reason":"rateLimitExceeded"}]}}`

// TestRefusalsReachTheLedgerAndTheCaller whatever their size.
func TestRefusalsReachTheLedgerAndTheCaller(t *testing.T) {
	for _, test := range []struct {
		name    string
		status  int
		body    string
		learned int64
		closed  bool
		scope   string
	}{
		{"calls in flight", 429, crowdedAnswer, 1, false, "concurrency"},
		{"the user's minute", 403, userAnswer, 0, true, "user"},
		{"longer than is read", 429, "<html>" + strings.Repeat("x", 200<<10), 0, true, "user"},
		{"just as long as is read", 429, strings.Repeat("y", 64<<10), 0, true, "user"},
		{"of another kind", 403, `{"error":{"code":403,"message":"Insufficient Permission","errors":[{"reason":"insufficientPermissions"}]}}`, 0, false, ""},
		{"no refusal by its status", 500, crowdedAnswer, 0, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			}))
			defer server.Close()
			rig := newTripRig(t, nil)
			r := rig.request(t.Context())
			r.URL.Host = strings.TrimPrefix(server.URL, "http://")
			resp, err := rig.tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != test.body {
				t.Errorf("the caller got %d bytes, %v, want all %d as they were", len(body), err, len(test.body))
			}
			if s := rig.state(); s.InFlight != 0 || s.Learned != test.learned || s.Bytes != int64(len(test.body)) {
				t.Errorf("%+v, want %d learned and all bytes", s, test.learned)
			}
			d, err := rig.ledger.Peek(t.Context(), ann(quota.Interactive), "gmail")
			if err != nil || !d.User.ClosedUntil.IsZero() != test.closed {
				t.Errorf("closed until %s, %v, want closed: %v", d.User.ClosedUntil, err, test.closed)
			}
			want := ""
			if test.scope != "" {
				want = fmt.Sprintf("# HELP headroom_quota_refusals_total Calls that Google refused for quota, those in batches included, by API and scope.\n"+
					"# TYPE headroom_quota_refusals_total counter\nheadroom_quota_refusals_total{api=\"gmail\",scope=%q} 1\n", test.scope)
			}
			if err := testutil.GatherAndCompare(rig.reg, strings.NewReader(want), "headroom_quota_refusals_total"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRefusalsAmongABatchsAnswers are told to the ledger, and the answer reaches
// its reader as it came, in whatever pieces.
func TestRefusalsAmongABatchsAnswers(t *testing.T) {
	part := func(status, body string) string {
		return "--answers\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n\r\n" + body + "\r\n"
	}
	text := "a preamble\r\n" + part("200 OK", strings.Repeat("HTTP/1.1 403 is only text here\n", 5000)) + part("429 Too Many Requests", crowdedAnswer) +
		part("403 Forbidden", userAnswer) + part("404 Not Found", userAnswer) + part("429 Too Many Requests", crowdedAnswer) + "--answers--\r\n"
	for _, size := range []int{1, 7, 4096} {
		rig := newTripRig(t, roundTrip(func(*http.Request) (*http.Response, error) {
			resp := answer(http.StatusOK, text)
			resp.Header.Set("Content-Type", "multipart/mixed; boundary=answers")
			return resp, nil
		}))
		line := "GET /gmail/v1/users/me/profile"
		r, err := http.NewRequestWithContext(quota.WithCaller(t.Context(), ann(quota.Interactive)), http.MethodPost,
			"http://gmail.test/batch/gmail/v1", strings.NewReader(batchOf(line, line, line, line, line)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/mixed; boundary="+boundary)
		resp, err := rig.tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, resp.Body, make([]byte, size)); err != nil || got.String() != text {
			t.Errorf("in pieces of %d: the caller got %d bytes, %v, want all %d", size, got.Len(), err, len(text))
		}
		// Five parts are five calls in flight to Google: fewer than five may be.
		if s := rig.state(); s.InFlight != 0 || s.Learned != 4 {
			t.Errorf("in pieces of %d: %+v, want 4 learned", size, s)
		}
		if d, err := rig.ledger.Peek(t.Context(), ann(quota.Interactive), "gmail"); err != nil || d.User.ClosedUntil.IsZero() {
			t.Errorf("in pieces of %d: the user is not closed, %v", size, err)
		}
		want := `# HELP headroom_quota_refusals_total Calls that Google refused for quota, those in batches included, by API and scope.
# TYPE headroom_quota_refusals_total counter
headroom_quota_refusals_total{api="gmail",scope="concurrency"} 2
headroom_quota_refusals_total{api="gmail",scope="user"} 1
`
		if err := testutil.GatherAndCompare(rig.reg, strings.NewReader(want), "headroom_quota_refusals_total"); err != nil {
			t.Errorf("in pieces of %d: %v", size, err)
		}
	}
}

// TestALongWaitForUnitsKeepsNoPlace: others may use it meanwhile.
func TestALongWaitForUnitsKeepsNoPlace(t *testing.T) {
	rig := newTripRig(t, roundTrip(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, "{}"), nil }))
	if _, err := rig.ledger.Take(t.Context(), ann(quota.Interactive), "gmail", 90); err != nil {
		t.Fatal(err)
	}
	caller := ann(quota.Interactive)
	caller.MaxWait = time.Hour
	ctx, cancel := context.WithCancel(quota.WithCaller(t.Context(), caller))
	done := make(chan error)
	go func() {
		_, err := rig.tr.RoundTrip(rig.request(t.Context()).WithContext(ctx))
		done <- err
	}()
	for range 10 {
		if s := rig.state(); s.InFlight != 0 || rig.ledger.Slots() != 0 {
			t.Errorf("%+v, want nobody in flight", s)
		}
		wait(t.Context(), 10*time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWaitingForAPlace: a call waits for a place of its own process, and is refused
// when none becomes free in time.
func TestWaitingForAPlace(t *testing.T) {
	url, _ := mailServer(t)
	rig := newTripRig(t, nil)
	service := gmailClient(t, url, rig.tr)
	var places []quota.Permit
	for range 10 {
		d, err := rig.ledger.Try(t.Context(), quota.Call{Caller: ann(quota.Interactive), API: "gmail"})
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, d)
	}
	call := func(maxWait time.Duration) error {
		caller := ann(quota.Interactive)
		caller.MaxWait = maxWait
		_, err := service.Users.Messages.List("me").Context(quota.WithCaller(t.Context(), caller)).Do()
		return err
	}
	for _, maxWait := range []time.Duration{0, 100 * time.Millisecond} {
		var denied *quota.DeniedError
		if err := call(maxWait); !errors.As(err, &denied) || denied.Bound != quota.BoundInFlight {
			t.Errorf("with a wait of %s: got %v, want a refusal for calls in flight", maxWait, err)
		}
	}
	done := make(chan error, 3)
	for _, maxWait := range []time.Duration{0, time.Minute, time.Minute} { // people wait a little in any case
		go func() { done <- call(maxWait) }()
	}
	for range cap(done) {
		if err := places[0].Release(t.Context(), outcome(0, quota.Refusal{})); err != nil {
			t.Fatal(err)
		}
		places = places[1:]
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
