package push

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/idtoken"
	"google.golang.org/api/option"
)

// Google is the issuer of the tokens that Pub/Sub sends.
const Google = "https://accounts.google.com"

// clockSkew is how far ahead the issuer's clock may be.
const clockSkew = 5 * time.Minute

// verifier checks identity tokens by Google's own library, which fetches the keys
// and keeps them for as long as their server says.
type verifier struct {
	want Gmail
	keys *keySource

	mu        sync.Mutex
	validator *idtoken.Validator
}

func newVerifier(want Gmail, base http.RoundTripper) (*verifier, error) {
	if want.Issuer == "" || want.Audience == "" || want.ServiceAccount == "" || want.Subscription == "" {
		return nil, errors.New("push: issuer, audience, service account and subscription of Gmail are required")
	}
	if base == nil {
		base = http.DefaultTransport
	}
	v := &verifier{want: want, keys: &keySource{base: base, issuer: want.Issuer}}
	return v, v.forget()
}

// forget drops the keys.
func (v *verifier) forget() error {
	validator, err := idtoken.NewValidator(context.Background(), option.WithHTTPClient(&http.Client{Transport: v.keys}))
	if err != nil {
		return fmt.Errorf("push: make a verifier of tokens: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.validator = validator
	return nil
}

func (v *verifier) current() *idtoken.Validator {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.validator
}

// tokenHead is the part of a token that says how it is signed.
type tokenHead struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

func headOf(token string) (h tokenHead, err error) {
	head, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}

// verify returns nil for an Authorization header that holds a token of the service
// account, for us, signed by the issuer and not expired.
func (v *verifier) verify(ctx context.Context, authorization string) error {
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return forged(http.StatusUnauthorized, errors.New("no bearer token"))
	}
	head, err := headOf(token)
	if err != nil || head.Algorithm != "RS256" { // the library knows another, with other keys
		return forged(http.StatusUnauthorized, fmt.Errorf("the token is signed by %q, not RS256", clip(head.Algorithm)))
	}
	if v.keys.outdated(head.KeyID) {
		if err := v.forget(); err != nil {
			return err
		}
	}
	payload, err := v.current().Validate(ctx, token, v.want.Audience)
	if unavailable, ok := errors.AsType[*keysError](err); ok {
		return unavailable
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return forged(http.StatusUnauthorized, err)
	}
	email, _ := payload.Claims["email"].(string)
	verified, _ := payload.Claims["email_verified"].(bool)
	switch {
	case !v.issued(payload.Issuer):
		return forged(http.StatusUnauthorized, fmt.Errorf("the token is issued by %q", clip(payload.Issuer)))
	case time.Unix(payload.IssuedAt, 0).After(time.Now().Add(clockSkew)):
		return forged(http.StatusUnauthorized, errors.New("the token is issued in the future; compare the clocks"))
	case !strings.EqualFold(email, v.want.ServiceAccount) || !verified:
		return forged(http.StatusForbidden, fmt.Errorf("the token is about %q (verified: %t), not our service account", clip(email), verified))
	}
	return nil
}

// issued reports whether an issuer is ours. Google leaves the scheme out at times.
func (v *verifier) issued(by string) bool {
	return by == v.want.Issuer || v.want.Issuer == Google && "https://"+by == Google
}
