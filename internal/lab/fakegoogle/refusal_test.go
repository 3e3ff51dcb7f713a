package fakegoogle_test

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
)

func TestRefusalUnderEachMeter(t *testing.T) {
	for _, test := range []struct {
		meter    string
		admitted int // of 20 gets of 20 units at a limit of 300
	}{
		{meter.Fixed, 15},
		{meter.Anchored, 15},
		{meter.Sliding, 15},
		{meter.Bucket, 5}, // a burst of 100; refilling takes 4 s a call
	} {
		t.Run(test.meter, func(t *testing.T) {
			if test.meter == meter.Fixed && time.Now().Second() > 55 {
				t.Skip("the minute is about to end")
			}
			server, url := start(t, fakegoogle.Options{Meter: test.meter, UserLimit: 300})
			id := server.AddMailbox(ann).Add(mail(1))
			users := client(t, url, ann)
			var refused []error
			for range 20 {
				if _, err := users.Messages.Get("me", id).Format("raw").Do(); err != nil {
					refused = append(refused, err)
				}
			}
			report := server.Meter().User(ann)
			if len(refused) != 20-test.admitted || report.Refusals[meter.RefusedUserUnits] != int64(len(refused)) {
				t.Fatalf("%d refused, report %v; want %d", len(refused), report.Refusals, 20-test.admitted)
			}
			if report.MostInWindow != 400 || report.MostAdmittedInWindow != int64(test.admitted)*20 || report.WindowsOverLimit != 5 || report.Limit != 300 {
				t.Errorf("report = %+v", report)
			}
			if report.Fetches != int64(test.admitted) || report.Refetched != int64(test.admitted)-1 || server.Meter().OverLimit() != 1 {
				t.Errorf("fetches %d, refetched %d, over limit %d", report.Fetches, report.Refetched, server.Meter().OverLimit())
			}
			windows := 0
			for _, err := range refused {
				wantError(t, err, 403, "Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute per user' of service 'gmail.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")
				failure, _ := errors.AsType[*googleapi.Error](err)
				info := envelope(t, failure.Body).Details[0]
				if info.Reason != "RATE_LIMIT_EXCEEDED" || info.Metadata["quota_limit_value"] != "300" ||
					info.Metadata["quota_limit"] != "totalQueryCostPerMinutePerUser" || info.Metadata["quota_unit"] != "1/min/{project}/{user}" {
					t.Errorf("details = %+v", info)
				}
				if failure.Header.Get("Retry-After") != "" {
					t.Error("a Retry-After header, which Google does not send")
				}
				if start := info.Metadata["window_start_time"]; start != "" {
					windows++
				}
			}
			if dated := test.meter == meter.Fixed || test.meter == meter.Anchored; dated && windows == len(refused) || !dated && windows != 0 {
				t.Errorf("%d of %d refusals say when the window began", windows, len(refused))
			}
		})
	}
}

func TestProjectRefusalAndLegacyWording(t *testing.T) {
	server, url := start(t, fakegoogle.Options{ProjectLimit: 20})
	id := server.AddMailbox(ann).Add(mail(1))
	get := func(url, project string) error {
		call := client(t, url, ann).Messages.Get("me", id)
		call.Header().Set("X-Goog-User-Project", project)
		_, err := call.Do()
		return err
	}
	for _, project := range []string{"one", "two"} {
		if err := get(url, project); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, get(url, "two"), 403, "Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute' of service 'gmail.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")
	r := server.Meter()
	if len(r.Projects) != 2 || r.Projects[1].Project != "two" || r.Projects[1].Refusals[meter.RefusedProjectUnits] != 1 || r.Refused() != 1 {
		t.Errorf("projects = %+v", r.Projects)
	}

	legacy, url := start(t, fakegoogle.Options{Prices: "gmail-legacy", UserLimit: 4})
	id = legacy.AddMailbox(ann).Add(mail(1))
	wantError(t, get(url, "one"), 403, "Quota exceeded for quota metric 'Queries' and limit 'Previous quota: Units per minute per user' of service 'gmail.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")
}

func TestConcurrencyRefusal(t *testing.T) {
	server, url := start(t, fakegoogle.Options{InFlightLimit: 3})
	id := server.AddMailbox(ann).Add(mail(1))
	if err := server.AddFault(fault.Fault{Hang: true, Count: 3}); err != nil {
		t.Fatal(err)
	}
	client := httpClient(t, ann)
	var held sync.WaitGroup
	for range 3 {
		held.Go(func() {
			if resp, err := client.Get(url + "/gmail/v1/users/me/messages/" + id); err == nil {
				resp.Body.Close()
				t.Error("a hanging call was answered")
			}
		})
	}
	eventually(t, func() bool { return server.Faults()[0].Applied == 3 })
	resp, err := client.Get(url + "/gmail/v1/users/me/messages/" + id)
	if err != nil {
		t.Fatal(err)
	}
	err = googleapi.CheckResponse(resp)
	resp.Body.Close()
	wantError(t, err, 429, "Too many concurrent requests for user.", "rateLimitExceeded", "RESOURCE_EXHAUSTED")
	if r := server.Meter().User(ann); r.MostInFlight != 4 || r.Refusals[meter.RefusedConcurrency] != 1 {
		t.Errorf("report = %+v, want 4 in flight at most, the refused one included", r)
	}
	server.Close()
	held.Wait()
	if resp, err = client.Get(url + "/gmail/v1/users/me/profile"); err != nil || resp.StatusCode != 200 {
		t.Errorf("afterwards %v, %v; want room again", resp, err)
	} else {
		resp.Body.Close()
	}
}

// A client that keeps ten calls in flight, no more, must be seen with ten.
func TestInFlightIsNotOverstated(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 1e9, ProjectLimit: 1e9})
	id := server.AddMailbox(ann).Add(mail(1))
	users := client(t, url, ann)
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for range 30 {
				if _, err := users.Messages.Get("me", id).Format("raw").Do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if r := server.Meter().User(ann); r.MostInFlight > 10 || r.Calls != 300 {
		t.Errorf("%d in flight at most over %d calls, want at most 10 over 300", r.MostInFlight, r.Calls)
	}
}

func TestBytesRefusal(t *testing.T) {
	message := mail(1)
	server, url := start(t, fakegoogle.Options{BytesPerDay: int64(len(message))})
	id := server.AddMailbox(ann).Add(message)
	users := client(t, url, ann)
	if _, err := users.Messages.Get("me", id).Format("minimal").Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := users.Messages.Get("me", id).Format("raw").Do(); err != nil {
		t.Fatal(err)
	}
	_, err := users.Messages.Get("me", id).Format("minimal").Do()
	failure, _ := errors.AsType[*googleapi.Error](err)
	if failure == nil || failure.Code != 429 {
		t.Fatalf("after a day's bytes: %v, want 429", err)
	}
	m := regexp.MustCompile(`^User-rate limit exceeded\.  Retry after (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$`).FindStringSubmatch(failure.Message)
	if m == nil {
		t.Fatalf("message = %q", failure.Message)
	}
	at, err := time.Parse(time.RFC3339, m[1])
	if ahead := time.Until(at); err != nil || ahead < 23*time.Hour || ahead > 24*time.Hour {
		t.Errorf("retry after %v (%v), want a day after the first call", at, err)
	}
	if r := server.Meter().User(ann); r.Bytes != int64(len(message)) {
		t.Errorf("%d bytes, want %d", r.Bytes, len(message))
	}
}

func TestQuotaUserChangesNothing(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 2})
	server.AddMailbox(ann)
	for i := range 3 {
		_, err := client(t, url, ann).GetProfile("me").Do(googleapi.QuotaUser(fmt.Sprint("user", i)))
		if refused := err != nil; refused != (i == 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if r := server.Meter().User(ann); r.QuotaUserCalls != 3 {
		t.Errorf("%d calls with quotaUser, want 3", r.QuotaUserCalls)
	}
}

func TestJitterAndLatencyTakeRealTime(t *testing.T) {
	server, url := start(t, fakegoogle.Options{Jitter: 5 * time.Millisecond, Latency: 20 * time.Millisecond, Scale: 100, Seed: 1})
	server.AddMailbox(ann)
	began := time.Now()
	if _, err := client(t, url, ann).GetProfile("me").Do(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("answered after %s, want at least the latency", took)
	}
	if r := server.Meter(); r.WindowSeconds != 0.6 || r.Scale != 100 {
		t.Errorf("window of %v s at scale %d, want 0.6 at 100", r.WindowSeconds, r.Scale)
	}
}

func TestBadOptions(t *testing.T) {
	for _, opts := range []fakegoogle.Options{{Meter: "leaky"}, {Prices: "gmail-1999"}, {Scale: -1}, {Jitter: -1}} {
		if _, err := fakegoogle.New(opts); err == nil {
			t.Errorf("New(%+v) = nil error", opts)
		}
	}
}

// eventually waits until condition holds, at most ten seconds.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("waited ten seconds in vain")
		}
		time.Sleep(time.Millisecond) // polls a condition within a bound
	}
}
