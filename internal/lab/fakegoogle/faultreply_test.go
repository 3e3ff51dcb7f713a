package fakegoogle_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
)

// refusal returns the error of one call under one fault.
func refusal(t *testing.T, f fault.Fault) *googleapi.Error {
	t.Helper()
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	addFault(t, server, f)
	_, err := client(t, url, ann).GetProfile("me").Do()
	failure, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		t.Fatalf("error = %v, want one of Google's", err)
	}
	return failure
}

func TestRefusalsThatNameAMoment(t *testing.T) {
	near := func(at time.Time, ahead time.Duration) bool {
		off := time.Until(at) - ahead
		return off < 2*time.Second && off > -10*time.Second
	}
	const hours = 10_800_000

	failure := refusal(t, fault.Fault{Status: 403, RetryAfterMS: hours})
	text, found := strings.CutPrefix(failure.Message, "User-rate limit exceeded.  Retry after ")
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	if !found || err != nil || !near(at, 3*time.Hour) || failure.Code != 403 || failure.Errors[0].Reason != "rateLimitExceeded" {
		t.Errorf("as text: %d %q", failure.Code, failure.Message)
	}
	failure = refusal(t, fault.Fault{Reason: "userRateLimitExceeded", RetryAfterMS: -hours})
	text, _ = strings.CutPrefix(failure.Message, "User-rate limit exceeded.  Retry after ")
	if at, err = time.Parse("2006-01-02T15:04:05.000Z", text); err != nil || !near(at, -3*time.Hour) {
		t.Errorf("as text, gone by: %q", failure.Message)
	}
	failure = refusal(t, fault.Fault{Status: 429, RetryAfterMS: 1_500, RetryAs: fault.RetryAsSeconds})
	if got := failure.Header.Get("Retry-After"); got != "2" || failure.Message != "Rate Limit Exceeded" {
		t.Errorf("as seconds: Retry-After %q, message %q; want 2 and the reason's own", got, failure.Message)
	}
	failure = refusal(t, fault.Fault{Status: 429, HTML: true, RetryAfterMS: hours, RetryAs: fault.RetryAsDate})
	if at, err := http.ParseTime(failure.Header.Get("Retry-After")); err != nil || !near(at, 3*time.Hour) {
		t.Errorf("as a date: Retry-After %q", failure.Header.Get("Retry-After"))
	}
	if !strings.Contains(failure.Body, "<title>Error 429 (Too Many Requests)") {
		t.Errorf("page = %s, want that of a 429", failure.Body)
	}
	failure = refusal(t, fault.Fault{Reason: "userUnitsPerMinute", Status: 429, WindowAgeMS: 40_000})
	info := envelope(t, failure.Body).Details[0]
	start, err := strconv.ParseInt(info.Metadata["window_start_time"], 10, 64)
	if err != nil || !near(time.Unix(start, 0), -40*time.Second) || failure.Code != 429 {
		t.Errorf("window: %d %+v", failure.Code, info)
	}
}

func TestRefusalsOfOtherLimits(t *testing.T) {
	for _, test := range []struct {
		fault        fault.Fault
		code         int
		says, status string
	}{
		{fault.Fault{Reason: "legacyUserUnits"}, 403, "'Previous quota: Units per minute per user' of service 'gmail.", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "legacyProjectUnits"}, 403, "'Previous quota: Units per minute' of service 'gmail.", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "calendarUserQueries"}, 403, "metric 'Queries' and limit 'Queries per minute per user' of service 'calendar-json.", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "calendarProjectQueries", Bare: true}, 403, "'Queries per minute' of service 'calendar-json.", ""},
		{fault.Fault{Reason: "queriesPerDay"}, 403, "'Queries per day'", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "quotaGroupUser"}, 403, "Quota exceeded for quota group 'default' and limit 'Queries per user per 100 seconds'", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "quotaGroupProject"}, 403, "'Queries per 100 seconds'", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "resourceExhausted"}, 429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"},
		{fault.Fault{Reason: "userUnitsPerMinute", Bare: true}, 403, "'Units per minute per user'", ""},
	} {
		failure := refusal(t, test.fault)
		body := envelope(t, failure.Body)
		if failure.Code != test.code || !strings.Contains(failure.Message, test.says) || body.Status != test.status ||
			len(failure.Errors) != 1 || failure.Errors[0].Reason != "rateLimitExceeded" || len(body.Details) != 0 {
			t.Errorf("%s = %d %s", test.fault.Reason, failure.Code, failure.Body)
		}
	}
}

// TestATellingFaultIsEnforcedWhereEarlyCallsHaveAPrice tells a user to wait and
// calls again.
func TestATellingFaultIsEnforcedWhereEarlyCallsHaveAPrice(t *testing.T) {
	server, url := start(t, fakegoogle.Options{PushBack: time.Hour})
	server.AddMailbox(ann)
	server.AddMailbox(bob)
	addFault(t, server, fault.Fault{User: ann, Count: 1, RetryAfterMS: 10_800_000})
	var told []string
	for range 2 {
		_, err := client(t, url, ann).GetProfile("me").Do()
		failure, ok := errors.AsType[*googleapi.Error](err)
		if !ok || failure.Code != 429 {
			t.Fatalf("error = %v, want a 429", err)
		}
		told = append(told, strings.TrimPrefix(failure.Message, "User-rate limit exceeded.  Retry after "))
	}
	if _, err := client(t, url, bob).GetProfile("me").Do(); err != nil {
		t.Errorf("another user: %v", err)
	}
	first, err1 := time.Parse(time.RFC3339, told[0])
	second, err2 := time.Parse(time.RFC3339, told[1])
	if moved := second.Sub(first); err1 != nil || err2 != nil || moved < time.Hour-time.Second || moved > time.Hour+time.Second {
		t.Errorf("told %q, want the second an hour later", told)
	}
	if r := server.Meter().User(ann); r.Refusals[meter.RefusedEarly] != 1 || r.Calls != 2 {
		t.Errorf("report = %+v, want one call too early", r.LimitReport)
	}
}
