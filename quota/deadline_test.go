package quota_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"headroom/quota"
)

// TestWhatIsBelievedOfAMoment names moments in all ways, on hosts whose clocks
// are right or wrong.
func TestWhatIsBelievedOfAMoment(t *testing.T) {
	const byDefault = 65 * time.Second
	text := func(at string) string {
		return `{"error":{"message":"User-rate limit exceeded.  Retry after ` + at + `","errors":[{"reason":"rateLimitExceeded"}]}}`
	}
	window := func(start string) string {
		return `{"error":{"errors":[{"reason":"rateLimitExceeded"}],"details":[{"metadata":{"window_start_time":"` + start + `"}}]}}`
	}
	const plain = `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`
	date := func(at time.Time) string { return at.Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		retryAfter, date, body string
		wait                   time.Duration
		absurd                 bool
	}{
		"three hours in seconds":          {retryAfter: "10800", body: plain, wait: 3 * time.Hour},
		"no time at all":                  {retryAfter: "0", body: plain, wait: time.Second},
		"a whole day":                     {retryAfter: "86400", body: plain, wait: 24 * time.Hour},
		"more than a day":                 {retryAfter: "86401", body: plain, wait: byDefault, absurd: true},
		"negative":                        {retryAfter: "-5", body: plain, wait: byDefault, absurd: true},
		"an overflow":                     {retryAfter: "99999999999999999999", body: plain, wait: byDefault, absurd: true},
		"an overflow of nanoseconds":      {retryAfter: "9223372036854775807", body: plain, wait: byDefault, absurd: true},
		"a fraction":                      {retryAfter: "1.5", body: plain, wait: byDefault, absurd: true},
		"garbage":                         {retryAfter: "soon", body: plain, wait: byDefault, absurd: true},
		"a date":                          {retryAfter: date(someDay.Add(time.Hour)), body: plain, wait: time.Hour},
		"a date just past":                {retryAfter: date(someDay.Add(-30 * time.Second)), body: plain, wait: time.Second},
		"a date long past":                {retryAfter: date(someDay.Add(-time.Hour)), body: plain, wait: byDefault, absurd: true},
		"a date years ahead":              {retryAfter: date(someDay.AddDate(9, 0, 0)), body: plain, wait: byDefault, absurd: true},
		"a text with an offset":           {body: text("2026-11-29T23:30:00+02:00"), wait: 90 * time.Minute},
		"a text that ends a sentence":     {body: text("2026-11-29T21:00:00.000Z."), wait: time.Hour},
		"a text with an impossible date":  {body: text("2026-13-45T99:99:99Z"), wait: 15 * time.Minute, absurd: true},
		"a text with a word":              {body: text("tomorrow"), wait: 15 * time.Minute, absurd: true},
		"a text years past":               {body: text("2020-01-21T12:57:51.196Z"), wait: 15 * time.Minute, absurd: true},
		"a bad text, a good header":       {retryAfter: "600", body: text("tomorrow"), wait: 10 * time.Minute, absurd: true},
		"a good text, a bad header":       {retryAfter: "soon", body: text("2026-11-29T21:00:00.000Z"), wait: time.Hour},
		"a window that is no number":      {body: window("soon"), wait: byDefault, absurd: true},
		"a window in nanoseconds":         {body: window("1795982370000000000"), wait: byDefault, absurd: true},
		"a window at the end of time":     {body: window("9223372036854775807"), wait: byDefault, absurd: true},
		"a window, then the header":       {retryAfter: "7", body: window("1"), wait: 7 * time.Second, absurd: true},
		"a window before the header":      {retryAfter: "7", body: window("1795982370"), wait: 30 * time.Second},
		"a clock an hour behind Google's": {date: date(someDay.Add(time.Hour)), body: text("2026-11-29T21:20:00.000Z"), wait: 20 * time.Minute},
		"a clock an hour ahead":           {date: date(someDay.Add(-time.Hour)), body: window("1795978770"), wait: 30 * time.Second},
		"a clock a little off":            {date: date(someDay.Add(-time.Second)), body: window("1795982370"), wait: 30 * time.Second},
		"seconds need no clock":           {date: date(someDay.Add(time.Hour)), retryAfter: "20", body: plain, wait: 20 * time.Second},
		"a Date that is not Google's":     {date: date(someDay.AddDate(1, 0, 0)), body: text("2026-11-29T21:00:00.000Z"), wait: time.Hour},
		"a Date that cannot be read":      {date: "today", body: text("2026-11-29T21:00:00.000Z"), wait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set("Retry-After", test.retryAfter)
			header.Set("Date", test.date)
			got := quota.Classify(429, header, []byte(test.body), someDay, 1)
			if got.Wait != test.wait || got.Absurd != test.absurd {
				t.Errorf("waits %s, absurd %v; want %s, %v", got.Wait, got.Absurd, test.wait, test.absurd)
			}
		})
	}
}

func TestTheDayEndsOnGooglesClock(t *testing.T) {
	header := http.Header{"Date": {someDay.Add(2 * time.Hour).Format(http.TimeFormat)}}
	body := []byte(`{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`)
	if got := quota.Classify(403, header, body, someDay, 1); got.Wait != 10*time.Hour {
		t.Errorf("waits %s on a host that is two hours behind, want 10 h", got.Wait)
	}
	longest := time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC) // midnight of the day that has 25 hours
	if got := quota.Classify(403, http.Header{}, body, longest, 1); got.Wait != 25*time.Hour {
		t.Errorf("waits %s on the longest day, want 25 h", got.Wait)
	}
}

func TestMinutesAreScaledAndHoursAreNot(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`:                                                             6500 * time.Millisecond,
		`{"error":{"errors":[{"reason":"rateLimitExceeded"}],"details":[{"metadata":{"window_start_time":"1795982396"}}]}}`: 2 * time.Second,
		`{"error":{"errors":[{"reason":"quotaExceeded"}]}}`:                                                                 2 * time.Hour,
		`{"error":{"message":"Too many concurrent requests for user."}}`:                                                    2 * time.Second,
		`{"error":{"message":"Retry after x","status":"RESOURCE_EXHAUSTED"}}`:                                               15 * time.Minute,
	} {
		if got := quota.Classify(429, http.Header{}, []byte(body), someDay, 10); got.Wait != want {
			t.Errorf("%s waits %s at scale 10, want %s", body, got.Wait, want)
		}
	}
}

func FuzzClassify(f *testing.F) {
	const perUser = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user'"
	body := `{"error":{"code":403,"message":"%s","errors":[{"reason":"%s"}],"status":"%s","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"window_start_time":"%s","quota_unit":"1/min/{project}/{user}"}}]}}`
	f.Add(403, "", "", fmt.Sprintf(body, perUser, "rateLimitExceeded", "PERMISSION_DENIED", "1795982370"), int64(1795982400))
	f.Add(429, "7", "", fmt.Sprintf(body, "User-rate limit exceeded.  Retry after 2026-11-29T23:00:00.000Z", "userRateLimitExceeded", "RESOURCE_EXHAUSTED", "-9223372036854775808"), int64(1795982400))
	f.Add(429, "Sun, 29 Nov 2026 20:00:09 GMT", "Sun, 29 Nov 2026 20:00:00 GMT", "<html>", int64(1795982400))
	f.Add(403, "-99999999999999999999", "soon", fmt.Sprintf(body, "Queries per day", "dailyLimitExceeded", "", "9223372036854775807"), int64(-62135596800))
	f.Add(403, "", "", `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`, int64(1777000000))
	f.Add(429, "", "", `{"error":{"message":"Too many concurrent requests for user."}}`, int64(253402300799))
	f.Add(403, "", "", `{"error":"invalid_grant"}`, int64(0))
	scopes := []quota.Scope{quota.ScopeNone, quota.ScopeUser, quota.ScopeProject, quota.ScopeConcurrency,
		quota.ScopeBandwidth, quota.ScopeDay, quota.ScopeAbuse}
	f.Fuzz(func(t *testing.T, status int, retryAfter, date, body string, now int64) {
		header := http.Header{"Retry-After": {retryAfter}, "Date": {date}}
		r := quota.Classify(status, header, []byte(body), time.Unix(now, 0), 1)
		if !slices.Contains(scopes, r.Scope) {
			t.Fatalf("unknown scope %q", r.Scope)
		}
		most := 24 * time.Hour
		switch r.Scope {
		case quota.ScopeNone:
			if r.Wait != 0 || r.Absurd {
				t.Fatalf("no refusal, but %+v", r)
			}
			return
		case quota.ScopeDay:
			most = 25 * time.Hour
		}
		if status != 403 && status != 429 || r.Wait < time.Millisecond || r.Wait > most {
			t.Fatalf("HTTP %d %s: %+v", status, strings.ToValidUTF8(body, "?"), r)
		}
	})
}
