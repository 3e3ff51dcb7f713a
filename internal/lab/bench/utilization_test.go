package bench

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"headroom/quota/price"
)

// One small backlog, with and without the guard: whole processes, and the fake's
// own account of what they did.
func TestBacklog(t *testing.T) {
	for guard, meter := range map[bool]string{true: "anchored", false: "sliding"} {
		b := backlog{
			prices: "gmail-legacy", cost: 5, meter: meter, scale: 20, jitter: 80 * time.Millisecond,
			limit: 1500, ceiling: 0.8, accounts: 2, messages: 100, guard: guard,
		}
		var progress int64
		report, err := b.measure(t.Context(), Options{Log: zap.NewNop()}, realRedis.URL(), semaphore.NewWeighted(1),
			func(stored int64) { progress = stored })
		if err != nil {
			t.Fatal(err)
		}
		if report.Stored != 200 || report.Messages != 200 || progress != 200 {
			t.Errorf("guard %v: %d of %d messages stored, progress %d", guard, report.Stored, report.Messages, progress)
		}
		// Two mailboxes of 100 messages; and a list, at 5 units, and little else.
		if report.Units < 2*505 || report.Units > 2*520 {
			t.Errorf("guard %v: the fake admitted %d units", guard, report.Units)
		}
		if report.Refused != 0 || report.Most > 1250 || report.Utilization <= 0 || report.Utilization > 1.2 {
			t.Errorf("guard %v: refused %d, %d units in a window, utilization %v", guard, report.Refused, report.Most, report.Utilization)
		}
	}
}

func TestUtilizationJudgement(t *testing.T) {
	good := func() *UtilizationFigures {
		done := BacklogReport{Prices: "p", Meter: "fixed", Messages: 10, Stored: 10, Utilization: 0.96, Guard: true}
		without := done
		without.Guard, without.Refused, without.Utilization = false, 8, 0.5
		return &UtilizationFigures{Backlogs: []BacklogReport{done, done}, Guard: []BacklogReport{done, without}}
	}
	for _, test := range []struct {
		name   string
		change func(*UtilizationFigures)
		missed string
		broken string
	}{
		{name: "all is well", change: func(*UtilizationFigures) {}},
		{name: "a slow backlog", change: func(f *UtilizationFigures) { f.Backlogs[1].Utilization = 0.92 },
			missed: "least_utilization is 0.92, aim at least 0.93"},
		{name: "nothing refused without the guard", change: func(f *UtilizationFigures) { f.Guard[1].Refused = 0 },
			missed: "refused_without_guard is 0: the run did not show what the guard is for"},
		{name: "refused", change: func(f *UtilizationFigures) { f.Backlogs[0].Refused = 1 }, broken: "Google refused 1 calls"},
		{name: "refused with the guard", change: func(f *UtilizationFigures) { f.Guard[0].Refused = 2 },
			broken: "Google refused 2 calls in spite of the guard"},
		{name: "messages missing", change: func(f *UtilizationFigures) { f.Guard[1].Stored = 9 },
			broken: "9 of 10 messages were stored with p and the meter fixed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good()
			test.change(f)
			f.judge()
			checkJudgement(t, f, f.Targets, test.missed, test.broken)
		})
	}
	if broken := (&UtilizationFigures{}).Broken(); broken != "nothing was measured" {
		t.Errorf("an empty run is broken by %q", broken)
	}
}

// The backlogs cover what they are meant to, and their costs are those of the
// price lists.
func TestBacklogs(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range utilizationBacklogs() {
		seen[b.prices+" "+b.meter] = true
		if !b.guard || b.ceiling != 0.8 || b.jitter != 80*time.Millisecond {
			t.Errorf("backlog %+v", b)
		}
		list, err := price.Load(b.prices)
		if err != nil {
			t.Fatal(err)
		}
		if cost, _ := list.Cost("gmail.users.messages.get", "raw"); cost != b.cost {
			t.Errorf("a message costs %d by %s, not %d", cost, b.prices, b.cost)
		}
		// Ends matter little: five windows at the ceiling and more.
		if windows := float64(int64(b.messages)*b.cost) / (float64(b.limit) * b.ceiling); windows < 5 {
			t.Errorf("%s fills %.1f windows", b.prices, windows)
		}
	}
	if len(seen) != 12 {
		t.Errorf("combinations of price list and meter: %v, want 12", seen)
	}
	guards := map[string]int{}
	for _, b := range guardBacklogs() {
		if b.ceiling != 1 || b.jitter != 40*time.Millisecond {
			t.Errorf("backlog %+v", b)
		}
		guards[b.meter]++
	}
	if guards["fixed"] != 2 || guards["sliding"] != 2 {
		t.Errorf("backlogs at the whole limit by meter: %v", guards)
	}
}
