package fakegoogle

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/wire"
)

// tokenLifetime is how long an access token lasts, in real time: it is no quota.
const tokenLifetime = time.Hour

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// refreshPrefix is how Google's refresh tokens begin. The fake takes the address
// of a mailbox as its refresh token, with or without the prefix.
const refreshPrefix = "1//"

// tokenTable knows the access tokens that were given out.
type tokenTable struct {
	mu     sync.Mutex
	issued map[string]issuedToken
	serial int
	calls  map[string]int64 // by user
}

type issuedToken struct {
	user    string
	expires time.Time
	service string // the service account that asked for it; "" where a person did
}

func newTokenTable() *tokenTable {
	return &tokenTable{issued: map[string]issuedToken{}, calls: map[string]int64{}}
}

// user returns whose a token is, while it lasts.
func (t *tokenTable) user(token string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	issued, ok := t.issued[token]
	if !ok || !time.Now().Before(issued.expires) {
		return "", false
	}
	return issued.user, true
}

// serviceAccount returns the service account that a token was issued to; "" where
// there is none.
func (t *tokenTable) serviceAccount(token string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.issued[token].service
}

func (t *tokenTable) issue(user, service string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	token := fmt.Sprintf("ya29.fake-%d-%s", t.serial, base64.RawURLEncoding.EncodeToString([]byte(user)))
	t.issued[token] = issuedToken{user: user, expires: time.Now().Add(tokenLifetime), service: service}
	return token
}

// revoke makes the access tokens of a user worthless.
func (t *tokenTable) revoke(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.issued, func(_ string, issued issuedToken) bool { return issued.user == user })
}

func (t *tokenTable) count(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[user]++
}

func (t *tokenTable) callsByUser() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
	TokenType   string `json:"token_type"`
}

type tokenError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// serveToken is the OAuth token endpoint. It checks no secret and no signature:
// a refresh token or the subject of an assertion only names the user.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		sendJSON(w, http.StatusMethodNotAllowed, tokenError{"invalid_request", "The token endpoint takes POST only"})
		return
	}
	if err := r.ParseForm(); err != nil {
		sendJSON(w, http.StatusBadRequest, tokenError{"invalid_request", err.Error()})
		return
	}
	box, refusal := s.grantee(r)
	user := ""
	if box != nil {
		user = wire.AddressKey(box.Email())
	}
	s.tokens.count(user)
	if fault, ok := s.faults.Match(meter.Call{User: user, Method: fault.MethodToken, Project: project(r)}); ok {
		if s.applyTokenFault(w, r, fault) {
			return
		}
	}
	if box == nil {
		sendJSON(w, http.StatusBadRequest, refusal)
		return
	}
	sendJSON(w, http.StatusOK, tokenAnswer{
		AccessToken: s.tokens.issue(user, issuer(r)), ExpiresIn: int(tokenLifetime/time.Second) - 1,
		Scope: "https://www.googleapis.com/auth/gmail.readonly https://www.googleapis.com/auth/calendar", TokenType: "Bearer",
	})
}

// grantee returns whom a grant names, or nil and why it is refused.
func (s *Server) grantee(r *http.Request) (*gmail.Mailbox, tokenError) {
	switch r.PostFormValue("grant_type") {
	case "refresh_token":
		if box := s.Mailbox(strings.TrimPrefix(r.PostFormValue("refresh_token"), refreshPrefix)); box != nil {
			return box, tokenError{}
		}
		return nil, tokenError{"invalid_grant", "Token has been expired or revoked."}
	case jwtBearer:
		_, subject, err := assertionClaims(r.PostFormValue("assertion"))
		if err != nil {
			return nil, tokenError{"invalid_grant", "Invalid JWT: " + err.Error()}
		}
		if box := s.Mailbox(subject); box != nil {
			return box, tokenError{}
		}
		return nil, tokenError{"invalid_grant", "Invalid email or User ID"} // unverified
	}
	return nil, tokenError{"unsupported_grant_type", "Invalid grant_type: " + r.PostFormValue("grant_type")}
}

// issuer is the service account that asks for a token; "" where a person does.
func issuer(r *http.Request) string {
	issuer, _, _ := assertionClaims(r.PostFormValue("assertion"))
	return issuer
}

// assertionClaims decodes a JWT as far as its issuer and its subject; its
// signature is not looked at.
func assertionClaims(assertion string) (issuer, subject string, err error) {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return "", "", fmt.Errorf("%d parts, want 3", len(parts))
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return "", "", fmt.Errorf("decode the claims: %w", err)
	}
	var named struct {
		Iss string `json:"iss"`
		Sub string `json:"sub"`
	}
	if err := json.Unmarshal(claims, &named); err != nil {
		return "", "", fmt.Errorf("read the claims: %w", err)
	}
	return named.Iss, named.Sub, nil
}

// applyTokenFault is applyFault with OAuth's form of errors.
func (s *Server) applyTokenFault(w http.ResponseWriter, r *http.Request, f fault.Fault) bool {
	if f.Reason == "" || f.Body != "" || f.HTML {
		return f.Apply(s.life, w, r, func(int) {}, func() wire.Reply { return wire.Reply{Status: http.StatusOK, ContentType: wire.JSONType} })
	}
	wire.Pause(s.life, time.Duration(f.DelayMS)*time.Millisecond, r.Context().Done())
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	status := http.StatusBadRequest
	if f.Reason == "unauthorized_client" {
		status = http.StatusUnauthorized
	}
	sendJSON(w, cmp.Or(f.Status, status), tokenError{f.Reason, cmp.Or(f.Message, tokenMessages[f.Reason])})
	return true
}

// tokenMessages are Google's words for the codes of its token endpoint.
var tokenMessages = map[string]string{
	"invalid_grant":       "Token has been expired or revoked.",
	"unauthorized_client": "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the scopes requested.",
}

// sendJSON answers outside the API: the token endpoint and the controls.
func sendJSON(w http.ResponseWriter, status int, v any) {
	body, err := wire.EncodeJSON(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}\n")
	}
	a := wire.Reply{Status: status, ContentType: wire.JSONType, Body: body}
	_ = a.Send(w)
}
