package gmail

import (
	"testing"
	"time"
)

func TestQueriesOfLengthsOfTime(t *testing.T) {
	s := searcher{zone: pst, now: time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC)}
	at := func(day time.Time) *message { return &message{internalDate: day.UnixMilli()} }
	for _, test := range []struct {
		q    string
		from time.Time // the oldest moment that is new
	}{
		{"newer_than:2d", time.Date(2026, time.March, 29, 12, 0, 0, 0, time.UTC)},
		{"newer_than:1y", time.Date(2025, time.March, 31, 12, 0, 0, 0, time.UTC)},
		{"-older_than:3m", time.Date(2025, time.December, 31, 12, 0, 0, 0, time.UTC)},
	} {
		q, bad := parseQuery(test.q, s)
		if bad != nil {
			t.Fatal(bad)
		}
		if !q.matches(at(test.from)) || q.matches(at(test.from.Add(-time.Millisecond))) {
			t.Errorf("%s does not begin at %s", test.q, test.from)
		}
	}
}

func FuzzQuery(f *testing.F) {
	f.Add(`-{from:a (b OR "c d")} subject:(x) after:2026/1/2 larger:1M`)
	f.Add(`- OR -( "`)
	f.Add(`{-}`)
	msg := newMessage(content{head: []byte("Subject: a b\r\nFrom: x@example.com\r\n\r\nc d")}, []string{"INBOX"})
	f.Fuzz(func(t *testing.T, text string) {
		q, bad := parseQuery(text, searcher{zone: pst, now: time.Unix(1e9, 0)})
		if (bad == nil) != (q.matches != nil) {
			t.Fatalf("%q: %v and a matcher: %t", text, bad, q.matches != nil)
		}
		if bad == nil {
			q.matches(msg)
		}
	})
}
