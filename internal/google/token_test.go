package google

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
)

var testKey = sync.OnceValues(func() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
})

// writeKey writes a service account's key file that fetches tokens from url.
func writeKey(t *testing.T, url string, change func(map[string]string)) string {
	t.Helper()
	private, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{"type": "service_account", "client_email": "sync@example.com", "client_id": "1",
		"private_key_id": "k", "private_key": string(private), "token_uri": url + "/token"}
	if change != nil {
		change(fields)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newDelegated is a mailbox read with a service account's tokens.
func newDelegated(t *testing.T) (*fakegoogle.Server, *gmail.Mailbox, *Mailbox) {
	t.Helper()
	fake, box, url := newFake(t, fakegoogle.Options{})
	g := newTestGoogle(t, Options{Endpoint: url, Projects: map[string]Project{project: {Credentials: writeKey(t, url, nil)}}})
	return fake, box, open(t, g)
}

func TestManyCallsShareOneToken(t *testing.T) {
	fake, _, url := newFake(t, fakegoogle.Options{})
	g := newTestGoogle(t, Options{Endpoint: url, Projects: map[string]Project{project: {Credentials: writeKey(t, url, nil)}}})
	m := open(t, g)
	m.caller.MaxWait = 10 * time.Second // for a place: ten calls may be in flight at once
	fifty := func(when string, wantTokens int64) (refused int64) {
		t.Helper()
		before := fake.Activity(meter.Filter{User: ann.Email})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := m.Profile(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		after := fake.Activity(meter.Filter{User: ann.Email})
		if tokens, calls := fake.Meter().TokenCalls[ann.Email], after.Statuses[http.StatusOK]-before.Statuses[http.StatusOK]; tokens != wantTokens || calls != 50 {
			t.Errorf("%s: %d tokens fetched, %d calls answered; want %d and 50", when, tokens, calls, wantTokens)
		}
		return fake.Meter().Unauthenticated
	}
	fifty("at first", 1)
	resp, err := http.Post(url+"/_fake/mailbox", "application/json", strings.NewReader(`{"user":"`+ann.Email+`","revoke_access_tokens":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if refused := fifty("once the token is worth nothing", 2); resp.StatusCode != http.StatusOK || refused == 0 || refused > 50 {
		t.Errorf("revoking answered %s; then %d calls were refused, want each call refused once at most", resp.Status, refused)
	}
}

func TestARefusedTokenIsReplacedOnce(t *testing.T) {
	for _, tt := range []struct {
		name          string
		refusals      int
		calls, tokens int64
		class         jobs.Class // "": the call succeeds
	}{
		{"refused once", 1, 2, 2, ""},
		{"refused again", 2, 2, 2, jobs.ClassAccount},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake, _, m := newDelegated(t)
			if err := fake.AddFault(fault.Fault{Method: "gmail.users.getProfile", Reason: "authError", From: 1, Count: tt.refusals}); err != nil {
				t.Fatal(err)
			}
			_, err := m.Profile(t.Context())
			call, _ := errors.AsType[*jobs.CallError](err)
			if (tt.class == "") != (err == nil) || (call != nil && call.Class != tt.class) {
				t.Errorf("got %v, want class %q", err, tt.class)
			}
			report := fake.Meter()
			user := report.User(ann.Email)
			if tokens := report.TokenCalls[ann.Email]; user.Calls != tt.calls || tokens != tt.tokens {
				t.Errorf("%d calls with %d tokens, want %d with %d", user.Calls, tokens, tt.calls, tt.tokens)
			}
			used, err := m.google.opts.Ledger.Peek(t.Context(), m.caller, "gmail")
			if err != nil || used.Usage[0].Used != user.Units {
				t.Errorf("the ledger charged %+v, %v, want %d units: each attempt", used.Usage, err, user.Units)
			}
		})
	}
}

func TestTheTokenEndpointsAnswersHaveTheirClass(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  fault.Fault
		class  jobs.Class
		reason string
		says   string
	}{
		{"revoked", fault.Fault{Reason: "invalid_grant"}, jobs.ClassAccount, "invalid_grant", "suspended"},
		{"clock or key wrong", fault.Fault{Reason: "invalid_grant", Message: "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."}, jobs.ClassProject, "invalid_grant", "clock"},
		{"not delegated", fault.Fault{Reason: "unauthorized_client"}, jobs.ClassProject, "unauthorized_client", "domain-wide delegation"},
		{"policy", fault.Fault{Reason: "admin_policy_enforced"}, jobs.ClassAccount, "admin_policy_enforced", "administrators"},
		{"unknown code", fault.Fault{Reason: "deleted_client"}, jobs.ClassProject, "deleted_client", "credentials"},
		{"passing code", fault.Fault{Reason: "temporarily_unavailable"}, jobs.ClassTransient, "temporarily_unavailable", ""},
		{"code with a server fault", fault.Fault{Reason: "invalid_grant", Status: 503}, jobs.ClassTransient, "tokenEndpoint", "503"},
		{"too many requests", fault.Fault{Status: 429, Body: `{"error":"rate_limit_exceeded","error_description":"Rate limit exceeded."}`}, jobs.ClassQuota, "tokenEndpoint", "429"},
		{"a quota answer of the API's kind", fault.Fault{Status: 403, Body: `{"error":{"code":403,"message":"Quota exceeded","errors":[{"reason":"rateLimitExceeded","domain":"usageLimits"}]}}`}, jobs.ClassQuota, "rateLimitExceeded", "for quota"},
		{"error page", fault.Fault{Status: 403, HTML: true}, jobs.ClassTransient, "tokenEndpoint", "403"},
		{"reset", fault.Fault{Close: true}, jobs.ClassTransient, "tokenEndpoint", ""},
		{"no token in it", fault.Fault{Status: 200, Body: "{}"}, jobs.ClassTransient, "tokenEndpoint", "no access token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake, _, m := newDelegated(t)
			tt.fault.Method = "token"
			if err := fake.AddFault(tt.fault); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					_, err := m.Profile(t.Context())
					call, ok := errors.AsType[*jobs.CallError](err)
					if !ok || call.Class != tt.class || call.Reason != tt.reason || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("got %v, want %s, %s, saying %q", err, tt.class, tt.reason, tt.says)
					}
				})
			}
			all.Wait()
			report := fake.Meter()
			if tokens := report.TokenCalls[ann.Email]; tokens > 2 {
				t.Errorf("ten calls asked the token endpoint %d times, want once, or twice across the second that failures are remembered", tokens)
			}
			if calls := report.User(ann.Email).Calls; calls != 0 {
				t.Errorf("%d calls were made without a token", calls)
			}
		})
	}
}

func TestAFailureIsRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int64
		fails := error(&oauth2.RetrieveError{Response: &http.Response{StatusCode: 400}, Body: []byte(`{"error":"invalid_grant"}`)})
		s := newTokenSource(func(context.Context) (*oauth2.Token, error) {
			fetches.Add(1)
			if fails != nil {
				return nil, fails
			}
			return &oauth2.Token{AccessToken: "t", Expiry: time.Now().Add(time.Hour)}, nil
		})
		expect := func(when string, ok bool, want int64) {
			t.Helper()
			if _, err := s.get(t.Context()); (err == nil) != ok || fetches.Load() != want {
				t.Errorf("%s: %v after %d fetches, want success %v and %d", when, err, fetches.Load(), ok, want)
			}
		}
		expect("at first", false, 1)
		expect("at once again", false, 1)
		time.Sleep(rememberPermanent)
		fails = errors.New("connection refused")
		expect("after the grant's failure is forgotten", false, 2)
		time.Sleep(rememberTransient)
		fails = nil
		expect("after a passing one is forgotten", true, 3)
		time.Sleep(59 * time.Minute)
		expect("while the token lasts", true, 3)
		time.Sleep(time.Minute)
		expect("after it expired", true, 4)
	})
}

func TestWaitingForATokenEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenSource(func(ctx context.Context) (*oauth2.Token, error) {
			<-ctx.Done()
			return nil, errors.New("cut off")
		})
		first, cancelFirst := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancelFirst()
		second, cancelSecond := context.WithTimeout(t.Context(), time.Second)
		defer cancelSecond()
		done := make(chan error, 1)
		go func() {
			_, err := s.get(first)
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		if _, err := s.get(second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("second in line: %v after %s, want its own deadline at 1s", err, time.Since(start))
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("first in line: %v, want its own deadline", err)
		}
		if s.failure != nil {
			t.Errorf("a cut-off fetch was remembered as the failure %v", s.failure)
		}
	})
}

func TestAHangingTokenEndpointIsCutOff(t *testing.T) {
	fake, _, m := newDelegated(t)
	if err := fake.AddFault(fault.Fault{Method: "token", Hang: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := m.Profile(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	fake.ClearFaults()
	if _, err := m.Profile(t.Context()); err != nil {
		t.Errorf("the next call found %v, want the cut-off fetch forgotten", err)
	}
}

func TestARedirectDoesNotGetTheToken(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(server.Close)
	_, err := open(t, newTestGoogle(t, Options{Endpoint: server.URL})).Profile(t.Context())
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassTransient {
		t.Errorf("got %v, want class %s", err, jobs.ClassTransient)
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}

func TestNewReadsCredentials(t *testing.T) {
	const url = "http://127.0.0.1:1"
	ledger := newLedger(t, 10)
	for _, tt := range []struct {
		name string
		opts Options
		says string // "": fine
	}{
		{"address as token", Options{Endpoint: url, Projects: map[string]Project{project: {}}}, ""},
		{"a key for Google itself", Options{Projects: map[string]Project{project: {Credentials: writeKey(t, url, nil)}}}, ""},
		{"no credentials for Google itself", Options{Projects: map[string]Project{project: {}}}, "project p has no credentials"},
		{"no such file", Options{Projects: map[string]Project{project: {Credentials: "/no/key.json"}}}, "/no/key.json"},
		{"another kind of key", Options{Projects: map[string]Project{project: {Credentials: writeKey(t, url, func(f map[string]string) { f["type"] = "authorized_user" })}}}, "no service account's key"},
		{"a key without PEM", Options{Projects: map[string]Project{project: {Credentials: writeKey(t, url, func(f map[string]string) { f["private_key"] = "x" })}}}, "download the key again"},
		{"a key cut short", Options{Projects: map[string]Project{project: {Credentials: writeKey(t, url, func(f map[string]string) {
			f["private_key"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
		})}}}, "download the key again"},
		{"endpoint that is no URL", Options{Endpoint: "localhost:80", Projects: map[string]Project{project: {}}}, "no http or https URL"},
		{"negative budget", Options{Endpoint: url, Budget: -1}, "budget"},
	} {
		tt.opts.Ledger = ledger
		g, err := New(tt.opts)
		if tt.says == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			} else {
				g.Close()
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want an error that says %q", tt.name, err, tt.says)
		}
	}
	if _, err := New(Options{Endpoint: url}); err == nil {
		t.Error("New accepted options without a ledger")
	}
}
