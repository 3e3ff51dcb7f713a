package traffic

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoadsAreWhatTheySay(t *testing.T) {
	const long = 8 * time.Hour
	for _, load := range []Load{Light, Moderate, Heavy, Spiky} {
		t.Run(load.Name, func(t *testing.T) {
			demands := load.Demands(1, long)
			singles, sends := 0, 0
			for i, d := range demands {
				if d.At < 0 || d.At >= long+BurstTime || d.At%time.Microsecond != 0 {
					t.Fatalf("a call at %s", d.At)
				}
				if i > 0 && d.At < demands[i-1].At {
					t.Fatalf("a call at %s after one at %s", d.At, demands[i-1].At)
				}
				switch d.Cost {
				case ReadCost:
					singles++
				case SendCost:
					sends++
				default:
					t.Fatalf("a call of %d units", d.Cost)
				}
			}
			singles -= sends * BurstCalls
			if got := float64(singles) / long.Minutes(); got < 0.95*load.PerMinute || got > 1.05*load.PerMinute {
				t.Errorf("%v calls a minute beside the bursts, want about %v", got, load.PerMinute)
			}
			if wanted := load.BurstEvery > 0; wanted != (sends > 0) {
				t.Errorf("%d bursts", sends)
			} else if wanted && (sends < 70 || sends > 125) { // four standard deviations
				t.Errorf("%d bursts, want about %v", sends, long/load.BurstEvery)
			}
			if cmp.Diff(demands, load.Demands(1, long)) != "" {
				t.Error("the same seed gives other calls")
			}
			if slices.Equal(demands, load.Demands(2, long)) {
				t.Error("another seed gives the same calls")
			}
		})
	}
}

// A burst's calls and its send come within two seconds.
func TestABurstIsShort(t *testing.T) {
	const long = 20 * time.Minute
	demands := Load{PerMinute: 1e-6, BurstEvery: 10 * time.Minute}.Demands(3, long)
	if len(demands) == 0 || len(demands)%(BurstCalls+1) != 0 {
		t.Fatalf("%d calls are no whole bursts", len(demands))
	}
	for burst := range slices.Chunk(demands, BurstCalls+1) {
		if took := burst[BurstCalls].At - burst[0].At; took > BurstTime || took < BurstTime/2 {
			t.Errorf("a burst takes %s", took)
		}
		sends := slices.DeleteFunc(slices.Clone(burst), func(d Demand) bool { return d.Cost != SendCost })
		if len(sends) != 1 {
			t.Errorf("%d sends in a burst", len(sends))
		}
	}
}
