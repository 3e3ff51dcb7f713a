package quota_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headroom/quota"
)

var someDay = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC) // noon Pacific

func TestClassify(t *testing.T) {
	quotaBody := func(message, reason, status, details string) string {
		return `{"error":{"code":403,"message":"` + message + `","errors":[{"message":"","domain":"usageLimits","reason":"` + reason + `"}],"status":"` + status + `"` + details + `}}`
	}
	metadata := func(pairs string) string {
		return `,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{` + pairs + `}},{"links":[{"url":"x"}]}]`
	}
	const perUser = "Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute per user' of service 'gmail.googleapis.com'"
	const perProject = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'calendar-json.googleapis.com'"
	tests := map[string]struct {
		status int
		header http.Header
		body   string
		want   quota.Refusal
	}{
		"a success": {status: 200, body: "{}"},
		"the user's minute, as Gmail refuses it": {status: 403, body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 65 * time.Second}},
		"with a window's start": {status: 403,
			body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"window_start_time":"1795982370","quota_unit":"1/min/{project}/{user}"`)),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 30 * time.Second}},
		"with a window's start by a clock that is far ahead": {status: 403,
			body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"window_start_time":"1799999999"`)),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 65 * time.Second, Absurd: true}},
		"with a window that is over for years": {status: 403,
			body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"window_start_time":"1700000000"`)),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 65 * time.Second, Absurd: true}},
		"with a window that has just ended": {status: 403,
			body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"window_start_time":"1795982339"`)),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: time.Second}},
		"with a window that has just begun by a clock slightly ahead": {status: 403,
			body: quotaBody(perUser, "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"window_start_time":"1795982404"`)),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 64 * time.Second}},
		"the project's minute": {status: 403, body: quotaBody(perProject, "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeProject, Reason: "rateLimitExceeded", Wait: 65 * time.Second}},
		"the project's minute, by its unit": {status: 403,
			body: quotaBody("Quota exceeded", "rateLimitExceeded", "PERMISSION_DENIED", metadata(`"quota_unit":"1/min/{project}"`)),
			want: quota.Refusal{Scope: quota.ScopeProject, Reason: "rateLimitExceeded", Wait: 65 * time.Second}},
		"concurrency": {status: 429, body: quotaBody("Too many concurrent requests for user.", "rateLimitExceeded", "RESOURCE_EXHAUSTED", ""),
			want: quota.Refusal{Scope: quota.ScopeConcurrency, Reason: "rateLimitExceeded", Wait: 2 * time.Second}},
		"a text that says when": {status: 429, body: quotaBody("User-rate limit exceeded.  Retry after 2026-11-29T23:00:00.000Z", "userRateLimitExceeded", "RESOURCE_EXHAUSTED", ""),
			want: quota.Refusal{Scope: quota.ScopeBandwidth, Reason: "userRateLimitExceeded", Wait: 3 * time.Hour}},
		"a text with an absurd date": {status: 403, body: quotaBody("User-rate limit exceeded.  Retry after 2126-11-29T23:00:00.000Z", "rateLimitExceeded", "PERMISSION_DENIED", ""),
			want: quota.Refusal{Scope: quota.ScopeBandwidth, Reason: "rateLimitExceeded", Wait: 15 * time.Minute, Absurd: true}},
		"Retry-After in seconds": {status: 429, header: http.Header{"Retry-After": {"7"}}, body: quotaBody("Rate Limit Exceeded", "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 7 * time.Second}},
		"Retry-After as a date": {status: 429, header: http.Header{"Retry-After": {"Sun, 29 Nov 2026 20:00:09 GMT"}}, body: quotaBody("Rate Limit Exceeded", "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "rateLimitExceeded", Wait: 9 * time.Second}},
		"the day, which ends at midnight Pacific": {status: 403, body: quotaBody("Daily Limit Exceeded", "dailyLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeDay, Reason: "dailyLimitExceeded", Wait: 12 * time.Hour}},
		"queries per day": {status: 403, body: quotaBody("Quota exceeded for quota metric 'Queries' and limit 'Queries per day'", "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeDay, Reason: "rateLimitExceeded", Wait: 12 * time.Hour}},
		"Calendar's usage limits": {status: 403, body: quotaBody("Calendar usage limits exceeded.", "quotaExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeAbuse, Reason: "quotaExceeded", Wait: 2 * time.Hour}},
		"429 without a body that can be read": {status: 429, body: "<html>slow down</html>",
			want: quota.Refusal{Scope: quota.ScopeUser, Wait: 65 * time.Second}},
		"403 of a proxy":      {status: 403, body: "<html>Forbidden</html>"},
		"a missing scope":     {status: 403, body: quotaBody("Request had insufficient authentication scopes.", "insufficientPermissions", "PERMISSION_DENIED", ""), want: quota.Refusal{Reason: "insufficientPermissions"}},
		"the domain's policy": {status: 403, body: quotaBody("The domain administrators have disabled Gmail apps.", "domainPolicy", "", ""), want: quota.Refusal{Reason: "domainPolicy"}},
		"an API not enabled":  {status: 403, body: quotaBody("Gmail API has not been used in project 1 before or it is disabled.", "accessNotConfigured", "PERMISSION_DENIED", ""), want: quota.Refusal{Reason: "accessNotConfigured"}},
		"a page of a 503":     {status: 503, body: "<html>Unavailable</html>"},
		"an unknown reason of a 429": {status: 429, body: quotaBody("Slow down", "somethingNew", "", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "somethingNew", Wait: 65 * time.Second}},
		"an unknown reason of a 403": {status: 403, body: quotaBody("Something new, retry after lunch", "somethingNew", "", ""), want: quota.Refusal{Reason: "somethingNew"}},
		"the user's day": {status: 403, body: quotaBody("Quota exceeded for quota metric 'Queries' and limit 'Queries per day per user'", "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeBandwidth, Reason: "rateLimitExceeded", Wait: 15 * time.Minute}},
		"the project's day, by its unit": {status: 429, body: quotaBody("Quota exceeded", "rateLimitExceeded", "", metadata(`"quota_unit":"1/d/{project}"`)),
			want: quota.Refusal{Scope: quota.ScopeDay, Reason: "rateLimitExceeded", Wait: 12 * time.Hour}},
		"the user's day, by its unit": {status: 429, body: quotaBody("Quota exceeded", "rateLimitExceeded", "", metadata(`"quota_unit":"1/d/{project}/{user}"`)),
			want: quota.Refusal{Scope: quota.ScopeBandwidth, Reason: "rateLimitExceeded", Wait: 15 * time.Minute}},
		"a quota group of the user, whatever the reason": {status: 403, body: quotaBody("Quota exceeded for quota group 'default' and limit 'Queries per user per 100 seconds'", "forbidden", "PERMISSION_DENIED", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "forbidden", Wait: 65 * time.Second}},
		"a quota group of the project": {status: 403, body: quotaBody("Quota exceeded for quota group 'default' and limit 'Queries per 100 seconds'", "rateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeProject, Reason: "rateLimitExceeded", Wait: 65 * time.Second}},
		"a user's limit whose message names no user": {status: 403, body: quotaBody("Rate limit of 60 per minute exceeded", "userRateLimitExceeded", "", ""),
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "userRateLimitExceeded", Wait: 65 * time.Second}},
		"an envelope of details only": {status: 429, body: `{"error":{"code":429,"details":[3,{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_unit":"1/min/{project}"}}]}}`,
			want: quota.Refusal{Scope: quota.ScopeProject, Reason: "RATE_LIMIT_EXCEEDED", Wait: 65 * time.Second}},
		"a status alone": {status: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`,
			want: quota.Refusal{Scope: quota.ScopeUser, Reason: "RESOURCE_EXHAUSTED", Wait: 65 * time.Second}},
		"a server error": {status: 503, body: quotaBody("Backend Error", "backendError", "UNAVAILABLE", "")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.header == nil {
				test.header = http.Header{}
			}
			got := quota.Classify(test.status, test.header, []byte(test.body), someDay, 1)
			if got.Scope != quota.ScopeNone && got.Words == "" && strings.Contains(test.body, `"message":"`) {
				t.Errorf("%+v does not say Google's words", got)
			}
			byGuess := (got.Scope == quota.ScopeUser || got.Scope == quota.ScopeProject) && got.Wait == 65*time.Second
			if got.Guess != byGuess {
				t.Errorf("%+v, want guess = %t", got, byGuess)
			}
			got.Words, got.Guess = "", false
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestClassifyCaptured sorts answers that Google gave to others.
func TestClassifyCaptured(t *testing.T) {
	dir := os.Getenv("HEADROOM_TESTDATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	want := map[string]quota.Scope{
		"calendar-403-daily-limit":                 quota.ScopeDay,
		"calendar-403-queries-per-minute-per-user": quota.ScopeUser,
		"calendar-403-queries-per-minute-project":  quota.ScopeProject,
		"calendar-403-queries-per-user-per-100s":   quota.ScopeUser,
		"calendar-410-full-sync-required":          quota.ScopeNone,
		"gmail-403-queries-per-minute-per-user":    quota.ScopeUser,
		"gmail-403-units-per-minute-per-user":      quota.ScopeUser,
		"gmail-404-history-too-old":                quota.ScopeNone,
		"gmail-429-resource-exhausted":             quota.ScopeUser,
		"gmail-429-too-many-concurrent":            quota.ScopeConcurrency,
		"gmail-429-user-rate-retry-after":          quota.ScopeBandwidth,
		"northworld__403_calendar_rate_limit":      quota.ScopeAbuse,
		"northworld__403_daily_limit":              quota.ScopeDay,
		"northworld__403_forbidden":                quota.ScopeNone,
		"northworld__403_rate_limit":               quota.ScopeUser,
		"northworld__403_user_rate_limit":          quota.ScopeUser,
	}
	if _, err := os.Stat(filepath.Join(dir, "google-errors")); err != nil {
		t.Skipf("no captured answers in %s; set HEADROOM_TESTDATA", dir)
	}
	for name, scope := range want {
		data, err := os.ReadFile(filepath.Join(dir, "google-errors", name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		var capture struct {
			Status int                `json:"http_status"`
			Header map[string]string  `json:"headers"`
			Body   json.RawMessage    `json:"body"`
			Error  struct{ Code int } `json:"error"`
		}
		if err := json.Unmarshal(data, &capture); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if capture.Body == nil {
			capture.Body, capture.Status = data, capture.Error.Code
		}
		header := http.Header{}
		for k, v := range capture.Header {
			header.Set(k, v)
		}
		if got := quota.Classify(capture.Status, header, capture.Body, someDay, 1); got.Scope != scope || scope != "" && got.Wait <= 0 {
			t.Errorf("%s: got %+v, want scope %q and a wait", name, got, scope)
		}
	}
}
