package meter

import (
	"testing"
	"time"
)

func TestLimitsChangeForEveryAlgorithm(t *testing.T) {
	type salvo struct {
		at       time.Duration
		limit    int64 // set before it, if not 0
		admitted int   // of 400 calls of 20 units
	}
	for _, test := range []struct {
		meter  string
		salvos []salvo
	}{
		// The minute's 6,000 units are spent: half the limit admits nothing, and a
		// larger one only what it adds.
		{Fixed, []salvo{{0, 0, 300}, {time.Second, 3_000, 0}, {2 * time.Second, 8_000, 100}, {time.Minute, 3_000, 150}}},
		{Anchored, []salvo{{0, 0, 300}, {time.Second, 3_000, 0}, {2 * time.Second, 8_000, 100}, {time.Minute, 3_000, 150}}},
		{Sliding, []salvo{{0, 0, 300}, {time.Second, 3_000, 0}, {2 * time.Second, 8_000, 100}, {time.Minute, 3_000, 50}}},
		// 550 units deep at a limit of 3,000, and 50 units a second.
		{Bucket, []salvo{{0, 0, 55}, {10 * time.Second, 3_000, 27}, {20 * time.Second, 0, 25}, {40 * time.Second, 12_000, 27}, {50 * time.Second, 0, 100}}},
	} {
		m := newTimedMeter(t, Settings{Algorithm: test.meter})
		for _, s := range test.salvos {
			m.now = s.at
			if s.limit != 0 {
				m.SetLimits(Limits{User: s.limit})
			}
			if got := m.salvo(s.at, 400); got != s.admitted {
				t.Errorf("%s admits %d of 400 at %s, want %d", test.meter, got, s.at, s.admitted)
			}
		}
	}
}

func TestALimitOfTheProjectHoldsForUsersWhoComeLater(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding})
	m.SetLimits(Limits{Project: 100, User: 60})
	if got := m.salvo(0, 10); got != 3 {
		t.Errorf("%d calls admitted, want 3 under the user's new limit", got)
	}
	admitted := 0
	for range 5 {
		if m.Arrive(Call{Project: "p", User: "new", Method: "gmail.users.messages.get"}).Refused == "" {
			admitted++
		}
	}
	if admitted != 2 {
		t.Errorf("%d calls of a new user admitted, want the 2 that the project's new limit leaves", admitted)
	}
}

// TestTheLogHoldsArrivalsToTheLimitOfTheirMoment halves a limit that was kept and
// restores it: only the arrivals between are over it.
func TestTheLogHoldsArrivalsToTheLimitOfTheirMoment(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding, UserLimit: 100})
	m.salvo(0, 5)
	m.SetLimits(Limits{User: 50})
	m.get(10 * time.Second) // the sixth of this minute
	m.get(60 * time.Second) // with one other of this minute
	m.now = 61 * time.Second
	m.SetLimits(Limits{User: 100})
	m.salvo(61*time.Second, 3)
	user := m.users[userKey{"p", "u"}]
	if got := m.report(&user.exact); got.WindowsOverLimit != 1 || got.Limit != 100 || got.MostInWindow != 120 {
		t.Errorf("report = %+v, want one window over the limit of its moment", got)
	}
	var over []int
	n := 0
	for a := range m.arrivals() {
		if a.OverLimit {
			over = append(over, n)
		}
		n++
	}
	if n != 10 || len(over) != 1 || over[0] != 5 {
		t.Errorf("of %d arrivals these are over the limit: %v, want the sixth of ten", n, over)
	}
}

func TestACallTooEarlyPushesTheMomentBack(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding, PushBack: time.Minute})
	m.AskToWait("u", 10*time.Second)
	for i, want := range []time.Duration{70 * time.Second, 130 * time.Second} {
		m.now = 9 * time.Second
		v := m.Arrive(Call{Project: "p", User: "u", Method: "gmail.users.messages.get"})
		if v.Refused != RefusedEarly || !v.RetryAt.Equal(m.start.Add(want)) {
			t.Errorf("early call %d = %+v, want %s until %s after the start", i+1, v, RefusedEarly, want)
		}
	}
	if v := m.Arrive(Call{Project: "p", User: "other", Method: "gmail.users.messages.get"}); v.Refused != "" {
		t.Errorf("another user: %q, want admitted", v.Refused)
	}
	if got := m.get(130*time.Second - 1); got != RefusedEarly {
		t.Errorf("just before the moment: %q, want %s", got, RefusedEarly)
	}
	if got := m.get(190 * time.Second); got != "" {
		t.Errorf("at the moment as it was moved: %q, want admitted", got)
	}

	m = newTimedMeter(t, Settings{Algorithm: Sliding})
	m.AskToWait("u", 10*time.Second)
	if got := m.get(9 * time.Second); got != "" {
		t.Errorf("without PushBack: %q, want admitted", got)
	}
}

func TestTheLogKeepsTheNewest(t *testing.T) {
	m := newTimedMeter(t, Settings{Algorithm: Sliding, UserLimit: 1 << 40})
	const extra = logPiece + 7
	for i := range logPieces*logPiece + extra {
		m.log.add(Call{}, logEntry{at: time.Duration(i)})
	}
	m.log.answered(0, 200) // is dropped, so nobody's
	first, n := time.Time{}, 0
	for a := range m.arrivals() {
		if n == 0 {
			first = a.At
		}
		n++
	}
	want := logPieces*logPiece - logPiece + 7
	if n != want || !first.Equal(m.start.Add(2*logPiece)) {
		t.Errorf("%d arrivals from %s after the start, want %d from %d ns", n, first.Sub(m.start), want, 2*logPiece)
	}
}
