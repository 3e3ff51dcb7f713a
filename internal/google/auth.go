package google

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/oauth2"
	oauthgoogle "golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
)

// authTransport adds the account's token to every request, and repeats a request once
// with a new token if Google refused the first. It never modifies the given request.
type authTransport struct {
	tokens *tokenSource
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. A second attempt goes through next like
// the first, so it is charged too.
func (t *authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, token, err := t.attempt(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || (r.Body != nil && r.Body != http.NoBody) {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again; an error's body is short
	resp.Body.Close()
	if err := t.tokens.refuse(r.Context(), token); err != nil {
		return nil, err
	}
	resp, _, err = t.attempt(r)
	return resp, err
}

func (t *authTransport) attempt(r *http.Request) (*http.Response, *oauth2.Token, error) {
	token, err := t.tokens.get(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, nil, err
	}
	authorized := r.Clone(r.Context())
	token.SetAuthHeader(authorized)
	resp, err := t.next.RoundTrip(authorized)
	return resp, token, err
}

// A keyFile is a service account's key. It is read again when its file has changed, so
// a rotated key needs no restart. It is safe for concurrent use.
type keyFile struct {
	path string
	log  *zap.Logger

	mu   sync.Mutex
	key  *jwt.Config
	seen os.FileInfo // of the file when the key was read
}

func newKeyFile(path string, log *zap.Logger) (*keyFile, error) {
	seen, _ := os.Stat(path) // reading the file reports what is wrong
	key, err := readKey(path)
	return &keyFile{path: path, log: log, key: key, seen: seen}, err
}

// current returns the key in the file, or the last one that could be read.
func (f *keyFile) current() jwt.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	if err != nil || f.seen != nil && os.SameFile(now, f.seen) && now.ModTime().Equal(f.seen.ModTime()) && now.Size() == f.seen.Size() {
		return *f.key
	}
	f.seen = now
	key, err := readKey(f.path)
	if err != nil {
		f.log.Error("the project's key has changed and cannot be read; the one before stays in use", zap.Error(err))
		return *f.key
	}
	f.log.Info("the project's key was read again, since its file has changed", zap.String("path", f.path))
	f.key = key
	return *f.key
}

// readKey reads a service account's key file, and checks now what would otherwise
// fail with the first token.
func readKey(path string) (*jwt.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the service account's key: %w", err)
	}
	key, err := oauthgoogle.JWTConfigFromJSON(data, Scope)
	if err != nil {
		return nil, fmt.Errorf("%s is no service account's key (create one in the Google Cloud console, as JSON): %w", path, err)
	}
	block, _ := pem.Decode(key.PrivateKey)
	if block == nil {
		return nil, fmt.Errorf("%s: private_key is not in PEM form; download the key again", path)
	}
	_, err8 := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, err1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err8 != nil && err1 != nil {
		return nil, fmt.Errorf("%s: private_key cannot be read; download the key again: %w", path, errors.Join(err8, err1))
	}
	return key, nil
}

// isBadAssertion reports whether an invalid_grant is about the signed request
// (its times, its signature) and not about the user.
func isBadAssertion(description string) bool {
	return strings.HasPrefix(description, "Invalid JWT") || strings.HasPrefix(description, "Invalid signature")
}
