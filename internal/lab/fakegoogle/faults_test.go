package fakegoogle_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
)

func addFault(t *testing.T, server *fakegoogle.Server, f fault.Fault) {
	t.Helper()
	if err := server.AddFault(f); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsStrikeTheCallsTheyName(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	first, second := box.Add(mail(1)), box.Add(mail(2))
	server.AddMailbox(bob)
	const get = "gmail.users.messages.get"
	outcome := func(token, id string) string {
		t.Helper()
		var err error
		if id == "" {
			_, err = client(t, url, token).GetProfile("me").Do()
		} else {
			_, err = client(t, url, token).Messages.Get("me", id).Do()
		}
		if err != nil {
			return "x"
		}
		return "."
	}
	for _, test := range []struct {
		name  string
		fault fault.Fault
		want  string // of ann's first, second, first, second, profile, then bob's profile
	}{
		{"all", fault.Fault{Status: 500}, "xxxxxx"},
		{"user", fault.Fault{User: "Ann@example.com", Status: 500}, "xxxxx."},
		{"method", fault.Fault{Method: get, Status: 500}, "xxxx.."},
		{"id", fault.Fault{ID: first, Status: 500}, "x.x..."},
		{"nth", fault.Fault{Method: get, Nth: 3, Status: 500}, "..x..."},
		{"count", fault.Fault{Count: 2, Status: 500}, "xx...."},
		{"from and count", fault.Fault{From: 2, Count: 3, Status: 500}, ".xxx.."},
		{"from", fault.Fault{From: 4, Status: 500}, "...xxx"},
		{"id and nth", fault.Fault{ID: second, Nth: 2, Status: 500}, "...x.."},
	} {
		server.ClearFaults()
		addFault(t, server, test.fault)
		got := outcome(ann, first) + outcome(ann, second) + outcome(ann, first) + outcome(ann, second) + outcome(ann, "") + outcome(bob, "")
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if applied := server.Faults()[0].Applied; applied != strings.Count(test.want, "x") {
			t.Errorf("%s: applied %d", test.name, applied)
		}
	}
	if r := server.Meter(); r.User(ann).CallsByMethod[get] != 36 || r.User(ann).Units != 36*20+9 {
		t.Errorf("meter = %+v, want faulted calls charged like others", r.User(ann))
	}
}

func TestFaultAnswers(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	for _, test := range []struct {
		fault           fault.Fault
		code            int
		message, reason string
		status          string
	}{
		{fault.Fault{Status: 500}, 500, "Backend Error", "backendError", "INTERNAL"},
		{fault.Fault{Status: 503}, 503, "Backend Error", "backendError", "UNAVAILABLE"},
		{fault.Fault{Status: 401}, 401, "Invalid Credentials", "authError", "UNAUTHENTICATED"},
		{fault.Fault{Status: 404}, 404, "Requested entity was not found.", "notFound", "NOT_FOUND"},
		{fault.Fault{Reason: "userRateLimitExceeded"}, 403, "User Rate Limit Exceeded", "userRateLimitExceeded", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "rateLimitExceeded", Status: 429}, 429, "Rate Limit Exceeded", "rateLimitExceeded", "RESOURCE_EXHAUSTED"},
		{fault.Fault{Reason: "dailyLimitExceeded"}, 403, "Daily Limit Exceeded", "dailyLimitExceeded", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "domainPolicy"}, 403, "The domain administrators have disabled Gmail apps.", "domainPolicy", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "insufficientPermissions"}, 403, "Request had insufficient authentication scopes.", "insufficientPermissions", "PERMISSION_DENIED"},
		{fault.Fault{Reason: "failedPrecondition"}, 400, "Mail service not enabled", "failedPrecondition", "FAILED_PRECONDITION"},
		{fault.Fault{Reason: "failedPrecondition", Message: "Precondition check failed."}, 400, "Precondition check failed.", "failedPrecondition", "FAILED_PRECONDITION"},
		{fault.Fault{Reason: "invalidPageToken"}, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT"},
		{fault.Fault{Reason: "fullSyncRequired"}, 410, "Sync token is no longer valid, a full sync is required.", "fullSyncRequired", "ABORTED"},
		{fault.Fault{Reason: "concurrentRequests"}, 429, "Too many concurrent requests for user.", "rateLimitExceeded", "RESOURCE_EXHAUSTED"},
		{fault.Fault{Reason: "odd", Status: 418, Message: "teapot"}, 418, "teapot", "odd", "INTERNAL"},
	} {
		server.ClearFaults()
		addFault(t, server, test.fault)
		_, err := client(t, url, ann).Messages.Get("me", id).Do()
		wantError(t, err, test.code, test.message, test.reason, test.status)
	}

	server.ClearFaults()
	addFault(t, server, fault.Fault{HTML: true, Headers: map[string]string{"Retry-After": "7"}})
	_, err := client(t, url, ann).Messages.Get("me", id).Do()
	failure, _ := errors.AsType[*googleapi.Error](err)
	if failure == nil || failure.Code != 502 || !strings.Contains(failure.Body, "<title>Error 502") || failure.Header.Get("Retry-After") != "7" {
		t.Errorf("html = %v, want 502 with a page and its header", err)
	}
	server.ClearFaults()
	addFault(t, server, fault.Fault{Body: `{"emailAddress":"scripted"}`})
	if p, err := client(t, url, ann).GetProfile("me").Do(); err != nil || p.EmailAddress != "scripted" {
		t.Errorf("body = %v, %v; want the scripted one with 200", p, err)
	}
}

func TestFaultsOfTheConnection(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	get := func() error {
		resp, err := httpClient(t, ann).Get(url + "/gmail/v1/users/me/messages/" + id + "?format=raw")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	addFault(t, server, fault.Fault{Close: true, Count: 1})
	if err := get(); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("close: %v, want a reset", err)
	}
	server.ClearFaults()
	addFault(t, server, fault.Fault{Truncate: true, Count: 1})
	if err := get(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncate: %v, want an unexpected end", err)
	}
	server.ClearFaults()
	addFault(t, server, fault.Fault{DelayMS: 30})
	began := time.Now()
	if err := get(); err != nil || time.Since(began) < 30*time.Millisecond {
		t.Errorf("delay: %v after %s, want the true answer after 30 ms", err, time.Since(began))
	}
	if r := server.Meter().User(ann); r.Fetches != 1 || r.Calls != 3 {
		t.Errorf("%d fetches of %d calls, want 1 of 3: broken answers delivered nothing", r.Fetches, r.Calls)
	}
}

func TestSenselessFaultsAreRefused(t *testing.T) {
	server, _ := start(t, fakegoogle.Options{})
	for _, f := range []fault.Fault{
		{}, {Nth: 1, Count: 2, Status: 500}, {Status: 99}, {Status: 500, Close: true}, {DelayMS: -1}, {Reason: "unheardOf"},
	} {
		if err := server.AddFault(f); err == nil {
			t.Errorf("AddFault(%+v) = nil", f)
		}
	}
	if n := len(server.Faults()); n != 0 {
		t.Errorf("%d faults in force, want none", n)
	}
}
