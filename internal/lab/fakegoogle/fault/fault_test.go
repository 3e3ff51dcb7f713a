package fault

import (
	"testing"
	"time"

	"headroom/internal/lab/fakegoogle/meter"
)

func TestFaultsByTime(t *testing.T) {
	for _, test := range []struct {
		fault         Fault
		age           time.Duration
		want          bool
		afterAnotherS bool
	}{
		{Fault{}, 0, true, true},
		{Fault{AfterMS: 2_000}, 1999 * time.Millisecond, false, true},
		{Fault{ForMS: 1_200_000}, 20*time.Minute - 1, true, false},
		{Fault{AfterMS: 2_000, ForMS: 1_000}, 2 * time.Second, true, false},
		{Fault{AfterMS: 2_000, ForMS: 1_000}, time.Second, false, true},
	} {
		if got := test.fault.during(test.age); got != test.want {
			t.Errorf("%+v is in force %s after it was added: %v", test.fault, test.age, got)
		}
		if got := test.fault.during(test.age + time.Second); got != test.afterAnotherS {
			t.Errorf("%+v is in force %s after it was added: %v", test.fault, test.age+time.Second, got)
		}
	}
}

// TestCallsAreCountedWhileAFaultLasts lets a call come before a fault, two while
// it lasts and one after: the first of the two is its first.
func TestCallsAreCountedWhileAFaultLasts(t *testing.T) {
	now := time.Now()
	var list List
	list.states = []*State{{Fault: Fault{Status: 500, Nth: 1, AfterMS: 60_000, ForMS: 60_000}}}
	for _, at := range []struct {
		age  time.Duration
		want bool
	}{{30 * time.Second, false}, {90 * time.Second, true}, {90 * time.Second, false}, {3 * time.Minute, false}} {
		list.states[0].added = now.Add(-at.age)
		if _, applied := list.Match(meter.Call{Project: "p", User: "u", Method: "gmail.users.messages.get"}); applied != at.want {
			t.Errorf("%s after it was added: applied %v, want %v", at.age, applied, at.want)
		}
	}
	if seen := list.states[0].Seen; seen != 2 {
		t.Errorf("%d calls seen, want the two while it lasts", seen)
	}
}
