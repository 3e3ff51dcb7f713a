package bench

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestNoisyNeighbour runs a small tenants through whole processes: a tenant with many
// mailboxes holds up none that comes later, and is not held up by them.
func TestNoisyNeighbour(t *testing.T) {
	c := tenants{
		scale: 20, userLimit: 900, users: 3, slice: 500 * time.Millisecond,
		largeBoxes: 8, largeMessages: 400, small: 4, smallMessages: 60, later: 3 * time.Second, impatient: true,
	}
	r, err := c.measure(t.Context(), Options{Log: zap.NewNop()}, realRedis.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Refused != 0 {
		t.Errorf("Google refused %d calls", r.Refused)
	}
	if r.Slowdown > 3 {
		t.Errorf("a small tenant took %v times as long as alone, want 3 at most", r.Slowdown)
	}
	if r.Jain < 0.9 {
		t.Errorf("Jain's index is %v, want 0.9 at least", r.Jain)
	}
	if r.Units[largeTenant] == 0 || r.Stalled > 5 {
		t.Errorf("the large tenant spent %d units and stood still for %v s", r.Units[largeTenant], r.Stalled)
	}
	if r.MostPlaces > r.Places {
		t.Errorf("%d places were held at once, and there are %d", r.MostPlaces, r.Places)
	}
}

func TestFairnessJudgement(t *testing.T) {
	good := FairnessFigures{TenantsReport: TenantsReport{Tenants: 11, Messages: 10, Stored: 10, Jain: 0.95, Slowdown: 1.5}}
	for _, test := range []struct {
		name           string
		change         func(*FairnessFigures)
		missed, broken string
	}{
		{name: "all is well", change: func(*FairnessFigures) {}},
		{name: "unequal shares", change: func(f *FairnessFigures) { f.Jain = 0.94 }, missed: "jain_index is 0.94, aim at least 0.95"},
		{name: "slow", change: func(f *FairnessFigures) { f.Slowdown = 1.51 }, missed: "small_slowdown_max is 1.51, aim at most 1.5"},
		{name: "refused", change: func(f *FairnessFigures) { f.Refused = 1 }, broken: "Google refused 1 calls"},
		{name: "messages missing", change: func(f *FairnessFigures) { f.Stored = 9 }, broken: "9 of 10 messages were stored"},
		{name: "nothing", change: func(f *FairnessFigures) { *f = FairnessFigures{} },
			missed: "jain_index is 0, aim at least 0.95", broken: "nothing was measured"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good
			test.change(&f)
			f.judge()
			checkJudgement(t, &f, f.Targets, test.missed, test.broken)
		})
	}
}
