package quota_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// failOpen makes a ledger that lets people spend a tenth without Redis, what it
// counts, and what it logs.
func failOpen(t *testing.T, rdb redis.UniversalClient, prefix string, user, project int64, scale int) (*quota.Ledger, *prometheus.Registry, *observer.ObservedLogs) {
	t.Helper()
	reg := prometheus.NewRegistry()
	core, logged := observer.New(zap.WarnLevel)
	ledger, err := quota.NewLedger(quota.Options{
		Redis: rdb, Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, user, project)}}},
		Scale: scale, KeyPrefix: prefix, Fresh: true, FailOpen: 0.1, Log: zap.New(core), Registerer: reg,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ledger, reg, logged
}

var (
	annPerson   = quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	bobPerson   = quota.Caller{Project: "p", User: "bob@example.com", Lane: quota.Interactive}
	annBackfill = quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Backfill}
)

// nowhere is a client of a Redis that is not there.
func nowhere(t *testing.T) *redis.Client {
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: "127.0.0.1:1"}))
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestPeopleGoOnWithoutRedis(t *testing.T) {
	t.Parallel()
	ledger, reg, logged := failOpen(t, nowhere(t), "", 6000, 9000, 20)
	take := func(c quota.Caller, cost int64) error {
		d, err := ledger.Take(t.Context(), c, "gmail", cost)
		if err == nil && (!d.Local || d.Charge.Units != cost) {
			t.Errorf("got %+v, want a local decision", d)
		}
		return err
	}
	for range 6 {
		if err := take(annPerson, 100); err != nil {
			t.Fatalf("within a tenth of the user's limit: %v", err)
		}
	}
	var denied *quota.DeniedError
	if err := take(annPerson, 5); !errors.As(err, &denied) || denied.Bound != quota.BoundLocal || denied.Limit != price.UserMinute ||
		denied.Used != 600 || denied.Ceiling != 600 || denied.RetryAfter > 62*time.Second/20 {
		t.Errorf("beyond it: got %v", err)
	}
	if err := take(bobPerson, 300); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := take(bobPerson, 100); !errors.As(err, &denied) || denied.Limit != price.ProjectMinute {
		t.Errorf("beyond a tenth of the project's limit: got %v", err)
	}
	if err := take(bobPerson, 901); !errors.Is(err, quota.ErrUnavailable) || errors.As(err, new(*quota.DeniedError)) {
		t.Errorf("a call that only Redis can let in: got %v, want ErrUnavailable", err)
	}
	if err := take(annBackfill, 20); !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("backfill: got %v, want ErrUnavailable", err)
	}
	if _, err := ledger.Peek(t.Context(), annPerson, "gmail"); !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("a look: got %v, want ErrUnavailable", err)
	}
	wait(t.Context(), denied.RetryAfter)
	if err := take(bobPerson, 100); err != nil {
		t.Errorf("after the wait that was named: %v", err)
	}
	for name, want := range map[string]float64{"headroom_quota_fail_open_calls_total": 8, "headroom_quota_fail_open_units_total": 1000} {
		if got := counted(t, reg, name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got := counted(t, reg, "headroom_quota_fail_open_seconds_total"); got < 2 || got > 60 {
		t.Errorf("%v s without Redis were counted, want some three", got)
	}
	if got := logged.All(); len(got) != 1 || got[0].ContextMap()["project"] != "p" {
		t.Errorf("logged %+v, want one warning", got)
	}
}

// counted is the sum of a metric.
func counted(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// Without a share nobody goes on, as without the background's ceilings below the
// limit.
func TestNobodyGoesOnWithoutAReserve(t *testing.T) {
	t.Parallel()
	full := map[quota.Lane]quota.LaneSettings{quota.Backfill: {Ceiling: 1}}
	for _, o := range []quota.Options{{FailOpen: quota.NoFailOpen}, {FailOpen: 1, Projects: map[string]quota.Project{"p": {Lanes: full}}}} {
		project := o.Projects["p"]
		project.Lists = []*price.List{gmailWith(t, 6000, 9000)}
		o.Redis, o.Projects = nowhere(t), map[string]quota.Project{"p": project}
		ledger, err := quota.NewLedger(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Take(t.Context(), annPerson, "gmail", 5); !errors.Is(err, quota.ErrUnavailable) {
			t.Errorf("share %v: got %v, want ErrUnavailable", o.FailOpen, err)
		}
	}
}

// away makes a ledger's Redis stop answering, and lets the ledger find out.
func away(t *testing.T, ledger *quota.Ledger, stop func()) {
	t.Helper()
	stop()
	if _, err := ledger.Take(t.Context(), annBackfill, "gmail", 1); !errors.Is(err, quota.ErrUnavailable) {
		t.Fatalf("backfill without Redis: got %v, want ErrUnavailable", err)
	}
}

func TestRedisIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	server, rdb := ownRedis(t)
	prefix := ownPrefix(t)
	ledger, _, logged := failOpen(t, rdb, prefix, 6000, 100_000, 1)
	if _, err := ledger.Take(t.Context(), annPerson, "gmail", 500); err != nil {
		t.Fatal(err)
	}
	away(t, ledger, func() { server.Signal(syscall.SIGSTOP) })
	// What was spent before counts.
	var denied *quota.DeniedError
	if _, err := ledger.Take(t.Context(), annPerson, "gmail", 101); !errors.As(err, &denied) || denied.Bound != quota.BoundLocal || denied.Used != 500 {
		t.Errorf("500 were spent, 101 more: got %v", err)
	}
	if d, err := ledger.Take(t.Context(), annPerson, "gmail", 100); err != nil || !d.Local {
		t.Errorf("100 more: got %+v, %v", d, err)
	}
	// Bob is new to Redis, and has a cool-down of which it cannot be told.
	if d, err := ledger.Take(t.Context(), bobPerson, "gmail", 40); err != nil || !d.Local {
		t.Errorf("another user: got %+v, %v", d, err)
	}
	refused := quota.Charge{Caller: bobPerson, API: "gmail", Units: 40}
	if err := ledger.Answered(t.Context(), refused, quota.Refusal{Scope: quota.ScopeUser, Wait: time.Hour}); !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("a cool-down: got %v, want ErrUnavailable", err)
	}
	if _, err := ledger.Take(t.Context(), bobPerson, "gmail", 5); !errors.As(err, &denied) || denied.Bound != quota.BoundHold || denied.RetryAfter < 59*time.Minute {
		t.Errorf("in the cool-down: got %v", err)
	}
	server.Signal(syscall.SIGCONT)
	// The first decision that Redis makes again knows of it all, and so does everybody else.
	d := eventually(t, func() (quota.Decision, error) {
		d, err := ledger.Take(t.Context(), annPerson, "gmail", 0)
		return d, err
	})
	other, _, _ := failOpen(t, newClient(t, server.Addr), prefix, 6000, 100_000, 1)
	theirs, err := other.Peek(t.Context(), bobPerson, "gmail")
	if err != nil {
		t.Fatal(err)
	}
	if used(d, price.UserMinute) < 600 || used(theirs, price.UserMinute) != 40 || used(theirs, price.ProjectMinute) < 640 {
		t.Errorf("used: %+v of ann and %+v of bob, want 600 and 40 at least", d.Usage, theirs.Usage)
	}
	if time.Until(theirs.User.ClosedUntil) < 59*time.Minute || theirs.User.Share > 0.51 {
		t.Errorf("bob is closed until %s and may then use %v, want almost an hour and half", theirs.User.ClosedUntil, theirs.User.Share)
	}
	if n := logged.FilterMessageSnippet("an account waits").Len(); n != 1 {
		t.Errorf("%d lines about bob's cool-down, want one", n)
	}
	if got := logged.FilterMessageSnippet("redis ").All(); len(got) != 2 || got[1].ContextMap()["after"] == nil {
		t.Errorf("logged %+v, want one warning when it began and one when it ended", got)
	}
}

func used(d quota.Decision, limit string) int64 {
	for _, u := range d.Usage {
		if u.Limit == limit {
			return u.Used
		}
	}
	return -1
}

// TestALostRedisIsToldToo: after a restart without data the windows are unknown, and
// what people spent meanwhile counts against what is left to them.
func TestALostRedisIsToldToo(t *testing.T) {
	t.Parallel()
	server, rdb := ownRedis(t)
	ledger, _, _ := failOpen(t, rdb, ownPrefix(t), 6000, 100_000, 1)
	if _, err := ledger.Take(t.Context(), annPerson, "gmail", 5); err != nil {
		t.Fatal(err)
	}
	away(t, ledger, server.Kill)
	if d, err := ledger.Take(t.Context(), annPerson, "gmail", 500); err != nil || !d.Local {
		t.Fatalf("got %+v, %v", d, err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (quota.Decision, error) { return ledger.Peek(t.Context(), annPerson, "gmail") })
	var denied *quota.DeniedError
	if _, err := ledger.Take(t.Context(), annPerson, "gmail", 101); !errors.As(err, &denied) || denied.Bound != quota.BoundUnknown {
		t.Errorf("500 of 600 were spent, 101 more: got %v", err)
	}
	if d, err := ledger.Take(t.Context(), annPerson, "gmail", 100); err != nil || d.Local {
		t.Errorf("100 more: got %+v, %v", d, err)
	}
	if _, err := ledger.Take(t.Context(), annBackfill, "gmail", 20); !errors.As(err, &denied) || denied.Bound != quota.BoundUnknown {
		t.Errorf("backfill: got %v, want it to hold", err)
	}
}

// slowed is a way to a Redis on which answers can be held up.
func slowed(t *testing.T, to string) *localredis.Proxy {
	t.Helper()
	p, err := localredis.NewProxy(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestASlowRedisCountsAsFailing: one that takes 2 s for an answer holds people up
// once for a moment, is left alone but for a look a second, and is used again when
// it is quick.
func TestASlowRedisCountsAsFailing(t *testing.T) {
	t.Parallel()
	_, direct := ownRedis(t)
	slow := slowed(t, direct.Options().Addr)
	ledger, reg, _ := failOpen(t, newClient(t, slow.Addr), ownPrefix(t), 6000, 100_000, 60)
	caller := func(lane quota.Lane) quota.Caller {
		return quota.Caller{Project: "p", User: "ann@example.com", Lane: lane}
	}
	eventually(t, func() (quota.Decision, error) { return ledger.Take(t.Context(), caller(quota.Backfill), "gmail", 1) })

	slow.Delay(2 * time.Second)
	began := time.Now()
	if d, err := ledger.Take(t.Context(), annPerson, "gmail", 5); err != nil || !d.Local {
		t.Errorf("got %+v, %v, want a local decision", d, err)
	}
	if took := time.Since(began); took > 1900*time.Millisecond {
		t.Errorf("the first call took %s, as long as Redis, want some 1 s", took)
	}
	calls := 0
	for began = time.Now(); time.Since(began) < 3500*time.Millisecond; calls++ {
		lane := quota.Lanes[calls%3]
		if _, err := ledger.Take(t.Context(), caller(lane), "gmail", 1); lane != quota.Interactive && !errors.Is(err, quota.ErrUnavailable) {
			t.Errorf("lane %s: got %v, want ErrUnavailable", lane, err)
		}
		wait(t.Context(), 5*time.Millisecond)
	}
	// Of a question that was given up its connection is lost, and a new one says hello.
	if n := slow.Asked(); calls < 100 || n > 20 {
		t.Errorf("of %d calls in 3.5 s, %d questions reached Redis, want a few", calls, n)
	}
	slow.Delay(0)
	d := eventually(t, func() (quota.Decision, error) { return ledger.Take(t.Context(), caller(quota.Sync), "gmail", 1) })
	if d.Local {
		t.Error("a call of lane sync was let in locally")
	}
	if got := testutil.CollectAndCount(reg, "headroom_quota_fail_open_seconds_total"); got != 1 {
		t.Errorf("%d metrics of the time without Redis, want one", got)
	}
}

// A caller that gives up says nothing about Redis.
func TestImpatientCallersSayNothingAboutRedis(t *testing.T) {
	t.Parallel()
	server, rdb := ownRedis(t)
	ledger, _, logged := failOpen(t, rdb, ownPrefix(t), 6000, 100_000, 1)
	if _, err := ledger.Take(t.Context(), annPerson, "gmail", 5); err != nil {
		t.Fatal(err)
	}
	server.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if d, err := ledger.Take(ctx, annPerson, "gmail", 5); err == nil {
		t.Errorf("a call whose time was over was let in: %+v", d)
	}
	server.Signal(syscall.SIGCONT)
	if d, err := ledger.Take(t.Context(), annPerson, "gmail", 1); err != nil || d.Local || logged.Len() > 0 {
		t.Errorf("got %+v, %v, logged %+v, want Redis to be asked", d, err, logged.All())
	}
}

// TestZeroOptionsLetPeopleGoOn: a ledger with nothing but what is required lets
// people in while Redis hangs, and holds the background.
func TestZeroOptionsLetPeopleGoOn(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	ledger, err := quota.NewLedger(quota.Options{Redis: newClient(t, server.Addr),
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 100_000)}}}})
	if err != nil {
		t.Fatal(err)
	}
	url, calls := mailServer(t)
	service := gmailClient(t, url, &quota.Transport{Limiter: ledger})
	read := func(lane quota.Lane) error {
		_, err := service.Users.Messages.Get("me", "1").Context(quota.WithCaller(t.Context(), ann(lane))).Do()
		return err
	}
	if err := read(quota.Interactive); err != nil {
		t.Fatal(err)
	}
	server.Signal(syscall.SIGSTOP)
	defer server.Signal(syscall.SIGCONT)
	for i := range 3 {
		if err := read(quota.Interactive); err != nil {
			t.Errorf("call %d of a person while Redis hangs: %v", i+1, err)
		}
	}
	if err := read(quota.Backfill); !errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("a backfill's call while Redis hangs: %v", err)
	}
	if calls.Load() != 4 {
		t.Errorf("%d calls were sent, want a person's four", calls.Load())
	}
	if _, err := gmailClient(t, url, &quota.Transport{}).Users.GetProfile("me").Context(quota.WithCaller(t.Context(), ann(quota.Interactive))).Do(); err == nil {
		t.Error("a transport without a ledger has sent a call")
	}
}
