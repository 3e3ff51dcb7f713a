package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Google is the issuer of the tokens that Pub/Sub sends.
const Google = "https://accounts.google.com"

// clockSkew is how far ahead the issuer's clock may be.
const clockSkew = 5 * time.Minute

// keysAge is how long keys are used before they are read again although every token
// names one of them, so that a withdrawn key is dropped.
const keysAge = time.Hour

// A keysError reports that the issuer's keys are unavailable, so that nothing is
// known of the token.
type keysError struct{ err error }

func (e *keysError) Error() string { return "keys of the issuer of tokens: " + e.err.Error() }
func (e *keysError) Unwrap() error { return e.err }

// A verifier checks identity tokens against the keys that their issuer publishes
// (OpenID Connect Discovery).
type verifier struct {
	want   Gmail
	keys   *keyCache
	client *http.Client

	mu     sync.Mutex
	tokens *oidc.IDTokenVerifier // nil until the issuer was read
	made   time.Time
}

func newVerifier(want Gmail, base http.RoundTripper) (*verifier, error) {
	if want.Issuer == "" || want.Audience == "" || want.ServiceAccount == "" || want.Subscription == "" {
		return nil, errors.New("push: issuer, audience, service account and subscription of Gmail are required")
	}
	if base == nil {
		base = http.DefaultTransport
	}
	keys := &keyCache{base: base}
	return &verifier{want: want, keys: keys, client: &http.Client{Transport: keys, Timeout: keysTimeout}}, nil
}

// current returns the verifier of the issuer's present keys. While the issuer cannot
// be read, the keys that are known stay in use.
func (v *verifier) current(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tokens != nil && time.Since(v.made) < keysAge {
		return v.tokens, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), v.client), v.want.Issuer)
	switch {
	case err == nil:
		v.tokens = provider.Verifier(&oidc.Config{ClientID: v.want.Audience, SupportedSigningAlgs: []string{oidc.RS256}})
		v.made = time.Now()
	case v.tokens == nil:
		return nil, &keysError{err}
	}
	return v.tokens, nil
}

// verify returns nil for an Authorization header that holds a token of the service
// account, for us, signed by the issuer and not expired.
func (v *verifier) verify(ctx context.Context, authorization string) error {
	text, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return forged(http.StatusUnauthorized, errors.New("no bearer token"))
	}
	tokens, err := v.current(ctx)
	if err != nil {
		return err
	}
	token, err := tokens.Verify(ctx, text)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if cause := v.keys.err(); cause != nil { // the library does not wrap it
			return &keysError{cause}
		}
		return forged(http.StatusUnauthorized, err)
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return forged(http.StatusUnauthorized, fmt.Errorf("read the token's claims: %w", err))
	}
	switch {
	case token.IssuedAt.After(time.Now().Add(clockSkew)):
		return forged(http.StatusUnauthorized, errors.New("the token is issued in the future; compare the clocks"))
	case !strings.EqualFold(claims.Email, v.want.ServiceAccount) || !claims.Verified:
		return forged(http.StatusForbidden, fmt.Errorf("the token is about %q (verified: %t), not our service account", clip(claims.Email), claims.Verified))
	}
	return nil
}
