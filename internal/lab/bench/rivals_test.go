package bench

import (
	"testing"
	"time"
)

// Each rival admits exactly the limit at one moment, and one more call when its
// own idea of a minute is over.
func TestRivalsKnowTheLimit(t *testing.T) {
	const limit, cost = 100, 20
	rdb := newClient(t)
	ours, err := oursRival(rdb, t.Name(), limit, cost)
	if err != nil {
		t.Fatal(err)
	}
	redisRate, stop, err := redisRateRival(limit, cost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, test := range []struct {
		rival
		again time.Duration // when one more call fits
	}{
		{ours, 62 * time.Second},      // a bucket and the guard later
		{redisRate, 12 * time.Second}, // the time of one call at the limit's rate
		{plainRival(rdb, t.Name()+"plain", limit, cost), 60 * time.Second},
		{twoCounterRival(rdb, t.Name()+"two", limit, cost), 72 * time.Second}, // a fifth into the next minute
	} {
		t.Run(test.name, func(t *testing.T) {
			admit := func(at time.Duration) bool {
				t.Helper()
				ok, err := test.admit(t.Context(), loadBegins.Add(at), 0)
				if err != nil {
					t.Fatal(err)
				}
				return ok
			}
			for n := range limit / cost {
				if !admit(0) {
					t.Fatalf("call %d of %d was refused", n+1, limit/cost)
				}
			}
			if admit(0) {
				t.Error("one call more than the limit was admitted")
			}
			if admit(test.again - 50*time.Millisecond) {
				t.Errorf("a call was admitted before %s", test.again)
			}
			if !admit(test.again + time.Millisecond) {
				t.Errorf("no call was admitted after %s", test.again)
			}
		})
	}
}

// The plain script's two clients disagree about when a minute is over.
func TestPlainClockSkew(t *testing.T) {
	r := plainRival(newClient(t), t.Name(), 100, 100)
	for _, step := range []struct {
		at     time.Duration
		client int
		want   bool
	}{
		{0, 0, true},
		{59 * time.Second, 1, false},
		{59*time.Second + 600*time.Millisecond, 0, false},
		{59*time.Second + 600*time.Millisecond, 1, true}, // 0.4 s before it should
	} {
		got, err := r.admit(t.Context(), loadBegins.Add(step.at), step.client)
		if err != nil {
			t.Fatal(err)
		}
		if got != step.want {
			t.Errorf("after %s client %d: admitted %v, want %v", step.at, step.client, got, step.want)
		}
	}
}

func TestLoadsAskForMoreThanTheLimit(t *testing.T) {
	for name, load := range loads {
		waves := load()
		oldest, asked, most := 0, 0, 0 // calls in a minute
		for i, w := range waves {
			if w.at >= loadTime || w.calls < 1 || i > 0 && w.at <= waves[i-1].at {
				t.Fatalf("%s: wave %d is %+v", name, i, w)
			}
			asked += w.calls
			for ; waves[oldest].at <= w.at-rivalWindow; oldest++ {
				asked -= waves[oldest].calls
			}
			most = max(most, asked)
		}
		if most <= gulp {
			t.Errorf("%s asks for %d calls in a minute at most, which is not more than the limit's %d", name, most, gulp)
		}
	}
}
