package push

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// keyServer answers after a second, or not at all.
type keyServer struct {
	oidctest.Server
	keys atomic.Int64 // requests for them
	down atomic.Bool
}

func (s *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/keys" {
		s.keys.Add(1)
	}
	time.Sleep(time.Second)
	if s.down.Load() {
		return nil, errors.New("down")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// Strangers can name keys that do not exist. The keys are requested no more than
// once a minute for it, and while the issuer is down the known keys stay in use.
func TestKnownKeysOutliveInventedIDs(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server := &keyServer{Server: oidctest.Server{
			PublicKeys: []oidctest.PublicKey{{PublicKey: private.Public(), KeyID: "a", Algorithm: oidc.RS256}},
		}}
		const issuer = "https://issuer.example.com"
		server.SetIssuer(issuer)
		v, err := newVerifier(Gmail{Subscription: "s", Issuer: issuer, Audience: "us", ServiceAccount: "push@example.com"}, server)
		if err != nil {
			t.Fatal(err)
		}
		verify := func(key string) error {
			claims, err := json.Marshal(map[string]any{"iss": issuer, "aud": "us", "email": "push@example.com", "email_verified": true,
				"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()})
			if err != nil {
				t.Fatal(err)
			}
			return v.verify(t.Context(), "Bearer "+oidctest.SignIDToken(private, key, oidc.RS256, string(claims)))
		}
		for minute := range 2 {
			for range 30 {
				if err := verify("a"); err != nil {
					t.Fatal(err)
				}
				if refused, ok := errors.AsType[*refusal](verify("invented")); !ok || refused.status != http.StatusUnauthorized {
					t.Fatalf("an invented key: %v", refused)
				}
			}
			if n := server.keys.Load(); n != int64(minute)+1 {
				t.Errorf("minute %d: %d requests for the keys", minute, n)
			}
			time.Sleep(keysFreshFor)
		}
		server.down.Store(true)
		for range 30 { // in less than keysPause
			if _, ok := errors.AsType[*keysError](verify("invented")); !ok {
				t.Fatal("an unknown key was judged although the keys are unavailable")
			}
			if err := verify("a"); err != nil {
				t.Fatalf("a known key, while the issuer is down: %v", err)
			}
		}
		if n := server.keys.Load(); n != 3 {
			t.Errorf("%d requests for the keys, want one for all that came meanwhile", n)
		}
		time.Sleep(keysAge)
		if err := verify("a"); err != nil {
			t.Errorf("a known key, after an hour: %v", err)
		}
		server.down.Store(false)
		server.PublicKeys = nil
		time.Sleep(keysPause)
		if refused, ok := errors.AsType[*refusal](verify("a")); !ok || refused.status != http.StatusUnauthorized {
			t.Errorf("a key that was withdrawn over an hour ago is still taken: %v", refused)
		}
	})
}
