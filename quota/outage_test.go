package quota_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/quota"
)

const (
	outageScale  = 10
	outageWindow = 60 * time.Second / outageScale
	outageLimit  = 3000 // units of a user in a window
	outageLength = 5 * time.Second
	listCost     = 5
	getCost      = 20
)

// outage is a backfill that takes all it gets, and people who keep to less than a
// tenth of the limit but for the time without Redis, when they want more than that.
type outage struct {
	fake    *fakegoogle.Server
	service *gmail.Service
	id      string

	mu       sync.Mutex
	backfill []time.Time // when calls were let in
	people   []time.Time
	refused  int // of the people's, by the process itself
}

func newOutage(t *testing.T, rdb redis.UniversalClient) *outage {
	t.Helper()
	fake, err := fakegoogle.New(fakegoogle.Options{Scale: outageScale, UserLimit: outageLimit})
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Load(annPerson.User, "generate:20"); err != nil {
		t.Fatal(err)
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(context.WithoutCancel(t.Context())) })
	ledger, _, _ := failOpen(t, rdb, ownPrefix(t), outageLimit, 1_200_000, outageScale)
	o := &outage{fake: fake, id: fake.Mailbox(annPerson.User).Messages()[0].ID}
	o.service, err = gmail.NewService(t.Context(), option.WithEndpoint(url),
		option.WithHTTPClient(&http.Client{Transport: &quota.Transport{Limiter: ledger, Scale: outageScale}}))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// run makes calls until ctx ends. Eager is closed when people want more.
func (o *outage) run(ctx context.Context, eager *bool) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := o.service.Users.Messages.Get("me", o.id).Format("raw").Context(quota.WithCaller(ctx, annBackfill)).Do()
				pause := time.Duration(0)
				var denied *quota.DeniedError
				switch {
				case err == nil:
					o.mu.Lock()
					o.backfill = append(o.backfill, time.Now())
					o.mu.Unlock()
				case errors.As(err, &denied):
					pause = min(denied.RetryAfter, 50*time.Millisecond)
				default:
					pause = 50 * time.Millisecond
				}
				wait(ctx, pause)
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			_, err := o.service.Users.Messages.List("me").Context(quota.WithCaller(ctx, annPerson)).Do()
			pause := 130 * time.Millisecond // 235 units in a window
			var denied *quota.DeniedError
			o.mu.Lock()
			switch {
			case err == nil:
				o.people = append(o.people, time.Now())
			case errors.As(err, &denied) && denied.Bound == quota.BoundLocal:
				o.refused++
			}
			if *eager {
				pause = 5 * time.Millisecond
			}
			o.mu.Unlock()
			wait(ctx, pause)
		}
	})
	group.Wait()
}

// between counts calls from one moment to another.
func (o *outage) between(calls *[]time.Time, from, to time.Time) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range *calls {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// mostIn is the most calls from from on that a span of time holds.
func (o *outage) mostIn(calls *[]time.Time, span time.Duration, from, to time.Time) (most int) {
	for at := from; at.Before(to); at = at.Add(20 * time.Millisecond) {
		most = max(most, o.between(calls, at, at.Add(span)))
	}
	return most
}

// without lets the traffic run through a time without Redis, and some after it.
// Held is how long the background holds then because windows were lost.
func without(t *testing.T, rdb redis.UniversalClient, held time.Duration, stop, start func() error) {
	t.Helper()
	o := newOutage(t, rdb)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, eager := make(chan struct{}), false
	go func() {
		defer close(done)
		o.run(ctx, &eager)
	}()
	for deadline := time.Now().Add(30 * time.Second); o.fake.Meter().User(annPerson.User).MostInWindow < outageLimit*7/10; {
		if wait(ctx, 50*time.Millisecond); time.Now().After(deadline) {
			t.Fatal("the window did not fill")
		}
	}
	setEager := func(to bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		eager = to
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	setEager(true)
	wait(ctx, outageLength)
	ended := time.Now()
	setEager(false)
	if err := start(); err != nil {
		t.Fatal(err)
	}
	// Backfill comes back by itself: at most a second until somebody looks whether
	// Redis answers, another for connections, and what people spent meanwhile to be paid for.
	latest := ended.Add(held + 6*time.Second)
	for o.between(&o.backfill, ended, latest) == 0 && time.Now().Before(latest) {
		wait(ctx, 20*time.Millisecond)
	}
	back := time.Now()
	wait(ctx, outageWindow)
	cancel()
	<-done

	report := o.fake.Meter()
	user := report.User(annPerson.User)
	blind := o.between(&o.backfill, began.Add(2*time.Second), ended) // later than what was under way
	people := o.between(&o.people, began.Add(time.Second), ended)
	share := o.mostIn(&o.people, outageWindow, began.Add(-outageWindow), ended.Add(-outageWindow))
	second := o.mostIn(&o.backfill, time.Second, ended, back.Add(outageWindow))
	t.Logf("most in a window %d of %d; without Redis %d calls of people, at most %d units of them in a window, %d refused; backfill back after %s, then at most %d units in a second",
		user.MostInWindow, user.Limit, people, share*listCost, o.refused, back.Sub(ended).Round(10*time.Millisecond), second*getCost)
	if report.OverLimit() != 0 || report.Refused() != 0 {
		t.Errorf("%d limits were passed, and the fake refused %d calls", report.OverLimit(), report.Refused())
	}
	if blind != 0 {
		t.Errorf("backfill made %d calls without Redis", blind)
	}
	if people < 10 || o.refused == 0 {
		t.Errorf("people made %d calls without Redis and were refused %d times, want at least 10 and 1", people, o.refused)
	}
	if share*listCost > outageLimit/10+listCost { // calls that end in a window may have begun before it
		t.Errorf("people spent %d units in a window that ended without Redis, want a tenth of %d at most", share*listCost, outageLimit)
	}
	if o.between(&o.backfill, ended, latest) == 0 {
		t.Errorf("backfill was not back after %s", latest.Sub(ended))
	}
	// Its pace is 1.05 times the ceiling in a window, and five buckets may be made up.
	if most := 1.05 * 0.8 * outageLimit / 60 * (outageScale + 5); float64(second*getCost) > most+4*getCost {
		t.Errorf("backfill spent %d units in a second after it was back, want its pace, %.0f, and what four callers have under way", second*getCost, most)
	}
}

func TestThroughTimesWithoutRedis(t *testing.T) {
	t.Run("killed and restarted", func(t *testing.T) {
		t.Parallel()
		server, rdb := ownRedis(t)
		without(t, rdb, 62*time.Second/outageScale,
			func() error { server.Kill(); return nil },
			func() error { return server.Restart(t.Context()) })
	})
	t.Run("stopped in its tracks", func(t *testing.T) {
		t.Parallel()
		server, rdb := ownRedis(t)
		without(t, rdb, 0,
			func() error { return server.Signal(syscall.SIGSTOP) },
			func() error { return server.Signal(syscall.SIGCONT) })
	})
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		_, direct := ownRedis(t)
		slow := slowed(t, direct.Options().Addr)
		without(t, newClient(t, slow.Addr), 0,
			func() error { slow.Delay(2 * time.Second); return nil },
			func() error { slow.Delay(0); return nil })
	})
}
