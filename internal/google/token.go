package google

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"headroom/jobs"
	"headroom/quota"
)

// Bounds on fetching a token, and how long a failure is remembered, so that all calls
// that wait for a token learn of it from one request.
const (
	tokenTimeout       = 30 * time.Second
	rememberTransient  = time.Second
	rememberPermanent  = 30 * time.Second
	maxTokenErrorWords = 300
)

// A tokenSource is the one source of an account's access tokens. It is safe for
// concurrent use: callers wait for a fetch in flight, at most until their context ends.
type tokenSource struct {
	fetch func(context.Context) (*oauth2.Token, error)
	scope string // of the tokens, if they are not for Gmail

	turn chan struct{} // a semaphore of one that guards the fields below

	token       *oauth2.Token
	failure     error
	failedUntil time.Time
}

func newTokenSource(fetch func(context.Context) (*oauth2.Token, error)) *tokenSource {
	s := &tokenSource{fetch: fetch, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// get returns a valid token. Errors are a *tokenError or the context's.
func (s *tokenSource) get(ctx context.Context) (*oauth2.Token, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	if s.token.Valid() {
		return s.token, nil
	}
	if time.Now().Before(s.failedUntil) {
		return nil, s.failure
	}
	token, err := s.fetch(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx) // shows nothing about the next fetch
	}
	if err != nil {
		failed := sortTokenError(err)
		if s.scope != "" {
			failed.text = strings.ReplaceAll(failed.text, Scope, s.scope)
		}
		remember := rememberPermanent
		switch failed.class {
		case jobs.ClassProject:
			remember = 0 // the project's gate remembers it, for all accounts
		case jobs.ClassTransient:
			remember = rememberTransient
		case jobs.ClassQuota:
			remember = min(failed.wait, rememberPermanent)
		}
		s.failure, s.failedUntil = failed, time.Now().Add(remember)
		return nil, failed
	}
	s.token = token
	return token, nil
}

// refuse drops a token that Google did not accept, unless it was already replaced. It
// fails only with ctx.
func (s *tokenSource) refuse(ctx context.Context, token *oauth2.Token) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	if s.token == token {
		s.token = nil
	}
	return nil
}

// delegated fetches tokens for a user with a service account's key.
func delegated(file *keyFile, scope, user string, base http.RoundTripper, m *metrics) func(context.Context) (*oauth2.Token, error) {
	return func(ctx context.Context) (*oauth2.Token, error) {
		key := file.current()
		key.Subject, key.Scopes = user, []string{scope}
		ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
		defer cancel()
		client := &http.Client{Transport: bound{ctx, base}}
		token, err := key.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
		if err != nil {
			m.tokens.WithLabelValues("failed").Inc()
			return nil, err
		}
		if token.AccessToken == "" {
			m.tokens.WithLabelValues("failed").Inc()
			return nil, errors.New("the token endpoint's answer holds no access token")
		}
		m.tokens.WithLabelValues("ok").Inc()
		return token, nil
	}
}

// bound sends requests under a context of its own, because a JWT token source takes
// none.
type bound struct {
	ctx  context.Context
	base http.RoundTripper
}

func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.base.RoundTrip(r.WithContext(b.ctx))
}

// A tokenError reports why a token could not be fetched.
type tokenError struct {
	class  jobs.Class
	reason string        // OAuth's error code, if there is one
	wait   time.Duration // until the next fetch, if the class is quota or project
	domain bool          // a project's cause that concerns one domain and scope only
	text   string
	err    error
}

func (e *tokenError) Error() string { return e.text }
func (e *tokenError) Unwrap() error { return e.err }

// hintUndelegated tells what to do if a domain has not granted a scope.
const hintUndelegated = hintDelegation + " (it takes minutes, at times a day)"

// tokenRules maps the error codes of the token endpoint to their meaning. Other codes
// mean that the project's credentials are not in order.
var tokenRules = map[string]struct {
	class jobs.Class
	hint  string
}{
	"invalid_grant":           {jobs.ClassAccount, "check that the user exists and is not suspended"},
	"access_denied":           {jobs.ClassProject, hintUndelegated}, // the former name of unauthorized_client
	"admin_policy_enforced":   {jobs.ClassAccount, "the domain's administrators must allow this application"},
	"unauthorized_client":     {jobs.ClassProject, hintUndelegated},
	"internal_failure":        {jobs.ClassTransient, ""},
	"temporarily_unavailable": {jobs.ClassTransient, ""},
}

// sortTokenError returns what a failure to fetch a token means. The code is read from
// the body, because errors of service accounts carry it nowhere else. The endpoint has
// limits of its own: the work waits after such a refusal, and the ledger's limits learn
// nothing from it.
func sortTokenError(err error) *tokenError {
	if sorted, ok := errors.AsType[*tokenError](err); ok {
		return sorted
	}
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return &tokenError{class: jobs.ClassTransient, reason: "tokenEndpoint", err: err,
			text: "get an access token: " + oneLine(err.Error(), maxTokenErrorWords)}
	}
	var body struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	status := 0
	if answer.Response != nil {
		status = answer.Response.StatusCode
		if r := quota.Classify(status, answer.Response.Header, answer.Body, time.Now(), 1); r.Scope != quota.ScopeNone {
			return &tokenError{class: jobs.ClassQuota, reason: cmp.Or(r.Reason, "tokenEndpoint"), wait: r.Wait, err: err,
				text: fmt.Sprintf("get an access token: HTTP %d from the token endpoint, for quota", status)}
		}
	}
	if json.Unmarshal(answer.Body, &body) != nil || body.Code == "" || status >= 500 {
		return &tokenError{class: jobs.ClassTransient, reason: "tokenEndpoint", err: err,
			text: fmt.Sprintf("get an access token: HTTP %d from the token endpoint", status)}
	}
	meaning, known := tokenRules[body.Code]
	switch {
	case body.Code == "invalid_grant" && isBadAssertion(body.Description):
		meaning.class, meaning.hint = jobs.ClassProject, "check this machine's clock, and that the service account's key is still valid"
	case !known:
		meaning.class, meaning.hint = jobs.ClassProject, "check the project's credentials file"
	}
	text := fmt.Sprintf("get an access token: %s: %s", oneLine(body.Code, 100), oneLine(body.Description, maxTokenErrorWords))
	if meaning.hint != "" {
		text += "; " + meaning.hint
	}
	return &tokenError{class: meaning.class, reason: oneLine(body.Code, 100), text: text, err: err,
		domain: meaning.hint == hintUndelegated}
}
