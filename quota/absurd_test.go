package quota_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/quota"
	"headroom/quota/price"
)

// TestAbsurdMomentsAreCounted refuses three users: the first without a moment,
// the second with a good one, the third with one that nobody believes.
func TestAbsurdMomentsAreCounted(t *testing.T) {
	fake, err := fakegoogle.New(fakegoogle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(context.WithoutCancel(t.Context()))
	reg := prometheus.NewRegistry()
	ledger, err := quota.NewLedger(quota.Options{
		Redis: newClient(t, realRedis.Addr), KeyPrefix: ownPrefix(t), Fresh: true, Registerer: reg,
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 100000)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	for _, test := range []struct {
		user       string
		retryAfter map[string]string
		absurd     int
	}{
		{"ann@example.com", nil, 0},
		{"bob@example.com", map[string]string{"Retry-After": "7"}, 0},
		{"eve@example.com", map[string]string{"Retry-After": "99999999999999999999"}, 1},
	} {
		fake.AddMailbox(test.user)
		if err := fake.AddFault(fault.Fault{Status: http.StatusTooManyRequests, Headers: test.retryAfter}); err != nil {
			t.Fatal(err)
		}
		ctx := quota.WithCaller(t.Context(), quota.Caller{Project: "p", User: test.user, Lane: quota.Interactive})
		if _, err := service.Users.GetProfile(test.user).Context(ctx).Do(); err == nil {
			t.Fatalf("%s was not refused", test.user)
		}
		if got := testutil.CollectAndCount(reg, "headroom_quota_absurd_deadlines_total"); got != test.absurd {
			t.Errorf("after %s: %d series of absurd moments, want %d", test.user, got, test.absurd)
		}
		fake.ClearFaults()
	}
}
