package quota_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// crowd is a few processes that share a user's places, and a clock of theirs.
type crowd struct {
	t       *testing.T
	now     time.Time
	ledgers []*quota.Ledger
}

func newCrowd(t *testing.T, rdb *redis.Client, processes, scale int, project quota.Project) *crowd {
	t.Helper()
	if project.Lists == nil {
		project.Lists = []*price.List{gmailWith(t, 6000, 100_000)}
	}
	c := &crowd{t: t, now: time.Date(2026, 11, 29, 20, 10, 0, 0, time.UTC)}
	prefix := ownPrefix(t)
	for range processes {
		ledger, err := quota.NewLedger(quota.Options{Redis: rdb, FailOpen: quota.NoFailOpen, KeyPrefix: prefix, Fresh: true, Scale: scale,
			Projects: map[string]quota.Project{"p": project}})
		if err != nil {
			t.Fatal(err)
		}
		ledger.SetNow(func() time.Time { return c.now })
		c.ledgers = append(c.ledgers, ledger)
	}
	return c
}

func ann(lane quota.Lane) quota.Caller {
	return quota.Caller{Project: "p", User: "ann@example.com", Lane: lane}
}

// depart takes places in turn from all processes until none is left, and returns
// them with the refusal.
func (c *crowd) depart(lane quota.Lane) (places []quota.Permit, denied *quota.DeniedError) {
	c.t.Helper()
	for i := range 100 {
		d, err := c.ledgers[i%len(c.ledgers)].Try(c.t.Context(), quota.Call{Caller: ann(lane), API: "gmail"})
		if errors.As(err, &denied) {
			return places, denied
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.now = c.now.Add(time.Millisecond)
		places = append(places, d)
	}
	c.t.Fatal("a hundred calls got a place")
	return nil, nil
}

func (c *crowd) land(places []quota.Permit, r quota.Refusal) {
	c.t.Helper()
	for _, d := range places {
		c.now = c.now.Add(time.Millisecond)
		if err := d.Release(c.t.Context(), outcome(0, r)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *crowd) state() quota.FlightState {
	c.t.Helper()
	s, err := c.ledgers[0].InFlight(c.t.Context(), "p", "ann@example.com", "gmail")
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func TestLanesShareTheCallsInFlight(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		c := newCrowd(t, rdb, 3, 1, quota.Project{})
		var all []quota.Permit
		for _, step := range []struct {
			lane  quota.Lane
			more  int
			total int64
		}{{quota.Backfill, 7, 7}, {quota.Sync, 1, 8}, {quota.Backfill, 0, 8}, {quota.Interactive, 2, 10}, {quota.Sync, 0, 10}} {
			places, denied := c.depart(step.lane)
			all = append(all, places...)
			if len(places) != step.more || denied.Limit != quota.LimitInFlight || denied.Bound != quota.BoundInFlight || denied.Used != step.total {
				t.Errorf("%s got %d places, then %v, want %d and a refusal at %d in flight", step.lane, len(places), denied, step.more, step.total)
			}
			if denied.RetryAfter < 100*time.Millisecond || denied.RetryAfter > 250*time.Millisecond {
				t.Errorf("%s is to ask again in %s, want a moment", step.lane, denied.RetryAfter)
			}
		}
		same, other := ann(quota.Interactive), ann(quota.Interactive)
		same.User, other.User = "Ann@Example.com", "bob@example.com"
		if _, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: same, API: "gmail"}); err == nil {
			t.Error("the same address in another case got a place")
		}
		if d, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: other, API: "gmail"}); err != nil || d.Release(t.Context(), outcome(0, quota.Refusal{})) != nil {
			t.Errorf("another user: %v", err)
		}
		c.land(all[:1], quota.Refusal{})
		c.land(all[:1], quota.Refusal{}) // for a second time, which frees nothing
		if places, _ := c.depart(quota.Interactive); len(places) != 1 {
			t.Errorf("%d places where one was given back", len(places))
		} else {
			c.land(places, quota.Refusal{})
		}
		c.land(all[1:], quota.Refusal{})
		if s := c.state(); s != (quota.FlightState{}) {
			t.Errorf("in the end: %+v", s)
		}
		for _, ledger := range c.ledgers {
			if n := ledger.Slots(); n != 0 {
				t.Errorf("a process still renews %d places", n)
			}
		}
	})
}

var tooMany = quota.Refusal{Scope: quota.ScopeConcurrency, Reason: "rateLimitExceeded", Wait: 2 * time.Second}

func TestRefusalsLowerTheCallsInFlight(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		c := newCrowd(t, rdb, 4, 1, quota.Project{})
		for _, round := range []struct{ got, learned int64 }{{7, 6}, {5, 4}, {3, 2}, {1, 1}, {1, 1}} {
			places, _ := c.depart(quota.Backfill)
			if int64(len(places)) != round.got {
				t.Errorf("the background got %d places, want %d", len(places), round.got)
			}
			// Whichever is told first, the others were on their way with it.
			if round.got == 5 {
				slices.Reverse(places)
			}
			c.land(places, tooMany)
			if s := c.state(); s.Learned != round.learned || s.InFlight != 0 {
				t.Errorf("after %d were refused together: %+v, want %d learned", round.got, s, round.learned)
			}
		}
		if places, denied := c.depart(quota.Interactive); len(places) != 1 || denied.Ceiling != 1 {
			t.Errorf("people got %d places of one", len(places))
		} else {
			c.land(places, quota.Refusal{})
		}
	})
}

func TestPeopleHaveOneCallMoreThanTheBackground(t *testing.T) {
	c := newCrowd(t, newClient(t, realRedis.Addr), 2, 1, quota.Project{})
	places, _ := c.depart(quota.Backfill)
	c.land(places[:4], quota.Refusal{})
	c.land(places[4:5], tooMany) // the fifth of seven: five were too many
	c.land(places[5:], quota.Refusal{})
	if s := c.state(); s.Learned != 4 {
		t.Fatalf("%+v, want 4 learned", s)
	}
	background, _ := c.depart(quota.Sync)
	people, _ := c.depart(quota.Interactive)
	if len(background) != 3 || len(people) != 1 {
		t.Errorf("%d calls of the background and %d of people, want 3 and 1 beside them", len(background), len(people))
	}
}

func TestCalmRaisesTheCallsInFlight(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		c := newCrowd(t, rdb, 1, 60, quota.Project{}) // calm is not of quota time
		people := func() []quota.Permit { places, _ := c.depart(quota.Interactive); return places }
		refuse := func() {
			places := people()
			c.land(places[len(places)-1:], tooMany)
			c.land(places[:len(places)-1], quota.Refusal{})
		}
		count := func() int { places := people(); c.land(places, quota.Refusal{}); return len(places) }
		refuse()
		if got := count(); got != 9 {
			t.Fatalf("%d places after ten were too many", got)
		}
		c.now = c.now.Add(4 * time.Minute)
		if got := count(); got != 9 {
			t.Errorf("%d places after four minutes, want 9 still", got)
		}
		refuse() // at nine
		for i, calm := range []time.Duration{5, 10, 20, 40, 60, 60} {
			s := c.state()
			if left := s.CalmUntil.Sub(c.now).Round(time.Second); s.Learned != 8 || left != calm*time.Minute {
				t.Errorf("time %d: %d learned, one more in %s, want 8 and %s", i+1, s.Learned, left, calm*time.Minute)
			}
			c.now = s.CalmUntil.Add(-time.Second)
			if got := count(); got != 8 {
				t.Errorf("time %d: %d places a second before, want 8", i+1, got)
			}
			c.now = c.now.Add(time.Second)
			refuse() // at nine again: one more was tried
		}
		for range 5 {
			c.now = c.now.Add(time.Hour)
			count()
		}
		if s := c.state(); s.Learned != 0 || !s.CalmUntil.IsZero() {
			t.Errorf("after hours of calm: %+v, want nothing learned any more", s)
		}
		if places, denied := c.depart(quota.Backfill); len(places) != 7 || denied.Ceiling != 7 {
			t.Errorf("the background got %d places, want its own 7", len(places))
		}
	})
}

func TestTheDeadFreeTheirPlaces(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		c := newCrowd(t, rdb, 2, 1, quota.Project{})
		alive, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: ann(quota.Backfill), API: "gmail"})
		if err != nil {
			t.Fatal(err)
		}
		dead, _ := c.depart(quota.Backfill)
		_ = dead // nobody renews them, nor lands
		began := time.Now()
		for s := range 24 {
			c.now = c.now.Add(5 * time.Second)
			c.ledgers[0].Renew(began.Add(time.Duration(s+1) * 5 * time.Second))
			// Of the six others, half are of the first process, which lives.
			want := int64(7)
			if s > 0 {
				want = 4
			}
			if got := c.state().InFlight; got != want {
				t.Errorf("%d in flight after %d s, want %d", got, 5*(s+1), want)
			}
		}
		if err := alive.Release(t.Context(), outcome(0, quota.Refusal{})); err != nil {
			t.Fatal(err)
		}
		c.ledgers[0].Renew(began.Add(3 * time.Minute))
		if got := c.state().InFlight; got != 3 {
			t.Errorf("%d in flight, want 3: one was given back, and renewing does not bring it back", got)
		}
		c.ledgers[0].Renew(began.Add(5*time.Minute + time.Second))
		c.now = c.now.Add(11 * time.Second)
		if got := c.state().InFlight; got != 0 || c.ledgers[0].Slots() != 0 {
			t.Errorf("%d in flight, %d renewed, want none of calls that showed no life for five minutes", got, c.ledgers[0].Slots())
		}
	})
}

// TestAPlaceIsRenewedWhileItsCallIsInFlight waits for the timer itself.
func TestAPlaceIsRenewedWhileItsCallIsInFlight(t *testing.T) {
	t.Parallel()
	rdb := newClient(t, realRedis.Addr)
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}, 1)
	d, err := ledger.Try(t.Context(), quota.Call{Caller: ann(quota.Sync), API: "gmail"})
	if err != nil {
		t.Fatal(err)
	}
	ends := func() float64 {
		places, err := rdb.ZRangeWithScores(t.Context(), ledger.SlotKeys(ann(quota.Sync), "gmail")[0], 0, -1).Result()
		if err != nil || len(places) != 1 {
			t.Fatalf("places %v, %v, want one", places, err)
		}
		return places[0].Score
	}
	for first, deadline := ends(), time.Now().Add(9*time.Second); ends() == first; wait(t.Context(), 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the place was not renewed before it ended")
		}
	}
	if err := d.Release(t.Context(), outcome(0, quota.Refusal{})); err != nil || ledger.Slots() != 0 {
		t.Errorf("%v, %d places are renewed, want none", err, ledger.Slots())
	}
}

func TestBytesOfADay(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		for _, scale := range []int{1, 10} {
			c := newCrowd(t, rdb, 2, scale, quota.Project{})
			hour := time.Hour / time.Duration(scale)
			bring := func(bytes int64) {
				t.Helper()
				d, err := c.ledgers[1].Try(t.Context(), quota.Call{Caller: ann(quota.Interactive), API: "gmail"})
				if err == nil {
					err = d.Release(t.Context(), outcome(bytes, quota.Refusal{}))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			refused := func(lane quota.Lane) *quota.DeniedError {
				t.Helper()
				d, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: ann(lane), API: "gmail"})
				var denied *quota.DeniedError
				if err == nil {
					err = d.Release(t.Context(), outcome(0, quota.Refusal{}))
				} else if errors.As(err, &denied) {
					err = nil
				}
				if err != nil {
					t.Fatal(err)
				}
				return denied
			}
			c.now = c.now.Truncate(hour).Add(hour / 6)
			began := c.now
			bring(1_500_000_000)
			c.now = c.now.Add(3 * hour)
			bring(499_999_999)
			if denied := refused(quota.Backfill); denied != nil {
				t.Errorf("a byte below the ceiling: %v", denied)
			}
			bring(1)
			denied := refused(quota.Backfill)
			// The first hour's bytes leave a day after the hour has ended.
			wait := began.Truncate(hour).Add(25 * hour).Sub(c.now)
			if denied == nil || denied.Limit != quota.LimitUserBytes || denied.Bound != quota.BoundCeiling || denied.Used != 2_000_000_000 ||
				denied.Ceiling != 2_000_000_000 || denied.RetryAfter != wait {
				t.Fatalf("at the ceiling: %+v, want a refusal for %s", denied, wait)
			}
			if refused(quota.Sync) != nil || refused(quota.Interactive) != nil {
				t.Error("the other lanes were refused below their ceilings")
			}
			bring(500_000_000)
			if refused(quota.Interactive) == nil {
				t.Error("people's calls went on beyond the whole day's bytes")
			}
			c.now = c.now.Add(wait - time.Millisecond)
			if refused(quota.Backfill) == nil {
				t.Error("admitted before the bytes are a day old")
			}
			c.now = c.now.Add(time.Millisecond)
			if denied := refused(quota.Backfill); denied != nil {
				t.Errorf("after the wait that was told: %v", denied)
			}
			if s := c.state(); s.Bytes != 1_000_000_000 {
				t.Errorf("%d bytes, want those of the other hour", s.Bytes)
			}
			for _, key := range c.ledgers[0].SlotKeys(ann(quota.Backfill), "gmail")[:2] {
				if ttl := rdb.TTL(t.Context(), key).Val(); ttl > 26*time.Hour || ttl == -1 {
					t.Errorf("%s lives for %s", key, ttl)
				}
			}
		}
	})
}

// TestOtherSettingsReachWhoHasNoPlace: a process whose calls get no further than
// to ask for a place learns of other settings all the same.
func TestOtherSettingsReachWhoHasNoPlace(t *testing.T) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		c := newCrowd(t, rdb, 2, 1, quota.Project{})
		places, _ := c.depart(quota.Backfill)
		c.land(places[:1], quota.Refusal{})
		d, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: ann(quota.Backfill), API: "gmail"})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context(), outcome(2_000_000_000, quota.Refusal{})); err != nil {
			t.Fatal(err)
		}
		for i, change := range []quota.Change{
			{Lane: quota.Backfill, Limit: quota.LimitUserBytes, Key: quota.KeyCeiling, Value: 0.9},
			{Lane: quota.Backfill, Key: quota.KeyInFlight, Value: 9},
		} {
			if _, denied := c.depart(quota.Backfill); denied == nil {
				t.Fatal("want a refusal before the change")
			}
			live := quota.Live{Revision: uint32(i + 1), Changes: []quota.Change{change,
				{Lane: quota.Backfill, Limit: quota.LimitUserBytes, Key: quota.KeyCeiling, Value: 0.9}}}
			if _, err := c.ledgers[1].Publish(context.Background(), "p", "gmail", live); err != nil {
				t.Fatal(err)
			}
			d, err := c.ledgers[0].Try(t.Context(), quota.Call{Caller: ann(quota.Backfill), API: "gmail"})
			if err != nil {
				t.Fatalf("after %s: %v", change, err)
			}
			defer d.Release(t.Context(), outcome(0, quota.Refusal{}))
		}
	})
}

func TestAPlaceNeedsRedis(t *testing.T) {
	rdb := redis.NewClient(quota.ClientOptions(&redis.Options{Addr: "127.0.0.1:1"}))
	t.Cleanup(func() { rdb.Close() })
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{gmailWith(t, 100, 1000)}}, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ledger.Try(ended, quota.Call{Caller: ann(quota.Backfill), API: "gmail"}); !errors.Is(err, context.Canceled) || errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("with a context that has ended: %v", err)
	}
	for _, lane := range quota.Lanes {
		if d, err := ledger.Try(t.Context(), quota.Call{Caller: ann(lane), API: "gmail"}); d != nil || !errors.Is(err, quota.ErrUnavailable) {
			t.Errorf("%s: got %v, %v, want ErrUnavailable", lane, d, err)
		}
	}
	if _, err := ledger.Try(t.Context(), quota.Call{Caller: quota.Caller{Project: "q", User: "u", Lane: quota.Sync}, API: "gmail"}); !errors.Is(err, quota.ErrUnknownProject) {
		t.Errorf("for an unknown project: %v", err)
	}
	if _, err := ledger.Try(t.Context(), quota.Call{Caller: ann("fast"), API: "gmail"}); err == nil {
		t.Error("an unknown lane got a place")
	}
}

// outcome is what Google answered to a call: so many bytes, or a refusal.
func outcome(bytes int64, r quota.Refusal) quota.Answer {
	a := quota.Answer{Bytes: bytes}
	if r.Scope != quota.ScopeNone {
		a.Refusals = []quota.Refusal{r}
	}
	return a
}
