package google

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
	"headroom/quota"
)

// An answerRow is one of Google's answers and all that follows from it.
type answerRow struct {
	name   string
	fault  fault.Fault
	class  jobs.Class
	reason string
	scope  quota.Scope
	wait   time.Duration // as told when the answer was given
	absurd bool          // a moment was named and not believed
}

// closed is whom an answer of this scope closes to every lane.
func closed(s quota.Scope) string {
	switch s {
	case quota.ScopeUser, quota.ScopeBandwidth, quota.ScopeAbuse:
		return "user"
	case quota.ScopeProject, quota.ScopeDay:
		return "project"
	}
	return "nobody"
}

// answerRows has every shape in which Google was seen or is documented to refuse,
// and its neighbours that are not about quota.
func answerRows(now time.Time) []answerRow {
	const (
		minute, hour = 65 * time.Second, time.Hour
		rate         = "rateLimitExceeded"
		day          = 24 * 60 * 60 * 1000 // ms
	)
	untilDay := quota.Classify(403, http.Header{}, []byte(`{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`), now, 1).Wait
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	ahead := func(d time.Duration) string { return now.Add(d).UTC().Format("2006-01-02T15:04:05.000Z") }
	return []answerRow{
		{"the user's minute", fault.Fault{Reason: "userUnitsPerMinute"}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"the user's minute, which began 40 s ago", fault.Fault{Reason: "userUnitsPerMinute", WindowAgeMS: 40_000}, jobs.ClassQuota, rate, quota.ScopeUser, 20 * time.Second, false},
		{"the same as 429", fault.Fault{Reason: "userUnitsPerMinute", Status: 429, WindowAgeMS: 40_000}, jobs.ClassQuota, rate, quota.ScopeUser, 20 * time.Second, false},
		{"a minute that began days ago", fault.Fault{Reason: "userUnitsPerMinute", WindowAgeMS: 3 * day}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},
		{"the user's minute in older words", fault.Fault{Reason: "legacyUserUnits"}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"the user's minute without status and details", fault.Fault{Reason: "userUnitsPerMinute", Bare: true}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"the user's queries of Calendar", fault.Fault{Reason: "calendarUserQueries", Bare: true}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"the user's quota group", fault.Fault{Reason: "quotaGroupUser"}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"rateLimitExceeded, as documented", fault.Fault{Reason: rate, Bare: true}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"rateLimitExceeded as 429", fault.Fault{Reason: rate, Status: 429}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"userRateLimitExceeded, as documented", fault.Fault{Reason: "userRateLimitExceeded", Bare: true}, jobs.ClassQuota, "userRateLimitExceeded", quota.ScopeUser, minute, false},
		{"userRateLimitExceeded as 429", fault.Fault{Reason: "userRateLimitExceeded", Status: 429}, jobs.ClassQuota, "userRateLimitExceeded", quota.ScopeUser, minute, false},
		{"resource exhausted", fault.Fault{Reason: "resourceExhausted"}, jobs.ClassQuota, rate, quota.ScopeUser, minute, false},
		{"an unknown reason of a 429", fault.Fault{Reason: "somethingNew", Status: 429}, jobs.ClassQuota, "somethingNew", quota.ScopeUser, minute, false},
		{"a page of a 429", fault.Fault{Status: 429, HTML: true}, jobs.ClassQuota, "Too Many Requests", quota.ScopeUser, minute, false},

		{"the project's minute", fault.Fault{Reason: "projectUnitsPerMinute"}, jobs.ClassQuota, rate, quota.ScopeProject, minute, false},
		{"the project's minute, which began 40 s ago", fault.Fault{Reason: "projectUnitsPerMinute", WindowAgeMS: 40_000}, jobs.ClassQuota, rate, quota.ScopeProject, 20 * time.Second, false},
		{"the project's minute in older words", fault.Fault{Reason: "legacyProjectUnits", Status: 429}, jobs.ClassQuota, rate, quota.ScopeProject, minute, false},
		{"the project's queries of Calendar", fault.Fault{Reason: "calendarProjectQueries", Bare: true}, jobs.ClassQuota, rate, quota.ScopeProject, minute, false},
		{"the project's quota group", fault.Fault{Reason: "quotaGroupProject"}, jobs.ClassQuota, rate, quota.ScopeProject, minute, false},
		{"the project's day", fault.Fault{Reason: "dailyLimitExceeded"}, jobs.ClassQuota, "dailyLimitExceeded", quota.ScopeDay, untilDay, false},
		{"the project's queries per day", fault.Fault{Reason: "queriesPerDay"}, jobs.ClassQuota, rate, quota.ScopeDay, untilDay, false},

		{"seconds in the header", fault.Fault{Reason: rate, RetryAfterMS: 20_000, RetryAs: fault.RetryAsSeconds}, jobs.ClassQuota, rate, quota.ScopeUser, 20 * time.Second, false},
		{"a date in the header", fault.Fault{Reason: rate, Status: 429, RetryAfterMS: 600_000, RetryAs: fault.RetryAsDate}, jobs.ClassQuota, rate, quota.ScopeUser, 10 * time.Minute, false},
		{"a page with seconds in the header", fault.Fault{Status: 429, HTML: true, RetryAfterMS: 20_000, RetryAs: fault.RetryAsSeconds}, jobs.ClassQuota, "Too Many Requests", quota.ScopeUser, 20 * time.Second, false},
		{"a date long gone", fault.Fault{Status: 429, RetryAfterMS: -day, RetryAs: fault.RetryAsDate}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},
		{"a date years ahead", fault.Fault{Status: 429, RetryAfterMS: 1000 * day, RetryAs: fault.RetryAsDate}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},
		{"negative seconds", fault.Fault{Status: 429, Headers: header("Retry-After", "-20")}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},
		{"too many seconds", fault.Fault{Status: 429, Headers: header("Retry-After", "99999999999999999999")}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},
		{"no seconds at all", fault.Fault{Status: 429, Headers: header("Retry-After", "soon")}, jobs.ClassQuota, rate, quota.ScopeUser, minute, true},

		{"the older limiter, three hours", fault.Fault{RetryAfterMS: 3 * 3_600_000}, jobs.ClassQuota, rate, quota.ScopeBandwidth, 3 * hour, false},
		{"the same as 403", fault.Fault{Reason: "userRateLimitExceeded", RetryAfterMS: 3 * 3_600_000}, jobs.ClassQuota, "userRateLimitExceeded", quota.ScopeBandwidth, 3 * hour, false},
		{"a text years ahead", fault.Fault{RetryAfterMS: 1000 * day}, jobs.ClassQuota, rate, quota.ScopeBandwidth, 15 * time.Minute, true},
		{"a text long gone", fault.Fault{RetryAfterMS: -day}, jobs.ClassQuota, rate, quota.ScopeBandwidth, 15 * time.Minute, true},
		{"a text that cannot be read", fault.Fault{Reason: rate, Message: "User-rate limit exceeded.  Retry after lunch"}, jobs.ClassQuota, rate, quota.ScopeBandwidth, 15 * time.Minute, true},
		{"a text by a clock that is an hour ahead of ours", fault.Fault{
			Reason: rate, Message: "User-rate limit exceeded.  Retry after " + ahead(80*time.Minute),
			Headers: header("Date", now.Add(hour).UTC().Format(http.TimeFormat)),
		}, jobs.ClassQuota, rate, quota.ScopeBandwidth, 20 * time.Minute, false},
		{"Calendar's usage limits", fault.Fault{Reason: "quotaExceeded"}, jobs.ClassQuota, "quotaExceeded", quota.ScopeAbuse, 2 * hour, false},

		{"too many calls in flight", fault.Fault{Reason: "concurrentRequests"}, jobs.ClassConcurrency, rate, quota.ScopeConcurrency, 2 * time.Second, false},

		{"a page of a 403", fault.Fault{Status: 403, HTML: true}, jobs.ClassTransient, "Forbidden", quota.ScopeNone, 0, false},
		{"a page of a 503 with seconds in the header", fault.Fault{Status: 503, HTML: true, RetryAfterMS: 20_000, RetryAs: fault.RetryAsSeconds}, jobs.ClassTransient, "Service Unavailable", quota.ScopeNone, 0, false},
		{"an unknown reason of a 403", fault.Fault{Reason: "somethingNew", Status: 403}, jobs.ClassTransient, "somethingNew", quota.ScopeNone, 0, false},
		{"a server fault", fault.Fault{Reason: "backendError"}, jobs.ClassTransient, "backendError", quota.ScopeNone, 0, false},
		{"a missing scope", fault.Fault{Reason: "insufficientPermissions"}, jobs.ClassAccount, "insufficientPermissions", quota.ScopeNone, 0, false},
		{"the domain's policy", fault.Fault{Reason: "domainPolicy"}, jobs.ClassAccount, "domainPolicy", quota.ScopeNone, 0, false},
		{"a mailbox of somebody else", fault.Fault{Reason: "forbidden"}, jobs.ClassAccount, "forbidden", quota.ScopeNone, 0, false},
		{"an API that is off", fault.Fault{Reason: "accessNotConfigured"}, jobs.ClassProject, "accessNotConfigured", quota.ScopeNone, 0, false},
		{"no mailbox", fault.Fault{Reason: "failedPrecondition"}, jobs.ClassAccount, "failedPrecondition", quota.ScopeNone, 0, false},
	}
}

// TestEveryAnswerThroughTheClient lets the fake give each answer once, to a call
// of Google's client through the metering transport, and looks at what the call's
// error says and at whom the ledger has closed.
func TestEveryAnswerThroughTheClient(t *testing.T) {
	for i, row := range answerRows(time.Now()) {
		t.Run(row.name, func(t *testing.T) {
			start := time.Now()
			row := answerRows(start)[i] // of this moment: the tests before took a while
			fake, _, url := newFake(t, fakegoogle.Options{Scale: 1})
			row.fault.Count = 1
			if err := fake.AddFault(row.fault); err != nil {
				t.Fatal(err)
			}
			g := newTestGoogle(t, Options{Endpoint: url, Ledger: newLedger(t, 1)})
			mailbox := open(t, g)
			_, err := mailbox.Profile(t.Context())
			call, ok := errors.AsType[*jobs.CallError](err)
			if !ok {
				t.Fatalf("got %v, want a *jobs.CallError", err)
			}
			if call.Class != row.class || call.Reason != row.reason || !near(call.Wait, row.wait, start) {
				t.Errorf("class %s, reason %q, wait %s; want %s, %q, %s", call.Class, call.Reason, call.Wait, row.class, row.reason, row.wait)
			}
			answer, _ := errors.AsType[*googleapi.Error](err)
			r := quota.Classify(answer.Code, answer.Header, []byte(answer.Body), time.Now(), g.opts.Ledger.Scale())
			if r.Scope != row.scope || r.Absurd != row.absurd {
				t.Errorf("scope %q, absurd %v; want %q, %v", r.Scope, r.Absurd, row.scope, row.absurd)
			}
			wantClosed(t, g, fake, mailbox, row, start)
		})
	}
}

// near allows for whole seconds, and for the time since start.
func near(got, want time.Duration, start time.Time) bool {
	return got <= want+2*time.Second && got >= want-2*time.Second-time.Since(start)
}

// wantClosed checks who is closed after a row's answer, and until when; and that
// whoever is closed calls Google no more, while others go on undisturbed.
func wantClosed(t *testing.T, g *Google, fake *fakegoogle.Server, mailbox *Mailbox, row answerRow, start time.Time) {
	t.Helper()
	caller := quota.Caller{Project: project, User: ann.Email, Lane: quota.Interactive}
	state, err := g.opts.Ledger.Peek(t.Context(), caller, "gmail")
	if err != nil {
		t.Fatal(err)
	}
	got, until := "nobody", time.Time{}
	switch user, whole := state.User.ClosedUntil, state.Project.ClosedUntil; {
	case !user.IsZero() && !whole.IsZero():
		t.Fatalf("user closed until %s and project until %s, want one of them at most", user, whole)
	case !user.IsZero():
		got, until = "user", user
	case !whole.IsZero():
		got, until = "project", whole
	}
	want := closed(row.scope)
	if got != want || want != "nobody" && !near(time.Until(until), row.wait, start) {
		t.Fatalf("closed: %s for %s; want %s for %s", got, time.Until(until), want, row.wait)
	}
	if want == "nobody" {
		return
	}
	if _, err := mailbox.Profile(t.Context()); !isHeld(err) {
		t.Errorf("the user's next call: %v, want a refusal by the cool-down", err)
	}
	bob := jobs.Account{Email: "bob@example.com", Project: project}
	fake.AddMailbox(bob.Email)
	other, err := g.Mailbox(t.Context(), bob, quota.Interactive, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Profile(t.Context()); isHeld(err) != (want == "project") {
		t.Errorf("another user's call: %v, while %s is closed", err, want)
	}
	if calls := fake.Activity(meter.Filter{User: ann.Email}).Calls; calls != 1 {
		t.Errorf("%d calls of the user reached Google, want the refused one only", calls)
	}
}

func isHeld(err error) bool {
	denied, ok := errors.AsType[*quota.DeniedError](err)
	return ok && denied.Bound == quota.BoundHold
}
