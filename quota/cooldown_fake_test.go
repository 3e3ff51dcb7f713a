package quota_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	fakemeter "headroom/internal/lab/fakegoogle/meter"
	"headroom/quota"
	"headroom/quota/price"
)

// A fleet is a fake Google with users of one message each, and a ledger in front
// of it that knows its limits.
type fleet struct {
	fake    *fakegoogle.Server
	ledger  *quota.Ledger
	service *gmail.Service
	message map[string]string // by user
}

func newFleet(t *testing.T, o fakegoogle.Options, users ...string) *fleet {
	t.Helper()
	fake, err := fakegoogle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{fake: fake, message: map[string]string{}}
	for _, user := range users {
		f.message[user] = fake.AddMailbox(user).Add([]byte("Subject: one\r\n\r\nbody\r\n"))
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(context.WithoutCancel(t.Context())) })
	f.ledger = newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, o.UserLimit, 1_200_000)}}, o.Scale)
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(base.CloseIdleConnections)
	f.service, err = gmail.NewService(t.Context(), option.WithEndpoint(url),
		option.WithHTTPClient(&http.Client{Transport: addressed{&quota.Transport{Base: base, Limiter: f.ledger, Scale: o.Scale}}}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// addressed gives requests the token of their caller, which is its address.
type addressed struct{ next http.RoundTripper }

func (a addressed) RoundTrip(r *http.Request) (*http.Response, error) {
	c, _ := quota.CallerFrom(r.Context())
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.User)
	return a.next.RoundTrip(r)
}

// backfill fetches in so many goroutines until ctx ends.
func (f *fleet) backfill(ctx context.Context, t *testing.T, group *sync.WaitGroup, user string, goroutines int) {
	c := quota.Caller{Project: "p", User: user, Lane: quota.Backfill, MaxWait: time.Second}
	ctx = quota.WithCaller(ctx, c)
	for range goroutines {
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := f.service.Users.Messages.Get("me", f.message[user]).Format("raw").Context(ctx).Do()
				var denied *quota.DeniedError
				var answer *googleapi.Error
				switch {
				case err == nil || ctx.Err() != nil:
				case errors.As(err, &denied):
					wait(ctx, denied.RetryAfter)
				case !errors.As(err, &answer) || answer.Code != http.StatusForbidden:
					t.Errorf("%s: %v", user, err)
				}
			}
		})
	}
}

// units are those of answered calls of a user in a span of time.
func (f *fleet) units(user string, from, to time.Time) (units int64) {
	for a := range f.fake.Select(fakemeter.Filter{User: user, Since: from}) {
		if a.At.Before(to) && a.Status == http.StatusOK {
			units += a.Units
		}
	}
	return units
}

// TestHalfALimitForTwoMinutes is TestALimitAtHalfIsFoundAndLeftBehind at the fake
// Google, with everything on the way that there is.
func TestHalfALimitForTwoMinutes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	const scale, limit, minute = 15, 1500, time.Minute / 15
	for _, meter := range []string{fakemeter.Fixed, fakemeter.Sliding, fakemeter.Bucket} {
		t.Run(meter, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, fakegoogle.Options{Scale: scale, UserLimit: limit, Meter: meter}, "ann@example.com")
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			f.backfill(ctx, t, &group, "ann@example.com", 8)
			wait(ctx, minute+minute/2)
			if err := f.fake.AddFault(fault.Fault{Count: 1, Reason: "userUnitsPerMinute"}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.fake.SetLimits(fakemeter.Limits{User: limit / 2}); err != nil {
				t.Fatal(err)
			}
			half := time.Now()
			wait(ctx, 2*minute)
			if _, err := f.fake.SetLimits(fakemeter.Limits{User: limit}); err != nil {
				t.Fatal(err)
			}
			whole := time.Now()
			wait(ctx, 3*minute)
			stop()
			group.Wait()

			refused := f.fake.Activity(fakemeter.Filter{Since: half}).Statuses[http.StatusForbidden] - 1
			late := f.fake.Activity(fakemeter.Filter{Since: whole}).Statuses[http.StatusForbidden]
			before := f.units("ann@example.com", half.Add(-minute), half)
			back := f.units("ann@example.com", whole.Add(2*minute), whole.Add(3*minute))
			const ceiling = 0.8 * limit
			t.Logf("%d further refusals, %d of them after the two minutes; of the ceiling used: %.2f before, %.2f in the third minute after",
				refused, late, float64(before)/ceiling, float64(back)/ceiling)
			if refused > 3 || late > 0 || float64(back) < 0.9*ceiling {
				t.Errorf("%d further refusals, %d of them late, %.2f of the ceiling; want up to 3, none and 0.9", refused, late, float64(back)/ceiling)
			}
		})
	}
}

// TestACoolDownSlowsNobodyElse compares what fifteen users get while five others
// are cooled down with what they got before.
func TestACoolDownSlowsNobodyElse(t *testing.T) {
	t.Parallel()
	const scale, limit = 15, 200 // 40 calls a second: light enough for a busy machine
	var users []string
	for i := range 20 {
		users = append(users, fmt.Sprintf("user%d@example.com", i))
	}
	f := newFleet(t, fakegoogle.Options{Scale: scale, UserLimit: limit}, users...)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, user := range users {
		f.backfill(ctx, t, &group, user, 2)
	}
	const window, span = time.Minute / scale, 2 * time.Minute / scale
	wait(ctx, window+window/2)
	from := time.Now()
	wait(ctx, span)
	for _, user := range users[:5] {
		if err := f.fake.AddFault(fault.Fault{User: user, Count: 1, Status: http.StatusForbidden, RetryAfterMS: 3_600_000}); err != nil {
			t.Fatal(err)
		}
	}
	wait(ctx, time.Second)
	cooled := time.Now()
	wait(ctx, span)
	stop()
	group.Wait()

	var before, after, held int64
	for i, user := range users {
		if i < 5 {
			held += f.units(user, cooled, cooled.Add(span))
			continue
		}
		before += f.units(user, from, from.Add(span))
		after += f.units(user, cooled, cooled.Add(span))
	}
	t.Logf("fifteen users spent %d units before and %d while five others were cooled down, %.3f of it", before, after, float64(after)/float64(before))
	if n := f.fake.Meter().Refused(); held > 0 || n > 0 {
		t.Errorf("users that were cooled down spent %d units, and the meter refused %d calls; want none", held, n)
	}
	// A window takes eight calls of 20 units, and who begins to look between two of
	// them finds one more or less of each user.
	const call = 15 * 20
	if float64(after+call) < 0.95*float64(before) || before < 15*limit {
		t.Errorf("the others spent %d units, and %d before", after, before)
	}
}
