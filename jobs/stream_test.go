package jobs

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// pages moves a stream behind whole pages, the last of which brings a token.
func pages(t *testing.T, s *Stream, token string, next ...string) {
	t.Helper()
	for _, page := range next {
		if complete, trouble := s.Advance(1, page, "", noon); complete || trouble != "" || s.PageToken != page {
			t.Fatalf("after page %q: %+v, complete %t, trouble %q", page, s, complete, trouble)
		}
	}
	if complete, trouble := s.Advance(1, "", token, noon); !complete || trouble != "" {
		t.Fatalf("after the last page: %+v, trouble %q", s, trouble)
	}
}

func TestAStreamKeepsItsTokenUntilAPassIsComplete(t *testing.T) {
	s := NewStream()
	pages(t, &s, "t1", "p2", "p3")
	if s.Whole() || s.Token() != "t1" || s.PageToken != "" || s.Resyncs != 0 || !s.SyncedAt.Equal(noon) {
		t.Errorf("after the first pass: %+v", s)
	}
	s.Advance(1, "p2", "", noon)
	if s.Token() != "t1" {
		t.Errorf("between two pages of a pass the token is %q, want t1", s.Token())
	}
	s.ReadAll()
	if s.Token() != "" || s.SyncToken != "t1" || s.PageToken != "" || s.Gen != 2 {
		t.Errorf("when everything is asked for: %+v, want no token for calls, t1 kept, and a new generation", s)
	}
	pages(t, &s, "t2", "p2")
	if s.Resyncs != 1 || !s.ResyncedAt.Equal(noon) || s.Token() != "t2" {
		t.Errorf("after it was read: %+v", s)
	}
}

// An endless 410 comes at the first call of each pass over changes, or within one
// that reads everything.
func TestAnEndlessExpiryWaitsLongerEachTime(t *testing.T) {
	for _, row := range []struct {
		name  string
		whole bool // the pass between two expiries is complete
	}{{"after a complete pass", true}, {"within the pass", false}} {
		t.Run(row.name, func(t *testing.T) {
			s := NewStream()
			pages(t, &s, "t")
			var waits []time.Duration
			for range 12 {
				gen := s.Gen
				s.Expire(noon)
				if s.Gen != gen+1 || s.Pass != PassExpired || s.SyncToken != "" {
					t.Fatalf("expired: %+v", s)
				}
				wait := time.Duration(0)
				if !s.NextTry.IsZero() {
					wait = s.NextTry.Sub(noon)
				}
				waits = append(waits, wait)
				if row.whole {
					pages(t, &s, "t")
				}
			}
			if waits[0] != 0 || waits[1] != time.Minute || waits[2] != 2*time.Minute || waits[11] != 6*time.Hour {
				t.Errorf("waits = %v, want none, a minute, two, and at last six hours", waits)
			}
			if !row.whole {
				pages(t, &s, "t")
			}
			pages(t, &s, "u") // a pass over changes
			s.Expire(noon)
			if !s.NextTry.IsZero() {
				t.Errorf("after changes were read, an expiry waits until %s", s.NextTry)
			}
		})
	}
}

func TestPageTokensThatLeadNowhere(t *testing.T) {
	for _, row := range []struct {
		name        string
		next, token string
		n           int
		empty       int64
	}{
		{"the same page again", "p2", "", 1, 0},
		{"empty pages for ever", "p3", "", 0, maxEmptyPages},
		{"a last page without a sync token", "", "", 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := NewStream()
			for i := range 4 {
				s.Advance(1, "p2", "", noon)
				s.EmptyPages = row.empty
				gen := s.Gen
				complete, trouble := s.Advance(row.n, row.next, row.token, noon)
				if complete || trouble == "" || s.PageToken != "" || s.Gen != gen+1 {
					t.Fatalf("%+v, complete %t, trouble %q", s, complete, trouble)
				}
				if waits := !s.NextTry.IsZero(); waits != (i > 0) {
					t.Errorf("restart %d waits: %t", i+1, waits)
				}
			}
			if wait := s.NextTry.Sub(noon); wait != 4*firstFailure {
				t.Errorf("the fourth restart waits %s, want %s", wait, 4*firstFailure)
			}
		})
	}
	s := NewStream()
	if complete, trouble := s.Advance(0, "p2", "", noon); complete || trouble != "" || s.PageToken != "p2" {
		t.Errorf("an empty page that names a next one: %+v, %q", s, trouble)
	}
}
