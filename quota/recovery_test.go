package quota_test

import (
	"fmt"
	"testing"
	"time"

	"headroom/quota"
	"headroom/quota/price"
)

// A recovery is a backfill that takes all it gets from one user, through one
// refusal, two minutes in which Google takes half, and three minutes after. Its
// clock is its own.
type recovery struct {
	t      *testing.T
	ledger *quota.Ledger
	now    *time.Time
	google meterModel
	closed func(ends time.Time) time.Duration // for how long a refusal closes

	taken []arrival // by Google
}

const travel = 10 * time.Millisecond // of a call to Google

func newRecovery(t *testing.T, meter string, phase time.Duration, closed func(time.Time) time.Duration) *recovery {
	project := quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}
	ledgers, now := clocked(t, newClient(t, realRedis.Addr), project, 1)
	*now = now.Truncate(time.Minute).Add(phase)
	return &recovery{t: t, ledger: ledgers[0], now: now, closed: closed, google: meterModel{kind: meter, limit: 6000, level: 1100, at: *now}}
}

// until spends until a moment, and returns how many calls were refused. The first
// of them is refused whatever was spent, and closes for so long, if first is not 0.
func (r *recovery) until(end time.Time, first time.Duration) (refused int) {
	for r.now.Before(end) {
		charge, wait, _ := take(r.t, r.ledger, "ann@example.com", quota.Backfill)
		*r.now = r.now.Add(max(wait, travel))
		if wait > 0 {
			continue
		}
		ok, ends := r.google.take(*r.now, charge.Units)
		if ok && first == 0 {
			r.taken = append(r.taken, arrival{*r.now, charge.Units})
			continue
		}
		refusal := quota.Refusal{Scope: quota.ScopeUser, Wait: first}
		if refused++; first == 0 {
			refusal.Wait = r.closed(ends)
		}
		if first = 0; r.ledger.Answered(r.t.Context(), charge, refusal) != nil {
			r.t.Fatal("the ledger was not told")
		}
	}
	return refused
}

// backAt is when the last minute's units were 0.9 of the ceiling first.
func (r *recovery) backAt(since time.Time) time.Time {
	var sum int64
	oldest := 0
	for _, a := range r.taken {
		sum += a.units
		for ; !r.taken[oldest].at.After(a.at.Add(-time.Minute)); oldest++ {
			sum -= r.taken[oldest].units
		}
		if a.at.After(since) && sum >= 4800*9/10 {
			return a.at
		}
	}
	return r.taken[len(r.taken)-1].at.Add(time.Hour)
}

// TestALimitAtHalfIsFoundAndLeftBehind holds the growth of a share to what it is
// for: slow enough that a limit which is lower for a while refuses little, fast
// enough that afterwards all of it is used again soon.
func TestALimitAtHalfIsFoundAndLeftBehind(t *testing.T) {
	t.Parallel()
	for _, meter := range []string{"fixed", "anchored", "sliding", "bucket"} {
		for _, tt := range []struct {
			name   string
			closed func(ends time.Time) time.Duration
		}{
			{"that does not say until when", func(time.Time) time.Duration { return 65 * time.Second }},
			{"that says when the window ends", nil},
		} {
			t.Run(fmt.Sprintf("%s meter %s", meter, tt.name), func(t *testing.T) {
				t.Parallel()
				most, longest := 0, time.Duration(0)
				for _, first := range []time.Duration{65 * time.Second, 55 * time.Second, 2 * time.Second} {
					for _, phase := range []time.Duration{0, 35 * time.Second} {
						r := newRecovery(t, meter, phase, tt.closed)
						if r.closed == nil {
							r.closed = func(ends time.Time) time.Duration { return max(ends.Sub(*r.now), 5*time.Second) }
						}
						half := r.now.Add(100 * time.Second)
						if n := r.until(half, 0); n > 0 {
							t.Fatalf("%d calls refused by the whole limit", n)
						}
						r.google.limit = 3000
						whole := half.Add(2 * time.Minute)
						further := r.until(whole, first) - 1
						r.google.limit = 6000
						late := r.until(whole.Add(3*time.Minute), 0)
						back := r.backAt(whole).Sub(whole)
						most, longest = max(most, further), max(longest, back)
						if further > 3 || late > 0 || back > 3*time.Minute {
							t.Errorf("closed for %s, then %d further refusals, %d by the whole limit, and back to 0.9 of the ceiling after %s; want 3, none and 3m",
								first, further, late, back)
						}
					}
				}
				t.Logf("at most %d further refusals, back to 0.9 of the ceiling within %s", most, longest.Round(time.Second))
			})
		}
	}
}

// TestAUserThatIsAlwaysRefusedIsAskedForSeldom lets Google refuse everything for
// twenty minutes, and name moments that are worth nothing.
func TestAUserThatIsAlwaysRefusedIsAskedForSeldom(t *testing.T) {
	t.Parallel()
	for wait, most := range map[time.Duration]int{time.Second: 45, 65 * time.Second: 20} {
		r := newRecovery(t, "sliding", 0, func(time.Time) time.Duration { return wait })
		r.google.limit = 0
		calls := r.until(r.now.Add(20*time.Minute), 0)
		t.Logf("told to wait %s each time: %d calls in 20 minutes", wait, calls)
		if calls > most || calls < 10 {
			t.Errorf("told to wait %s each time: %d calls in 20 minutes, want up to %d", wait, calls, most)
		}
		r.google.limit = 6000
		over := *r.now
		r.until(over.Add(5*time.Minute), 0)
		if back := r.backAt(over).Sub(over); back > 4*time.Minute {
			t.Errorf("told to wait %s each time: back to 0.9 of the ceiling %s after the end", wait, back)
		}
	}
}
