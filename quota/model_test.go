package quota_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
	"headroom/quota/price"
)

// model is the ledger's contract without its tricks: a map of buckets per
// window, summed anew for each decision.
type model struct {
	limits map[string]int64 // by limit name
	lanes  map[quota.Lane]quota.LaneSettings
	width  int64 // of a bucket, us
	n      int64
	state  map[string]*modelWindow // by limit and user
}

// modelCarry is for how many buckets unused pace may be made up.
const modelCarry = 5

type modelWindow struct {
	buckets map[int64]int64
	newest  int64
	paid    map[quota.Lane]int64 // us
	hold    int64                // us
}

type modelAnswer struct {
	granted int64
	wait    int64 // us; 0: admitted; -1: never
	limit   string
	bound   quota.Bound
	used    map[string]int64
}

func windowKey(limit, user string) string {
	if limit == price.UserMinute {
		return limit + " " + user
	}
	return limit
}

func (m *model) window(limit, user string) *modelWindow {
	key := windowKey(limit, user)
	if m.state[key] == nil {
		m.state[key] = &modelWindow{buckets: map[int64]int64{}, paid: map[quota.Lane]int64{}}
	}
	return m.state[key]
}

// settled returns the window as it stands at now, what it counts, and whether
// its units became young again.
func (w *modelWindow) settled(now, width, n int64) (at *modelWindow, used int64, restamped bool) {
	at = &modelWindow{buckets: map[int64]int64{}, newest: w.newest, paid: maps.Clone(w.paid), hold: w.hold}
	bucket := now / width
	if bucket > w.newest {
		at.newest = bucket
	}
	if w.newest-bucket > n { // the clock is far behind: everything was spent just now
		at.newest, restamped = bucket, true
		clear(at.paid)
	}
	for lane, paid := range at.paid {
		if paid <= (at.newest-modelCarry)*width { // long ago, also for a clock that steps back
			delete(at.paid, lane)
		}
	}
	for b, v := range w.buckets {
		switch {
		case restamped:
			at.buckets[bucket] += v
		case b >= at.newest-n:
			at.buckets[b] = v
		default:
			continue
		}
		used += v
	}
	return at, used, restamped
}

func (m *model) take(user string, lane quota.Lane, cost, now int64) modelAnswer {
	s := m.lanes[lane]
	answer := modelAnswer{used: map[string]int64{}}
	never, restamped := false, false
	views := map[string]*modelWindow{}
	keep := func() {
		for key, w := range views {
			m.state[key] = w
		}
	}
	for _, limit := range []string{price.ProjectMinute, price.UserMinute} {
		w, used, again := m.window(limit, user).settled(now, m.width, m.n)
		views[windowKey(limit, user)], restamped = w, restamped || again
		answer.used[limit] = used
		ceiling := int64(float64(m.limits[limit]) * s.Ceiling)
		var wait int64
		var bound quota.Bound
		if w.hold > now && cost > 0 {
			wait, bound = w.hold-now, quota.BoundHold
		}
		if cost > ceiling && !never {
			never, answer.limit = true, limit
		}
		if missing := cost - (ceiling - used); missing > 0 && cost > 0 {
			for b := w.newest - m.n; ; b++ {
				missing -= w.buckets[b]
				if missing <= 0 || b > w.newest {
					if left := (b+m.n+1)*m.width - now; left > wait {
						wait, bound = left, quota.BoundCeiling
					}
					break
				}
			}
		}
		if s.Pace > 0 {
			if owed := w.paid[lane] - now; owed > wait && cost > 0 {
				wait, bound = owed, quota.BoundPace
			}
		}
		if wait > answer.wait {
			answer.wait = wait
			if !never {
				answer.limit, answer.bound = limit, bound
			}
		}
	}
	if never {
		answer.wait = -1
	}
	if answer.wait != 0 || cost == 0 {
		// The project's window is kept up to date; a user's only when it must be.
		if !restamped {
			delete(views, windowKey(price.UserMinute, user))
		}
		keep()
		return answer
	}
	keep()
	answer.granted = cost
	for _, limit := range []string{price.ProjectMinute, price.UserMinute} {
		w := m.window(limit, user)
		w.buckets[w.newest] += answer.granted
		for lane, s := range m.lanes { // whoever spends, every paced lane pays
			if s.Pace == 0 {
				continue
			}
			ceiling := int64(float64(m.limits[limit]) * s.Ceiling)
			// The script counts in whole us from so many buckets before the newest.
			paid, ok := w.paid[lane]
			if !ok || paid < now-modelCarry*m.width { // idle for longer: it begins anew
				paid = max(now, (w.newest-modelCarry)*m.width)
			}
			w.paid[lane] = min(paid+int64(float64(answer.granted)*m.interval(ceiling, s)), now+(m.n+1)*m.width)
		}
	}
	return answer
}

func (m *model) interval(ceiling int64, s quota.LaneSettings) float64 {
	return math.Floor(256*60e6/(s.Pace*float64(ceiling))) / 256
}

// TestLedgerAgainstModel compares random decisions with the model, and what was
// admitted with the limit in every window of 60 s: once as the ledger decides, and once
// without the short way of the common call.
func TestLedgerAgainstModel(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*quota.Ledger){"": func(*quota.Ledger) {}, "at length": (*quota.Ledger).AtLength} {
		t.Run(name, func(t *testing.T) { allAgainstModel(t, change) })
	}
}

func allAgainstModel(t *testing.T, change func(*quota.Ledger)) {
	onEveryRedis(t, func(t *testing.T, rdb *redis.Client) {
		rounds := 12
		if testing.Short() || strings.HasSuffix(t.Name(), "embedded") { // which is a hundred times slower
			rounds = 4
		}
		var waits, admitted, denied int
		for seed := range uint64(rounds) {
			w, a, d := againstModel(t, rdb, seed, 1500, change)
			waits, admitted, denied = waits+w, admitted+a, denied+d
		}
		t.Logf("%d admitted, %d denied, %d waits checked to the microsecond", admitted, denied, waits)
		if admitted == 0 || denied == 0 || waits == 0 {
			t.Error("the random decisions left something untried")
		}
	})
}

// FuzzLedgerAgainstModel does the same for seeds of the fuzzer's choice.
func FuzzLedgerAgainstModel(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	rdb := newClient(f, realRedis.Addr)
	f.Fuzz(func(t *testing.T, seed uint64) { againstModel(t, rdb, seed, 200, func(*quota.Ledger) {}) })
}

func againstModel(t *testing.T, rdb *redis.Client, seed uint64, steps int, change func(*quota.Ledger)) (waits, admitted, denied int) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	limits := map[string]int64{
		price.UserMinute:    60 + rnd.Int64N(3000),
		price.ProjectMinute: 100 + rnd.Int64N(6000),
	}
	lanes := map[quota.Lane]quota.LaneSettings{
		quota.Interactive: {Ceiling: 1},
		quota.Sync:        {Ceiling: 0.5 + rnd.Float64()/2, Pace: 0.5 + rnd.Float64()*3},
		quota.Backfill:    {Ceiling: 0.3 + rnd.Float64()/2, Pace: 0.5 + rnd.Float64()},
	}
	list := gmailWith(t, limits[price.UserMinute], limits[price.ProjectMinute])
	ledger := newLedger(t, rdb, quota.Project{Lists: []*price.List{list}, Lanes: lanes}, 1)
	change(ledger)
	// Past 2^32 buckets of a second would be the year 2106: begin shortly before.
	now := int64(1_790_000_000_000_000) + rnd.Int64N(1e9)
	if seed%4 == 3 {
		now = (1<<32-30)*1e6 + rnd.Int64N(1e6)
	}
	ledger.SetNow(func() time.Time { return time.UnixMicro(now) })
	m := &model{limits: limits, lanes: lanes, width: 1e6, n: 61, state: map[string]*modelWindow{}}
	stepping := seed%3 == 1

	type spent struct{ at, units int64 }
	log := map[string][]spent{}
	record := func(key string, limit, units int64) {
		entries := append(log[key], spent{now, units})
		var sum int64
		for i := len(entries) - 1; i >= 0 && entries[i].at > now-60e6; i-- {
			sum += entries[i].units
		}
		if sum > limit {
			t.Fatalf("seed %d: %s: %d units admitted in 60 s, limit %d", seed, key, sum, limit)
		}
		log[key] = entries
	}

	users := []string{"a", "b", "c"}
	for step := range steps {
		switch r := rnd.IntN(100); {
		case r < 60:
			now += rnd.Int64N(300_000)
		case r < 80:
			now += rnd.Int64N(3_000_000)
		case r < 83:
			now += rnd.Int64N(100_000_000)
		case r < 84 && stepping:
			now -= rnd.Int64N(20_000_000)
		case r < 85 && stepping:
			now -= 62_000_000 + rnd.Int64N(100_000_000)
		}
		user, lane := users[rnd.IntN(len(users))], quota.Lanes[rnd.IntN(3)]
		if rnd.IntN(100) == 0 && !stepping {
			ms := rnd.Int64N(40_000)
			limit, till := price.UserMinute, time.Time{}
			var err error
			if rnd.IntN(3) == 0 {
				limit = price.ProjectMinute
				till, err = ledger.HoldProject(t.Context(), "p", "gmail", time.Duration(ms)*time.Millisecond)
			} else {
				till, err = ledger.HoldUser(t.Context(), "p", user, "gmail", time.Duration(ms)*time.Millisecond)
			}
			w := m.window(limit, user)
			w.hold = max(w.hold, 1000*int64(math.Ceil(float64(now)/1000+float64(ms))))
			if err != nil || till.UnixMicro() != w.hold {
				t.Fatalf("seed %d step %d: held until %s (%v), want %s", seed, step, till, err, time.UnixMicro(w.hold))
			}
		}
		caller := quota.Caller{Project: "p", User: user, Lane: lane}
		cost := []int64{0, 1, 5, 5, 20, 20, 60, 100, rnd.Int64N(400)}[rnd.IntN(9)]
		check := func() (wait int64) {
			want1 := m.take(user, lane, cost, now)
			got, err := decision(t, ledger, caller, cost, rnd.IntN(2) == 0)
			var deniedErr *quota.DeniedError
			switch {
			case want1.wait < 0:
				if !errors.Is(err, quota.ErrNeverFits) {
					t.Fatalf("seed %d step %d: cost %d can never fit, got %v, %v", seed, step, cost, got, err)
				}
			case want1.wait > 0:
				denied++
				if !errors.As(err, &deniedErr) {
					t.Fatalf("seed %d step %d: got %+v, %v, want a refusal: %+v", seed, step, got, err, want1)
				}
				if deniedErr.RetryAfter.Microseconds() != want1.wait || deniedErr.Limit != want1.limit || deniedErr.Bound != want1.bound || deniedErr.Used != want1.used[want1.limit] {
					t.Fatalf("seed %d step %d: got %+v (%d us), want %+v", seed, step, deniedErr, deniedErr.RetryAfter.Microseconds(), want1)
				}
			default:
				admitted++
				if err != nil {
					t.Fatalf("seed %d step %d: lane %s cost %d: got %v, want %+v", seed, step, lane, cost, err, want1)
				}
				if got.Charge.Units != want1.granted {
					t.Fatalf("seed %d step %d: granted %d, want %+v", seed, step, got.Charge.Units, want1)
				}
				for _, u := range got.Usage {
					if u.Used != want1.used[u.Limit]+got.Charge.Units {
						t.Fatalf("seed %d step %d: used %+v, want %+v", seed, step, u, want1)
					}
				}
				if !stepping && got.Charge.Units > 0 {
					record("user "+user, limits[price.UserMinute], got.Charge.Units)
					record("project", limits[price.ProjectMinute], got.Charge.Units)
				}
			}
			return want1.wait
		}
		if wait := check(); wait > 0 && rnd.IntN(2) == 0 {
			// Refused a microsecond before the moment, admitted at it.
			waits++
			now += wait - 1
			if left := check(); left != 1 {
				t.Fatalf("seed %d step %d: wait of %d us, a microsecond before its end %d are left", seed, step, wait, left)
			}
			now++
			if left := check(); left != 0 {
				t.Fatalf("seed %d step %d: refused for %d us more at the end of the wait", seed, step, left)
			}
		}
	}
	return waits, admitted, denied
}

// decision asks a ledger for units, and perhaps for a slot too, which it gives back.
func decision(t *testing.T, ledger *quota.Ledger, c quota.Caller, cost int64, slot bool) (quota.Decision, error) {
	if !slot || cost == 0 {
		return ledger.Take(t.Context(), c, "gmail", cost)
	}
	p, err := ledger.Try(t.Context(), quota.Call{Caller: c, API: "gmail", Cost: cost})
	if err != nil {
		return quota.Decision{}, err
	}
	return p.Decision(), p.Release(t.Context(), quota.Answer{Bytes: 1})
}
