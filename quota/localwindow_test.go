package quota

import (
	"math/rand/v2"
	"testing"
	"time"

	"headroom/quota/price"
)

// TestLocalWindowsAgainstALog: whatever was let in before, a call is let in if and
// only if the log of the last buckets leaves room for it, and when the wait that
// was named is over.
func TestLocalWindowsAgainstALog(t *testing.T) {
	t.Parallel()
	const width = 100 * time.Millisecond
	p := &plan{
		project: scope{windows: []window{{limit: price.ProjectMinute, units: 900, reserve: 900, buckets: 61}}},
		user: scope{windows: []window{
			{limit: "user-burst", units: 100, reserve: 40, buckets: 5},
			{limit: price.UserMinute, units: 600, reserve: 600, buckets: 61},
		}},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	type entry struct {
		user   int
		bucket int64
		units  int64
	}
	var log []entry
	w := localWindows{width: width, kept: 61}
	users := []string{"ann@example.com", "Bob@example.com", "cid@example.com", "dee@example.com"}
	fits := func(user int, cost int64, at time.Duration) bool {
		var burst, minute, project int64
		for _, e := range log {
			age := int64(at/width) - e.bucket
			if age <= 61 {
				project += e.units
			}
			if e.user == user && age <= 61 {
				minute += e.units
			}
			if e.user == user && age <= 5 {
				burst += e.units
			}
		}
		return burst+cost <= 40 && minute+cost <= 300 && project+cost <= 450 // half of each limit, or its reserve
	}
	admitted, refused := 0, 0
	var at time.Duration
	for range 10_000 {
		at += time.Duration(rng.Int64N(int64(width)))
		user, cost := rng.IntN(len(users)), 1+rng.Int64N(40)
		_, denied := w.check(p, 0.5, users[user], cost, at, time.Now())
		if want := fits(user, cost, at); (denied == nil) != want {
			t.Fatalf("at %s: %d units of %s: denied %+v, want them let in: %t", at, cost, users[user], denied, want)
		}
		if denied == nil {
			admitted++
			w.note(users[user], int64(at/width), cost, false)
			log = append(log, entry{user, int64(at / width), cost})
			continue
		}
		refused++
		if denied.bound != BoundLocal || !fits(user, cost, at+denied.wait) || fits(user, cost, at+denied.wait-1) {
			t.Fatalf("at %s: %d units of %s are to wait %s for %s, want the first moment at which they fit", at, cost, users[user], denied.wait, denied.usage.Limit)
		}
	}
	if admitted < 1000 || refused < 1000 {
		t.Errorf("%d let in and %d refused, want a thousand of each", admitted, refused)
	}
}

func TestLocalWindowsForgetIdleUsers(t *testing.T) {
	w := localWindows{width: time.Second, kept: 61}
	now := time.Now()
	w.user("held").hold.until = now.Add(time.Hour)
	for bucket := range int64(1000) {
		w.note(string(rune('A'+bucket)), bucket, 5, bucket%2 == 0)
	}
	if n := len(w.users); n > 2*63 {
		t.Errorf("%d users are kept, want those of the last two windows at most", n)
	}
	if _, ok := w.users["held"]; !ok {
		t.Error("a user with a cool-down was forgotten")
	}
	if n := len(w.project.spent); n > 62 {
		t.Errorf("%d buckets of the project are kept, want one window of them", n)
	}
}

func TestSpendingIsPaidFromTheOldest(t *testing.T) {
	var s spending
	s.add(1, 10)
	s.add(2, 10)
	s.add(2, 5)
	s.pay(12)
	if len(s) != 1 || s[0] != (spent{2, 13}) {
		t.Errorf("after 12 of 25 were paid: %v, want 13 of bucket 2", s)
	}
	s.pay(20)
	if len(s) != 0 {
		t.Errorf("after all was paid: %v", s)
	}
}
