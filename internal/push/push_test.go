package push_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap/zaptest"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/localredis"
	"headroom/internal/push"
	"headroom/internal/store/sqlite"
	"headroom/internal/store/storetest"
	"headroom/jobs"
)

// The seam of stores is at least what the receiver of pushes calls.
var _ push.Store = storetest.Store(nil)

const ann = "ann@example.com"

// rig is a handler with a store in which Ann's live sync has ended at history id
// 100, a Redis, and a fake Google that signs tokens.
type rig struct {
	t        *testing.T
	fake     *fakegoogle.Server
	push     gmail.Push
	store    *sqlite.Store
	redis    *redis.Client
	handler  *push.Handler
	registry *prometheus.Registry
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, registry: prometheus.NewRegistry(), push: gmail.Push{
		Audience: "https://headroom.example.com/push/gmail", ServiceAccount: "push@p.iam.gserviceaccount.com",
		Subscription: "projects/p/subscriptions/mail",
	}}
	r.fake = signer(t)
	var err error
	if r.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "headroom.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	r.redis = redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { r.redis.Close() })
	r.handler = r.process(r.registry)
	r.addAnn()
	return r
}

// signer is a fake Google that listens.
func signer(t *testing.T) *fakegoogle.Server {
	t.Helper()
	fake, err := fakegoogle.New(fakegoogle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return fake
}

// process is another handler on the same store and Redis.
func (r *rig) process(registry *prometheus.Registry) *push.Handler {
	r.t.Helper()
	base := &http.Transport{DisableKeepAlives: true}
	h, err := push.New(push.Options{
		Store: r.store, Redis: r.redis, Calendar: true, Base: base,
		Gmail: push.Gmail{Subscription: r.push.Subscription, Audience: r.push.Audience, ServiceAccount: r.push.ServiceAccount,
			Issuer: r.claims()["iss"].(string)},
		Log: zaptest.NewLogger(r.t), Registerer: registry,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) addAnn() {
	r.t.Helper()
	ctx := r.t.Context()
	if err := r.store.AddAccount(ctx, jobs.Account{Email: ann, Project: "p"}); err != nil {
		r.t.Fatal(err)
	}
	job, _, err := r.store.StartBackfill(ctx, ann, jobs.Filter{})
	if err == nil {
		job, err = r.store.Claim(ctx, job.Ref(), time.Hour)
	}
	if err == nil {
		err = r.store.SaveProfile(ctx, job.Ref(), jobs.Profile{Messages: 3, HistoryID: 100})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) asked() bool {
	r.t.Helper()
	c, err := r.store.Cursor(r.t.Context(), ann)
	if err != nil {
		r.t.Fatal(err)
	}
	return !c.AskedAt.IsZero()
}

func (r *rig) claims() map[string]any { return r.fake.Claims(r.push, time.Now()) }

// token signs the usual claims, with some of them changed.
func (r *rig) token(changed map[string]any) string {
	r.t.Helper()
	claims := r.claims()
	for name, value := range changed {
		claims[name] = value
	}
	token, err := r.fake.SignIDToken(claims)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *rig) envelope(user string, history uint64, id string) []byte {
	r.t.Helper()
	body, err := r.push.Envelope(user, history, id, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return body
}

func send(h http.Handler, path, token string, body io.Reader) int {
	r := httptest.NewRequest(http.MethodPost, path, body)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func (r *rig) gmail(token string, body []byte) int {
	return send(r.handler, push.GmailPath, token, bytes.NewReader(body))
}

// counted is how many pushes of a source had an outcome.
func (r *rig) counted(source, outcome string) float64 {
	r.t.Helper()
	return counts(r.t, r.registry)[source+" "+outcome]
}

// counts are how many pushes had each source and outcome.
func counts(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			n[labels["source"]+" "+labels["outcome"]] = m.GetCounter().GetValue()
		}
	}
	return n
}

func TestAGenuinePushAsksForASync(t *testing.T) {
	r := newRig(t)
	if got := r.gmail(r.token(nil), r.envelope("Ann@example.com", 101, "1")); got != http.StatusNoContent || !r.asked() {
		t.Errorf("push = %d, asked %t", got, r.asked())
	}
	if n := r.counted("gmail", "asked"); n != 1 {
		t.Errorf("%v counted as asked", n)
	}
	calls := r.fake.IdentityCalls()
	for i := range 5 {
		r.gmail(r.token(nil), r.envelope(ann, 102, fmt.Sprint("again ", i)))
	}
	if n := r.fake.IdentityCalls() - calls; n != 0 {
		t.Errorf("the keys were asked for %d more times, want them kept", n)
	}
}

func TestForgedPushesAreRefused(t *testing.T) {
	r := newRig(t)
	body := r.envelope(ann, 101, "1")
	other, err := signer(t).SignIDToken(r.claims())
	if err != nil {
		t.Fatal(err)
	}
	good := strings.Split(r.token(nil), ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + good[1] + "."
	keyed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"x"}`)) + "." + good[1] + "." + good[2]
	elliptic := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"x"}`)) + "." + good[1] + "." + good[2]
	foreign := strings.Split(r.token(map[string]any{"email": "mallory@example.com"}), ".")
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":                   {"", 401},
		"no JWT":                     {"hello", 401},
		"another's key":              {other, 401},
		"alg none":                   {unsigned, 401},
		"an HMAC":                    {keyed, 401},
		"keys of another service":    {elliptic, 401},
		"claims that were exchanged": {good[0] + "." + foreign[1] + "." + good[2], 401},
		"another audience":           {r.token(map[string]any{"aud": "https://other.example.com"}), 401},
		"another issuer":             {r.token(map[string]any{"iss": push.Google}), 401},
		"expired":                    {r.token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), 401},
		"no expiry":                  {r.token(map[string]any{"exp": nil}), 401},
		"issued tomorrow":            {r.token(map[string]any{"iat": time.Now().Add(24 * time.Hour).Unix()}), 401},
		"another account":            {r.token(map[string]any{"email": "other@p.iam.gserviceaccount.com"}), 403},
		"an address not verified":    {r.token(map[string]any{"email_verified": false}), 403},
		"no address":                 {r.token(map[string]any{"email": nil}), 403},
	} {
		if got := r.gmail(tc.token, body); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	r.push.Subscription = "projects/p/subscriptions/other"
	if got := r.gmail(r.token(nil), r.envelope(ann, 101, "1")); got != http.StatusForbidden {
		t.Errorf("another subscription: %d, want 403", got)
	}
	if r.asked() {
		t.Error("a sync was asked for")
	}
	if n := r.counted("gmail", "forged"); n != 16 {
		t.Errorf("%v counted as forged, want 16", n)
	}
}

func TestReplayedPushesDoNothing(t *testing.T) {
	r := newRig(t)
	body := r.envelope(ann, 101, "1")
	r.gmail(r.token(nil), body)
	other := prometheus.NewRegistry()
	replica := r.process(other)
	for range 3 {
		if got := send(replica, push.GmailPath, r.token(nil), bytes.NewReader(body)); got != http.StatusNoContent {
			t.Errorf("a replayed push = %d, want success, or it comes again", got)
		}
	}
	if diff := cmp.Diff(map[string]float64{"gmail repeated": 3}, counts(t, other)); diff != "" {
		t.Errorf("the other process counted (-want +got):\n%s", diff)
	}
	ttl, err := r.redis.TTL(t.Context(), "headroom:push:gmail:1").Result()
	if err != nil || ttl <= 0 || ttl > time.Hour {
		t.Errorf("the message is remembered for %s, %v", ttl, err)
	}
	// Remembered or not, what the store has is not asked for.
	if got := r.gmail(r.token(nil), r.envelope(ann, 100, "2")); got != http.StatusNoContent || r.counted("gmail", "known") != 1 {
		t.Errorf("a push of what is known = %d", got)
	}
}

func TestPushesThatMakeNoSenseAreRefused(t *testing.T) {
	r := newRig(t)
	big := bytes.Repeat([]byte("x"), 1<<17)
	token := r.token(nil)
	for name, tc := range map[string]struct {
		body io.Reader
		want int
	}{
		"empty":                      {strings.NewReader(""), 400},
		"no JSON":                    {strings.NewReader("hello"), 400},
		"no message":                 {strings.NewReader("{}"), 400},
		"data that is no base64":     {strings.NewReader(`{"message":{"data":"%%%","messageId":"1"}}`), 400},
		"no address":                 {bytes.NewReader(r.envelope("", 101, "1")), 400},
		"no history id":              {bytes.NewReader(r.envelope(ann, 0, "1")), 400},
		"no message id":              {bytes.NewReader(r.envelope(ann, 101, "")), 400},
		"too long, and says so":      {bytes.NewReader(big), 413},
		"too long, without a length": {io.MultiReader(bytes.NewReader(big)), 413},
	} {
		if got := send(r.handler, push.GmailPath, token, tc.body); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	if got := send(r.handler, push.GmailPath, "", bytes.NewReader(big)); got != 413 {
		t.Errorf("too long from a stranger: %d", got)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, push.GmailPath, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET = %d", w.Code)
	}
	// A number in quotes, as in Google's documentation.
	data := base64.StdEncoding.EncodeToString([]byte(`{"emailAddress": "ann@example.com", "historyId": "101"}`))
	text := fmt.Sprintf(`{"message":{"data":%q,"messageId":"9"},"subscription":%q,"deliveryAttempt":5}`, data, r.push.Subscription)
	if got := r.gmail(token, []byte(text)); got != http.StatusNoContent || !r.asked() {
		t.Errorf("a history id in quotes: %d", got)
	}
	if got := r.gmail(token, r.envelope("nobody@example.com", 5, "3")); got != http.StatusNoContent || r.counted("gmail", "unknown") != 1 {
		t.Errorf("an unknown account: %d, want success, or it comes again", got)
	}
}

// TestPushesOutliveOutages: without keys a push is asked for again, and without
// Redis it is taken.
func TestPushesOutliveOutages(t *testing.T) {
	r := newRig(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	defer dead.Close()
	r.redis.Close()
	if got := r.gmail(r.token(nil), r.envelope(ann, 101, "1")); got != http.StatusNoContent || !r.asked() {
		t.Errorf("without Redis: %d, asked %t", got, r.asked())
	}
	h, err := push.New(push.Options{Store: r.store, Redis: r.redis, Log: zaptest.NewLogger(t), Registerer: prometheus.NewRegistry(),
		Base:  &http.Transport{DisableKeepAlives: true},
		Gmail: push.Gmail{Issuer: dead.URL, Audience: r.push.Audience, ServiceAccount: r.push.ServiceAccount, Subscription: r.push.Subscription}})
	if err != nil {
		t.Fatal(err)
	}
	if got := send(h, push.GmailPath, r.token(map[string]any{"iss": dead.URL}), bytes.NewReader(r.envelope(ann, 102, "2"))); got != http.StatusServiceUnavailable {
		t.Errorf("without keys: %d, want 503", got)
	}
}

func TestCalendarPushes(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	job, _, err := r.store.StartCalendarSync(ctx, ann)
	if err == nil {
		job, err = r.store.Claim(ctx, job.Ref(), time.Hour)
	}
	if err == nil {
		hash := sha256.Sum256([]byte("secret"))
		err = r.store.AddChannel(ctx, job.Ref(), jobs.Channel{ID: "c1", TokenHash: hash[:],
			WatchKey: jobs.WatchKey{Kind: jobs.WatchCalendar, Calendar: "work"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	push := func(changed map[string]string, body io.Reader) int {
		q := httptest.NewRequest(http.MethodPost, push.CalendarPath, body)
		for name, value := range map[string]string{"X-Goog-Channel-ID": "c1", "X-Goog-Channel-Token": "secret", "X-Goog-Resource-ID": "r1",
			"X-Goog-Resource-State": "exists", "X-Goog-Message-Number": "10"} {
			q.Header.Set(name, value)
		}
		for name, value := range changed {
			q.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return w.Code
	}
	asked := func() bool {
		l, err := r.store.CalendarList(ctx, ann)
		if err != nil {
			t.Fatal(err)
		}
		return !l.AskedAt.IsZero()
	}
	for _, tc := range []struct {
		name    string
		changed map[string]string
		body    io.Reader
		want    int
		outcome string
	}{
		{"no token", map[string]string{"X-Goog-Channel-Token": ""}, nil, 401, "forged"},
		{"another token", map[string]string{"X-Goog-Channel-Token": "guess"}, nil, 403, "forged"},
		{"no number", map[string]string{"X-Goog-Message-Number": ""}, nil, 400, "malformed"},
		{"a number below zero", map[string]string{"X-Goog-Message-Number": "-1"}, nil, 400, "malformed"},
		{"a number beyond all", map[string]string{"X-Goog-Message-Number": "18446744073709551615"}, nil, 400, "malformed"},
		{"no channel", map[string]string{"X-Goog-Channel-ID": ""}, nil, 400, "malformed"},
		{"an unknown channel", map[string]string{"X-Goog-Channel-ID": "c2"}, nil, 204, "unknown"},
		{"too long", nil, bytes.NewReader(bytes.Repeat([]byte("x"), 1<<17)), 413, "oversized"},
		{"the first message", map[string]string{"X-Goog-Resource-State": "sync", "X-Goog-Message-Number": "1"}, nil, 204, "known"},
	} {
		before := r.counted("calendar", tc.outcome)
		if got := push(tc.changed, tc.body); got != tc.want || r.counted("calendar", tc.outcome) != before+1 {
			t.Errorf("%s: %d, want %d counted as %s", tc.name, got, tc.want, tc.outcome)
		}
	}
	if asked() {
		t.Error("a sync was asked for")
	}
	if got := push(map[string]string{"X-Goog-Resource-ID": "r2"}, nil); got != 403 {
		t.Errorf("another resource: %d, want 403", got)
	}
	stray := map[string]string{"X-Goog-Channel-ID": "headroom-x", "X-Goog-Channel-Token": jobs.ChannelToken("s", ann)}
	if got := push(stray, nil); got != 204 {
		t.Errorf("a channel with our mark that nobody knows: %d", got)
	}
	if c, err := r.store.Channel(ctx, "headroom-x"); err != nil || c.State != jobs.ChannelStray || c.Resource != "r1" || asked() {
		t.Errorf("it is kept as %+v, %v, want it to be stopped", c, err)
	}
	if got := push(nil, nil); got != 204 || !asked() || r.counted("calendar", "asked") != 1 {
		t.Errorf("a change: %d, asked %t", got, asked())
	}
	if got := push(nil, nil); got != 204 || r.counted("calendar", "repeated") != 1 {
		t.Errorf("the same again: %d", got)
	}
}
