package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestUtilizationNeedsAWholeWindow(t *testing.T) {
	number := func(u float64) *float64 { return &u }
	for name, row := range map[string]struct {
		spent, interactive int64
		span               time.Duration
		scale              int
		want               *float64
	}{
		"two windows":                {8100, 600, 2 * time.Minute, 1, number(0.9)},
		"two windows, ten times":     {8100, 600, 12 * time.Second, 10, number(0.9)},
		"just a window":              {4800, 0, 6 * time.Second, 10, number(1)},
		"rounded":                    {1000, 1800, time.Minute, 1, number(0.333)},
		"less than a window":         {4800, 0, 5999 * time.Millisecond, 10, nil},
		"one message":                {20, 600, 100 * time.Millisecond, 10, nil},
		"never started":              {0, 0, -time.Hour, 10, nil},
		"interactive calls took all": {100, 4800, time.Minute, 1, nil},
	} {
		got := utilization(row.spent, row.interactive, 4800, row.span, row.scale)
		if (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
			t.Errorf("%s: utilization = %v, want %v", name, text(got), text(row.want))
		}
	}
}

func text(u *float64) string {
	b, _ := json.Marshal(u)
	return string(b)
}

// kept is the summary of a run that kept every promise.
func kept() Summary {
	u := 0.95
	return Summary{
		Messages: 900, Stored: 900, Identical: 900, DeniedByQuota: 7, InteractiveCalls: 200,
		InteractiveWaitP99MS: 90, BackfillUtilization: &u, Scale: 10, enough: true,
	}
}

func TestBrokenNamesThePromise(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Summary)
		want   string
	}{
		"nothing":               {func(*Summary) {}, ""},
		"a message missing":     {func(s *Summary) { s.Stored-- }, "of 900 messages 899 were stored and 900 are identical"},
		"a message changed":     {func(s *Summary) { s.Identical-- }, "of 900 messages 900 were stored and 899 are identical"},
		"a refusal":             {func(s *Summary) { s.RefusedByGoogle = 2 }, "Google refused 2 calls, 0 limits were exceeded"},
		"a limit exceeded":      {func(s *Summary) { s.OverLimitWindows = 1 }, "Google refused 0 calls, 1 limits were exceeded"},
		"calls denied":          {func(s *Summary) { s.InteractiveDenied = 3 }, "3 interactive calls were denied"},
		"too few calls":         {func(s *Summary) { s.InteractiveCalls = 99 }, "99 interactive calls were made, fewer than the 100"},
		"quota without effect":  {func(s *Summary) { s.DeniedByQuota = 0 }, "the quota never made the backfill wait"},
		"too little mail":       {func(s *Summary) { s.DeniedByQuota, s.enough = 0, false }, ""},
		"a slow ledger":         {func(s *Summary) { s.InteractiveWaitP99MS = 900 }, ""},
		"a slow backfill":       {func(s *Summary) { *s.BackfillUtilization = 0.5 }, ""},
		"no utilization to say": {func(s *Summary) { s.BackfillUtilization = nil }, ""},
	} {
		s := kept()
		row.change(&s)
		if got := s.Broken(); row.want == "" && got != "" || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: Broken = %q, want %q", name, got, row.want)
		}
	}
}

func TestSlowNamesTheAimsMissed(t *testing.T) {
	s := kept()
	s.InteractiveWaitP99MS, *s.BackfillUtilization = AimWaitP99MS, AimUtilization
	if got := s.Slow(); len(got) != 0 {
		t.Errorf("Slow at the aims = %q, want nothing", got)
	}
	s.InteractiveWaitP99MS, *s.BackfillUtilization = 251, 0.899
	if got := s.Slow(); len(got) != 2 || !strings.Contains(got[0], "251 ms") || !strings.Contains(got[1], "89.9 % of its share, the aim is 90") {
		t.Errorf("Slow = %q, want both aims", got)
	}
	s.BackfillUtilization = nil
	if got := s.Slow(); len(got) != 1 {
		t.Errorf("Slow without utilization = %q, want one aim", got)
	}
	if b, err := json.Marshal(s); err != nil || !strings.Contains(string(b), `"backfill_utilization":null`) {
		t.Errorf("JSON = %s, %v, want a null", b, err)
	}
}
