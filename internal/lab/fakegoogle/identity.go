package fakegoogle

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"sync"

	"headroom/internal/lab/fakegoogle/wire"
)

// signer has the key that identity tokens are signed with, made when it is first
// needed.
type signer struct {
	once sync.Once
	key  *rsa.PrivateKey
	id   string
	err  error
}

func (s *signer) ready() error {
	s.once.Do(func() {
		if s.key, s.err = rsa.GenerateKey(rand.Reader, 2048); s.err == nil {
			sum := sha256.Sum256(s.key.N.Bytes())
			s.id = hex.EncodeToString(sum[:20])
		}
	})
	return s.err
}

var base64url = base64.RawURLEncoding

// SignIDToken makes an identity token (a JWT, RS256) of any claims.
func (s *Server) SignIDToken(claims map[string]any) (string, error) {
	if err := s.signer.ready(); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	head, err := wire.EncodeJSON(map[string]string{"alg": "RS256", "typ": "JWT", "kid": s.signer.id})
	if err != nil {
		return "", err
	}
	body, err := wire.EncodeJSON(claims)
	if err != nil {
		return "", err
	}
	text := base64url.EncodeToString(head) + "." + base64url.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.signer.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text + "." + base64url.EncodeToString(signature), nil
}

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/oauth2/v3/certs"
)

func isIdentity(r *http.Request) bool {
	return r.URL.Path == discoveryPath || r.URL.Path == keysPath
}

type discoveryAnswer struct {
	Issuer     string   `json:"issuer"`
	JWKSURI    string   `json:"jwks_uri"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

type keySet struct {
	Keys []publicKey `json:"keys"`
}

type publicKey struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

// serveIdentity serves an OpenID provider's discovery document and its keys.
func (s *Server) serveIdentity(w http.ResponseWriter, r *http.Request) {
	s.identityCalls.Add(1)
	issuer := "http://" + r.Host
	w.Header().Set("Cache-Control", "public, max-age=3600")
	if r.URL.Path == discoveryPath {
		sendJSON(w, http.StatusOK, discoveryAnswer{issuer, issuer + keysPath, []string{"RS256"}})
		return
	}
	if err := s.signer.ready(); err != nil {
		sendJSON(w, http.StatusInternalServerError, controlError{err.Error()})
		return
	}
	public := s.signer.key.PublicKey
	sendJSON(w, http.StatusOK, keySet{[]publicKey{{
		KeyType: "RSA", Use: "sig", Algorithm: "RS256", ID: s.signer.id,
		Modulus:  base64url.EncodeToString(public.N.Bytes()),
		Exponent: base64url.EncodeToString(big.NewInt(int64(public.E)).Bytes()),
	}}})
}

// IdentityCalls counts the requests for the discovery document and for the keys.
func (s *Server) IdentityCalls() int64 { return s.identityCalls.Load() }
