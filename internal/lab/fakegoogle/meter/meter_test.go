package meter

import (
	"math/rand/v2"
	"testing"
	"time"
)

// timedMeter is a meter whose clock the test sets.
type timedMeter struct {
	*Meter
	now time.Duration
}

func newTimedMeter(t *testing.T, set Settings) *timedMeter {
	t.Helper()
	prices, err := GmailPriceList("gmail-2026-05")
	if err != nil {
		t.Fatal(err)
	}
	set.Prices = prices
	if set.Window == 0 {
		set.Window = time.Minute
	}
	if set.UserLimit == 0 {
		set.UserLimit = 6_000
	}
	set.ProjectLimit = max(set.ProjectLimit, 1_200_000)
	set.InFlightLimit = max(set.InFlightLimit, 50)
	set.BytesPerDay = max(set.BytesPerDay, 2_500_000_000)
	set.Day = 24 * time.Hour
	m, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	m.start = time.Unix(1_800_000_000, 0) // a full minute
	tm := &timedMeter{Meter: m}
	m.clock = func() time.Duration { return tm.now }
	return tm
}

// get lets one messages.get of 20 units arrive at a moment and end at once.
func (m *timedMeter) get(at time.Duration) Refusal {
	m.now = at
	v := m.Arrive(Call{Project: "p", User: "u", Method: "gmail.users.messages.get", Format: "raw"})
	if v.Refused == "" {
		v.Release()
	}
	return v.Refused
}

// salvo counts how many of n calls at a moment are admitted.
func (m *timedMeter) salvo(at time.Duration, n int) int {
	admitted := 0
	for range n {
		if m.get(at) == "" {
			admitted++
		}
	}
	return admitted
}

func TestEachAlgorithmAdmitsExactly(t *testing.T) {
	type salvo struct {
		at       time.Duration
		admitted int // of 400 calls of 20 units
	}
	for _, test := range []struct {
		meter  string
		salvos []salvo
	}{
		{Fixed, []salvo{{59 * time.Second, 300}, {time.Minute - 1, 0}, {time.Minute, 300}, {119 * time.Second, 0}, {2 * time.Minute, 300}}},
		// The second minute begins with the call at 130 s, not at 119 or 120 s.
		{Anchored, []salvo{{59 * time.Second, 300}, {time.Minute, 0}, {119*time.Second - 1, 0}, {130 * time.Second, 300}, {189 * time.Second, 0}, {190 * time.Second, 300}}},
		{Sliding, []salvo{{59 * time.Second, 300}, {time.Minute, 0}, {119*time.Second - 1, 0}, {119 * time.Second, 300}}},
		{Bucket, []salvo{{59 * time.Second, 55}, {60 * time.Second, 5}, {70 * time.Second, 50}, {170 * time.Second, 55}}},
	} {
		m := newTimedMeter(t, Settings{Algorithm: test.meter})
		for _, s := range test.salvos {
			if got := m.salvo(s.at, 400); got != s.admitted {
				t.Errorf("%s admits %d of 400 at %s, want %d", test.meter, got, s.at, s.admitted)
			}
		}
	}
}

func TestScaleDividesWindowsNotLimits(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding, Window: time.Minute / 10})
	if got := m.salvo(0, 400) + m.salvo(6*time.Second-1, 1) + m.salvo(6*time.Second, 400); got != 600 {
		t.Errorf("two windows of 6 s admit %d, want 600", got)
	}
	m = newTimedMeter(t, Settings{Algorithm: Bucket, Window: time.Minute / 10})
	if got := m.salvo(0, 400) + m.salvo(time.Second, 400); got != 55+50 {
		t.Errorf("bucket admits %d, want 55 and 50 a second later", got)
	}
}

func TestSmallBucketStillTakesTheDearestMethod(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Bucket, UserLimit: 300})
	if got := m.salvo(0, 10); got != 5 {
		t.Errorf("a limit of 300 admits %d calls at once, want 5 (100 units)", got)
	}
}

func TestRefusedCallsAreLoggedAndChargedOnlyIfAsked(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding, UserLimit: 100})
	m.salvo(0, 8)
	user := m.users[userKey{"p", "u"}]
	if got := m.report(&user.exact); got.MostInWindow != 160 || got.MostAdmittedInWindow != 100 || got.WindowsOverLimit != 3 ||
		got.Refused != 3 || got.Refusals[RefusedUserUnits] != 3 || got.Calls != 8 || got.Units != 160 || got.UnitsAdmitted != 100 {
		t.Errorf("report = %+v", got)
	}
	m.get(30 * time.Second)
	if got := m.salvo(time.Minute, 5); got != 5 {
		t.Errorf("a minute later %d of 5 are admitted, want all: refused ones cost nothing", got)
	}
	m = newTimedMeter(t, Settings{Algorithm: Sliding, UserLimit: 100, ChargeRefused: true})
	m.salvo(0, 5)
	m.get(30 * time.Second)
	if got := m.salvo(time.Minute, 5); got != 4 {
		t.Errorf("with ChargeRefused %d of 5 are admitted, want 4", got)
	}
}

func TestProjectLimitBindsAcrossUsers(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Fixed})
	m.Set.ProjectLimit = 200
	arrive := func(project, user string) Refusal {
		v := m.Arrive(Call{Project: project, User: user, Method: "gmail.users.messages.get"})
		return v.Refused
	}
	for i := range 10 {
		if r := arrive("p", string(rune('a'+i))); r != "" {
			t.Fatalf("call %d refused: %s", i, r)
		}
	}
	if r := arrive("p", "z"); r != RefusedProjectUnits {
		t.Errorf("11th user: %q, want %s", r, RefusedProjectUnits)
	}
	if r := arrive("other", "z"); r != "" {
		t.Errorf("another project: %q, want admitted", r)
	}
	if used := m.users[userKey{"p", "z"}].enforced.(*fixedWindow).used; used != 0 {
		t.Errorf("the refused user was charged %d, want nothing: all or nothing", used)
	}
}

func TestBytesOfTheDay(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding})
	m.Set.BytesPerDay = 1000
	m.now = time.Hour
	c := Call{Project: "p", User: "u", Method: "gmail.users.messages.get", Format: "raw", ID: "1"}
	m.Arrive(c).Release()
	m.Delivered(c, map[string]int{c.ID: 600})
	m.Arrive(c).Release()
	m.Delivered(c, map[string]int{c.ID: 600})
	v := m.Arrive(c)
	if want := m.start.Add(25 * time.Hour); v.Refused != RefusedBytes || !v.RetryAt.Equal(want) {
		t.Errorf("third call = %+v, want %s until %s", v, RefusedBytes, want)
	}
	m.now = 25 * time.Hour
	if v := m.Arrive(c); v.Refused != "" {
		t.Errorf("the next day = %+v, want admitted", v)
	}
}

// The exact log is compared with the definition: the most in any half-open
// window that ends at an arrival.
func TestExactLogAgainstTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		tl := tally{limit: 500, window: time.Minute}
		var all []spending
		now := time.Duration(0)
		for range 3000 {
			now += time.Duration(r.Int64N(int64(2 * time.Second)))
			if r.IntN(4) == 0 {
				now = now.Truncate(time.Second) + time.Second // equal distances happen
			}
			units := []int64{1, 5, 20, 60}[r.IntN(4)]
			refused := Refusal("")
			if r.IntN(5) == 0 {
				refused = RefusedUserUnits
			}
			all = append(all, spending{now, units, refused != ""})
			tl.note(now, "m", units, refused)
		}
		var most, mostAdmitted, over int64
		for i, end := range all {
			var sum, admitted int64
			for j := i; j >= 0 && all[j].at > end.at-time.Minute; j-- {
				sum += all[j].units
				if !all[j].refused {
					admitted += all[j].units
				}
			}
			most, mostAdmitted = max(most, sum), max(mostAdmitted, admitted)
			if sum > 500 {
				over++
			}
		}
		if tl.most != most || tl.mostAdmitted != mostAdmitted || tl.over != over {
			t.Fatalf("round %d: log says %d, %d, %d; want %d, %d, %d", round, tl.most, tl.mostAdmitted, tl.over, most, mostAdmitted, over)
		}
	}
}

func BenchmarkArrive(b *testing.B) {
	prices, err := GmailPriceList("gmail-2026-05")
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(Settings{Prices: prices, Algorithm: Sliding, UserLimit: 1 << 40, ProjectLimit: 1 << 40,
		InFlightLimit: 50, BytesPerDay: 1 << 40, Window: time.Minute, Day: 24 * time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Arrive(Call{Project: "p", User: "u", Method: "gmail.users.messages.get", Format: "raw", ID: "1900000000000001"}).Release()
	}
}
