package google

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/jobs"
	"headroom/quota"
)

// answered returns the error that the official client makes of an answer.
func answered(t *testing.T, status int, header http.Header, body string) error {
	t.Helper()
	w := httptest.NewRecorder()
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	err := googleapi.CheckResponse(w.Result())
	if err == nil {
		t.Fatalf("HTTP %d is no error", status)
	}
	return err
}

// envelope is an error as Gmail words it.
func envelope(status int, domain, reason, message, canonical string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":%q,"reason":%q}],"status":%q}}`,
		status, message, message, domain, reason, canonical)
}

const (
	gmailMinute = `{"error":{"code":403,"message":"Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute per user' of service 'gmail.googleapis.com' for consumer 'project_number:000000000000'.","errors":[{"message":"Quota exceeded","domain":"usageLimits","reason":"rateLimitExceeded"}],"status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","domain":"googleapis.com","metadata":{"quota_limit":"totalQueryCostPerMinutePerUser","quota_unit":"1/min/{project}/{user}"}},{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"Request a higher quota limit.","url":"https://cloud.google.com/docs/quotas/help/request_increase"}]}]}}`
	missing     = `{"error":{"code":403,"message":"Request had insufficient authentication scopes.","errors":[{"message":"Insufficient Permission","domain":"global","reason":"insufficientPermissions"}],"status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"ACCESS_TOKEN_SCOPE_INSUFFICIENT","domain":"googleapis.com"}]}}`
	missingInfo = `{"error":{"code":403,"message":"Request had insufficient authentication scopes.","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"ACCESS_TOKEN_SCOPE_INSUFFICIENT","domain":"googleapis.com"}]}}`
	disabled    = `{"error":{"code":403,"message":"Gmail API has not been used in project 1 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/gmail.googleapis.com/overview?project=1 then retry.","errors":[{"message":"x","domain":"usageLimits","reason":"accessNotConfigured"}],"status":"PERMISSION_DENIED"}}`
	page502     = `<!DOCTYPE html><html><title>Error 502 (Server Error)!!1</title></html>`
)

func TestEveryAnswerHasItsClass(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	all := []call{callProfile, callList, callNextPage, callGet, callHistory}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		calls  []call
		class  jobs.Class
		reason string
		says   string // part of the error's text
	}{
		{"a minute is spent (Gmail's usual refusal)", 403, gmailMinute, all, jobs.ClassQuota, "rateLimitExceeded", "Units per minute per user"},
		{"concurrency", 429, envelope(429, "global", "rateLimitExceeded", "Too many concurrent requests for user.", "RESOURCE_EXHAUSTED"), all, jobs.ClassConcurrency, "rateLimitExceeded", "concurrent"},
		{"bandwidth", 403, envelope(403, "usageLimits", "userRateLimitExceeded", "User-rate limit exceeded.  Retry after 2020-01-21T12:57:51.196Z", "PERMISSION_DENIED"), all, jobs.ClassQuota, "userRateLimitExceeded", "Retry after"},
		{"the project's day", 403, envelope(403, "usageLimits", "dailyLimitExceeded", "Daily Limit Exceeded", ""), all, jobs.ClassQuota, "dailyLimitExceeded", ""},
		{"abuse limit", 403, envelope(403, "usageLimits", "quotaExceeded", "Calendar usage limits exceeded.", ""), all, jobs.ClassQuota, "quotaExceeded", ""},
		{"429 from a proxy", 429, page502, all, jobs.ClassQuota, "Too Many Requests", ""},

		{"no mailbox", 400, envelope(400, "global", "failedPrecondition", "Mail service not enabled", "FAILED_PRECONDITION"), all, jobs.ClassAccount, "failedPrecondition", "switch Gmail on"},
		{"precondition", 400, envelope(400, "global", "failedPrecondition", "Precondition check failed.", "FAILED_PRECONDITION"), all, jobs.ClassTransient, "failedPrecondition", "if that goes on, check that the user has a mailbox"},
		{"dead page token", 400, envelope(400, "global", "invalidArgument", "Invalid pageToken", "INVALID_ARGUMENT"), []call{callNextPage}, jobs.ClassCursor, "invalidArgument", "Invalid pageToken"},
		{"bad id", 400, envelope(400, "global", "invalidArgument", "Invalid id value", "INVALID_ARGUMENT"), []call{callGet}, jobs.ClassItem, "invalidArgument", ""},
		{"bad request without a token", 400, envelope(400, "global", "badRequest", "Bad Request", "INVALID_ARGUMENT"), []call{callProfile, callHistory}, jobs.ClassTransient, "badRequest", ""},
		{"a search that makes no sense", 400, envelope(400, "global", "invalidArgument", "Invalid label: Work", "INVALID_ARGUMENT"), []call{callList}, jobs.ClassSearch, "invalidArgument", "label ids"},
		{"400 from a proxy", 400, page502, all, jobs.ClassTransient, "Bad Request", ""},

		{"token refused twice", 401, envelope(401, "global", "authError", "Invalid Credentials", "UNAUTHENTICATED"), all, jobs.ClassAccount, "authError", "suspended"},

		{"scope missing", 403, missing, all, jobs.ClassAccount, "insufficientPermissions", Scope},
		{"scope missing, newer form", 403, missingInfo, all, jobs.ClassAccount, "ACCESS_TOKEN_SCOPE_INSUFFICIENT", Scope},
		{"domain policy", 403, envelope(403, "global", "domainPolicy", "The domain administrators have disabled Gmail apps.", ""), all, jobs.ClassAccount, "domainPolicy", "administrators"},
		{"delegation", 403, envelope(403, "global", "forbidden", "Delegation denied for ann@example.com", "PERMISSION_DENIED"), all, jobs.ClassAccount, "forbidden", "Delegation denied"},
		{"API off", 403, disabled, all, jobs.ClassProject, "accessNotConfigured", "overview?project=1"},
		{"unknown refusal", 403, envelope(403, "global", "somethingNew", "Something new", "PERMISSION_DENIED"), all, jobs.ClassTransient, "somethingNew", ""},
		{"403 from a proxy", 403, page502, all, jobs.ClassTransient, "Forbidden", ""},

		{"message gone", 404, envelope(404, "global", "notFound", "Requested entity was not found.", "NOT_FOUND"), []call{callGet}, jobs.ClassGone, "notFound", ""},
		{"history too old", 404, envelope(404, "global", "notFound", "Requested entity was not found.", "NOT_FOUND"), []call{callHistory, callNextPage}, jobs.ClassCursor, "notFound", ""},
		{"no such user", 404, envelope(404, "global", "notFound", "Requested entity was not found.", "NOT_FOUND"), []call{callProfile, callList}, jobs.ClassAccount, "notFound", "address"},
		{"404 from a proxy loses no message", 404, page502, all, jobs.ClassTransient, "Not Found", ""},

		{"message deleted", 410, envelope(410, "global", "deleted", "Resource has been deleted", ""), []call{callGet}, jobs.ClassGone, "deleted", ""},
		{"cursor gone", 410, envelope(410, "global", "fullSyncRequired", "Sync token is no longer valid, a full sync is required.", ""), []call{callHistory, callNextPage}, jobs.ClassCursor, "fullSyncRequired", ""},
		{"410 on others", 410, envelope(410, "global", "deleted", "x", ""), []call{callProfile, callList}, jobs.ClassTransient, "deleted", ""},

		{"redirect", 302, "", all, jobs.ClassTransient, "Found", ""},
		{"timeout", 408, "", all, jobs.ClassTransient, "Request Timeout", ""},
		{"conflict", 409, envelope(409, "global", "conflict", "x", ""), all, jobs.ClassTransient, "conflict", ""},
		{"precondition of a header", 412, envelope(412, "global", "conditionNotMet", "x", ""), all, jobs.ClassTransient, "conditionNotMet", ""},
		{"server fault", 500, envelope(500, "global", "backendError", "Backend Error", "INTERNAL"), all, jobs.ClassTransient, "backendError", ""},
		{"bad gateway page", 502, page502, all, jobs.ClassTransient, "Bad Gateway", "HTTP 502"},
		{"unavailable page", 503, page502, all, jobs.ClassTransient, "Service Unavailable", ""},
		{"cut envelope", 503, `{"error":{"code":503,`, all, jobs.ClassTransient, "Service Unavailable", ""},
		{"gateway timeout", 504, "", all, jobs.ClassTransient, "Gateway Timeout", ""},
	} {
		for _, c := range tt.calls {
			t.Run(tt.name+"/"+string(c), func(t *testing.T) {
				err := g.classify(t.Context(), c, answered(t, tt.status, nil, tt.body))
				call, ok := errors.AsType[*jobs.CallError](err)
				if !ok {
					t.Fatalf("got %v, want a *jobs.CallError", err)
				}
				if call.Class != tt.class || call.Reason != tt.reason {
					t.Errorf("got class %s, reason %q, want %s, %q", call.Class, call.Reason, tt.class, tt.reason)
				}
				if !strings.Contains(err.Error(), tt.says) || strings.ContainsAny(err.Error(), "\r\n<") {
					t.Errorf("the text is %q, want one line that says %q", err, tt.says)
				}
				if _, ok := errors.AsType[*googleapi.Error](err); !ok {
					t.Error("Google's own error is not behind it")
				}
			})
		}
	}
}

func TestQuotaAnswersSayHowLongToWait(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	later := time.Now().Add(3 * time.Hour)
	for _, tt := range []struct {
		name        string
		header      http.Header
		body        string
		least, most time.Duration
	}{
		{"said in the text", nil, envelope(403, "usageLimits", "rateLimitExceeded", "User-rate limit exceeded.  Retry after "+later.UTC().Format("2006-01-02T15:04:05.000Z"), ""), 3*time.Hour - time.Minute, 3 * time.Hour},
		{"said in the header", http.Header{"Retry-After": {"20"}}, envelope(403, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", ""), 20 * time.Second, 20 * time.Second},
		{"not said", nil, gmailMinute, time.Second, 2 * time.Minute},
	} {
		err := g.classify(t.Context(), callGet, answered(t, 403, tt.header, tt.body))
		call, ok := errors.AsType[*jobs.CallError](err)
		if !ok || call.Wait < tt.least || call.Wait > tt.most {
			t.Errorf("%s: %v waits %v, want between %s and %s", tt.name, err, call, tt.least, tt.most)
		}
	}
}

// TestCapturedAnswers runs the bodies that Gmail and Calendar were seen to
// return through the table.
func TestCapturedAnswers(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	files, err := filepath.Glob(filepath.Join(testdata(t, "google-errors"), "*-*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var captured struct {
			Status int             `json:"http_status"`
			Body   json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(data, &captured); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := jobs.ClassQuota
		switch {
		case strings.Contains(file, "404-history"), strings.Contains(file, "410-full-sync"):
			want = jobs.ClassCursor
		case strings.Contains(file, "too-many-concurrent"):
			want = jobs.ClassConcurrency
		}
		err = g.classify(t.Context(), callHistory, answered(t, captured.Status, nil, string(captured.Body)))
		if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != want {
			t.Errorf("%s: %v, want class %s", filepath.Base(file), err, want)
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	wrap := func(err error) error { return &url.Error{Op: "Get", URL: "http://127.0.0.1/secret", Err: err} }
	var target struct{ N int }
	syntax := json.Unmarshal([]byte("<html>"), &target)
	kind := json.Unmarshal([]byte(`{"N":"x"}`), &target)
	_, corrupt := base64.RawURLEncoding.DecodeString("a!")
	for _, tt := range []struct {
		err    error
		class  jobs.Class
		reason string
	}{
		{wrap(errors.New("connection reset by peer")), jobs.ClassTransient, "network"},
		{wrap(os.ErrDeadlineExceeded), jobs.ClassTransient, "timeout"},
		{wrap(context.DeadlineExceeded), jobs.ClassTransient, "timeout"},
		{io.ErrUnexpectedEOF, jobs.ClassTransient, "truncated"},
		{io.EOF, jobs.ClassTransient, "truncated"},
		{syntax, jobs.ClassTransient, "badJSON"},
		{kind, jobs.ClassTransient, "badJSON"},
		{corrupt, jobs.ClassTransient, "badRaw"},
		{errNoRaw, jobs.ClassTransient, "badRaw"},
		{errNoHistoryID, jobs.ClassTransient, "noHistoryID"},
		{errWrongID, jobs.ClassTransient, "wrongID"},
		{errTooLarge, jobs.ClassItem, "tooLarge"},
		{errNoID, jobs.ClassItem, "noID"},
		{wrap(&tokenError{class: jobs.ClassProject, reason: "unauthorized_client"}), jobs.ClassProject, "unauthorized_client"},
	} {
		err := g.classify(t.Context(), callGet, tt.err)
		call, ok := errors.AsType[*jobs.CallError](err)
		if !ok || call.Class != tt.class || call.Reason != tt.reason {
			t.Errorf("%v became %v, want %s, %s", tt.err, err, tt.class, tt.reason)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the request: %v", err)
		}
	}
}

func TestTheLedgersErrorsPassUntouched(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	denied := &quota.DeniedError{Limit: "user-minute", RetryAfter: time.Second}
	err := g.classify(t.Context(), callGet, &url.Error{Op: "Get", URL: "x", Err: denied})
	if got, ok := errors.AsType[*quota.DeniedError](err); !ok || got != denied {
		t.Errorf("a refusal became %v", err)
	}
	for _, want := range []error{quota.ErrNeverFits, quota.ErrUnavailable, quota.ErrNoCaller, quota.ErrUnknownProject} {
		err := g.classify(t.Context(), callGet, &url.Error{Op: "Get", URL: "x", Err: fmt.Errorf("wrapped: %w", want)})
		if _, isCall := errors.AsType[*jobs.CallError](err); isCall || !errors.Is(err, want) {
			t.Errorf("%v became %v", want, err)
		}
	}
}

func TestAnEndedContextIsNobodysFault(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := g.classify(ctx, callGet, &url.Error{Op: "Get", URL: "x", Err: context.Canceled})
	if _, isCall := errors.AsType[*jobs.CallError](err); isCall || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call became %v, want context.Canceled", err)
	}
	if got := outcome(err); got != "canceled" {
		t.Errorf("outcome %q, want canceled", got)
	}
}
