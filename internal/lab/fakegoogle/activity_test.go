package fakegoogle_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
)

func TestActivityOfAUserSinceAMoment(t *testing.T) {
	server, base := start(t, fakegoogle.Options{UserLimit: 7})
	id := server.AddMailbox(ann).Add(mail(1))
	server.AddMailbox(bob)
	addFault(t, server, fault.Fault{Method: "gmail.users.labels.list", Status: 503})
	addFault(t, server, fault.Fault{Method: "gmail.users.history.list", Close: true})
	_, _ = client(t, base, ann).Messages.List("me").Do() // 5 units of 7
	between := time.Now()
	_, _ = client(t, base, bob).GetProfile("me").Do()
	_, _ = client(t, base, ann).GetProfile("me").Do()
	_, _ = client(t, base, ann).Labels.List("me").Do()
	_, _ = client(t, base, ann).Messages.Get("me", id).Do() // 20 units: refused

	got := server.Activity(meter.Filter{User: "Ann@Example.com", Since: between})
	if got.FirstCall.Before(between.UTC()) || got.LastCall.Before(got.FirstCall) {
		t.Errorf("from %s to %s, want after %s", got.FirstCall, got.LastCall, between)
	}
	want := meter.Activity{
		Calls: 3, Units: 22, Refused: 1, OverLimit: 1, MostInFlight: 1,
		Refusals: map[meter.Refusal]int64{meter.RefusedUserUnits: 1},
		Statuses: map[int]int64{200: 1, 503: 1, 403: 1},
	}
	byHTTP := decode[meter.Activity](t, do(t, "GET", base+"/_fake/activity?user="+ann+"&since="+url.QueryEscape(between.Format(time.RFC3339Nano)), "", 200))
	if diff := cmp.Diff(got, byHTTP); diff != "" {
		t.Errorf("by HTTP (-Go +JSON):\n%s", diff)
	}
	got.FirstCall, got.LastCall = time.Time{}, time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
	if all := decode[meter.Activity](t, do(t, "GET", base+"/_fake/activity?since=1h", "", 200)); all.Calls != 5 {
		t.Errorf("%d calls of everybody in the last hour, want 5", all.Calls)
	}
	if one := server.Activity(meter.Filter{Method: "gmail.users.labels.list"}); one.Calls != 1 || one.Statuses[503] != 1 {
		t.Errorf("of labels.list: %+v", one)
	}
	if none := server.Activity(meter.Filter{Project: "another"}); none.Calls != 0 {
		t.Errorf("of another project: %+v", none)
	}
	do(t, "GET", base+"/_fake/activity?usr=ann", "", 400)
	do(t, "GET", base+"/_fake/arrivals?since=yesterday", "", 400)

	_, _ = httpClient(t, bob).Get(base + "/gmail/v1/users/me/history?startHistoryId=1")
	cut := server.Activity(meter.Filter{Method: "gmail.users.history.list"})
	if cut.Calls == 0 || len(cut.Statuses) != 0 {
		t.Errorf("a call whose connection was cut: %+v, want no status", cut)
	}
}

func TestLimitsControl(t *testing.T) {
	server, base := start(t, fakegoogle.Options{UserLimit: 1})
	server.AddMailbox(ann)
	list := func() error {
		_, err := client(t, base, ann).Messages.List("me").Do()
		return err
	}
	if list() == nil {
		t.Fatal("5 units fit under a limit of 1")
	}
	got := decode[meter.Limits](t, post(t, base+"/_fake/limits", `{"user":100,"in_flight":3}`, 200))
	want := meter.Limits{User: 100, Project: 1_200_000, InFlight: 3, BytesPerDay: fakegoogle.DefaultBytesPerDay}
	if got != want {
		t.Errorf("limits = %+v, want %+v", got, want)
	}
	if err := list(); err != nil {
		t.Errorf("under the larger limit: %v", err)
	}
	post(t, base+"/_fake/limits", `{"user":-1}`, 400)
	post(t, base+"/_fake/limits", `{"users":1}`, 400)
	if got := decode[meter.Limits](t, do(t, "GET", base+"/_fake/limits", "", 200)); got != want {
		t.Errorf("after two bad requests limits = %+v, want %+v", got, want)
	}
	if _, err := server.SetLimits(meter.Limits{User: 1}); err != nil {
		t.Fatal(err)
	}
	err := list()
	wantError(t, err, 403, "Quota exceeded for quota metric 'Total Query Cost' and limit 'Units per minute per user' of service 'gmail.googleapis.com' for consumer 'project_number:000000000000'.", "rateLimitExceeded", "PERMISSION_DENIED")
	if r := server.Meter().User(ann); r.WindowsOverLimit != 2 || r.Limit != 1 {
		t.Errorf("report = %+v, want the first and the last call over their limits", r.LimitReport)
	}
}
