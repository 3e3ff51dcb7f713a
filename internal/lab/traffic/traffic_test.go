package traffic

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/quota"
	"headroom/quota/price"
)

func TestPercentilesAreByNearestRank(t *testing.T) {
	ms := func(all ...int) (waits []time.Duration) {
		for _, n := range all {
			waits = append(waits, time.Duration(n)*time.Millisecond)
		}
		return waits
	}
	for _, test := range []struct {
		waits    []time.Duration
		p50, p99 int
	}{
		{ms(), 0, 0},
		{ms(7), 7, 7},
		{ms(1, 2), 1, 2},
		{ms(1, 2, 3, 4), 2, 4},
		{ms(1, 2, 3, 4, 5), 3, 5},
	} {
		p50, p99 := percentile(test.waits, 50), percentile(test.waits, 99)
		if p50 != time.Duration(test.p50)*time.Millisecond || p99 != time.Duration(test.p99)*time.Millisecond {
			t.Errorf("of %v: %s and %s, want %d and %d ms", test.waits, p50, p99, test.p50, test.p99)
		}
	}
}

// What failed for another reason than quota is neither admitted nor denied.
func TestDeniedCallsSpendNothing(t *testing.T) {
	users := New(Options{Scale: 1})
	began := time.Now()
	ann := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}
	denied := &quota.DeniedError{Limit: price.UserMinute, Bound: quota.BoundCeiling}
	for _, o := range []quota.Observation{
		{Caller: ann, Cost: 5}, {Caller: ann, Cost: 20, Waited: time.Second},
		{Caller: ann, Cost: 20, Err: denied}, {Caller: ann, Cost: 20, Err: errors.New("Redis is away")},
	} {
		users.observe(o)
	}
	if diff := cmp.Diff(Figures{Calls: 3, Units: 25, Denied: 1, WaitP99: time.Second}, users.Figures()); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if calls, units := users.Spent(ann.User, began, time.Now()); calls != 2 || units != 25 {
		t.Errorf("ann spent %d units in %d calls, want 25 in 2", units, calls)
	}
	if calls, _ := users.Spent("ben@example.com", began, time.Now()); calls != 0 {
		t.Errorf("ben made %d calls, want none", calls)
	}
	if diff := cmp.Diff(map[string]int64{"user-minute (ceiling)": 1}, users.DeniedBy()); diff != "" {
		t.Errorf("denied by (-want +got):\n%s", diff)
	}
}
