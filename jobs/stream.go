package jobs

import (
	"fmt"
	"time"
)

// Pass says why a stream is read as a whole, and not only what has changed.
type Pass string

// The kinds of pass over a stream.
const (
	PassChanges Pass = ""        // what changed since the sync token
	PassFirst   Pass = "first"   // everything: nothing was read before
	PassExpired Pass = "expired" // everything: Google refused the sync token
	PassAsked   Pass = "asked"   // everything: somebody asked for it
)

// A Stream is how far something that Google lists with sync tokens is in step: an
// account's list of calendars, or one calendar's events. A pass reads it page by
// page; the token that the last page brings begins the next pass. Until a pass is
// complete, the token that it began from stays.
type Stream struct {
	SyncToken  string `json:"-"`                  // all changes up to here are in the store; "": none was ever given
	PageToken  string `json:"-"`                  // of the next page of the pass; "": the first
	Pass       Pass   `json:"pass"`               // the one that is under way or comes next
	Gen        int64  `json:"generation"`         // counts the beginnings of passes that read everything
	Pages      int64  `json:"pages"`              // read by the pass so far
	Restarts   int64  `json:"restarts,omitempty"` // of the pass, because a page token led nowhere
	EmptyPages int64  `json:"-"`                  // pages of the pass without anything on them, in a row

	SyncedAt   time.Time `json:"synced_at,omitzero"`   // when a pass was last complete
	ResyncedAt time.Time `json:"resynced_at,omitzero"` // when one that read everything again was
	Resyncs    int64     `json:"resyncs"`              // how many of these there were

	Expiries int64     `json:"expiries,omitempty"` // refused sync tokens in a row, with no pass over changes complete between
	Failures int64     `json:"failures,omitempty"` // other troubles in a row, with no page between
	NextTry  time.Time `json:"next_try,omitzero"`  // it is left alone until then
}

// What a stream may be put through before it is left alone for a while.
const (
	// maxEmptyPages is how many pages in a row may be empty and name a next one.
	maxEmptyPages = 1000

	firstExpiry  = time.Minute // from a second refused token in a row on
	longestPause = 6 * time.Hour
	firstFailure = 2 * time.Second
)

// NewStream is a stream of which nothing was read.
func NewStream() Stream { return Stream{Pass: PassFirst, Gen: 1} }

// Whole reports whether the pass under way, or the next, reads everything.
func (s *Stream) Whole() bool { return s.Pass != PassChanges }

// Token is the sync token that the calls of the pass carry.
func (s *Stream) Token() string {
	if s.Whole() {
		return ""
	}
	return s.SyncToken
}

// Due reports whether the stream may be read now.
func (s *Stream) Due(now time.Time) bool { return !now.Before(s.NextTry) }

// Advance moves the stream behind a page with n entries on it. Complete says that
// it was the last of the pass: then the stream is at the page's sync token. A page
// that leads nowhere is trouble, and the pass starts over.
func (s *Stream) Advance(n int, next, token string, now time.Time) (complete bool, trouble string) {
	s.Failures, s.NextTry = 0, time.Time{}
	s.Pages++
	s.EmptyPages++
	if n > 0 {
		s.EmptyPages = 0
	}
	switch {
	case next == "" && token == "":
		trouble = fmt.Sprintf("the last of %d pages brought no sync token", s.Pages)
	case next != "" && (next == s.PageToken || s.EmptyPages > maxEmptyPages):
		trouble = fmt.Sprintf("its page tokens lead to no end, after %d pages", s.Pages)
	case next != "":
		s.PageToken = next
		return false, ""
	}
	if trouble != "" {
		s.Restart(now)
		return false, trouble
	}
	switch s.Pass {
	case PassChanges:
		s.Expiries = 0
	case PassExpired, PassAsked:
		s.ResyncedAt, s.Resyncs = now, s.Resyncs+1
	}
	s.Pass, s.SyncToken, s.SyncedAt = PassChanges, token, now
	s.begin()
	return true, ""
}

// Expire says that Google refused the sync token, or broke off a pass that read
// everything: all is read again. The first time that is done at once; when it
// happens again before a pass over changes was complete, the stream is left alone
// for a time that doubles.
func (s *Stream) Expire(now time.Time) {
	s.Expiries++
	if s.Expiries > 1 {
		s.NextTry = now.Add(Doubled(firstExpiry, s.Expiries-2, longestPause))
	}
	if s.Pass != PassFirst {
		s.Pass = PassExpired
	}
	s.SyncToken = ""
	s.begin()
}

// ReadAll has the next pass read everything, and breaks off the one under way.
func (s *Stream) ReadAll() {
	if s.Whole() { // it does, or will
		return
	}
	s.Pass = PassAsked
	s.begin()
}

// Restart says that the pass' page token leads nowhere. The pass starts over, at
// once the first time, and after a time that doubles from then on.
func (s *Stream) Restart(now time.Time) {
	restarts := s.Restarts + 1
	s.begin()
	s.Restarts = restarts
	if restarts > 1 {
		s.NextTry = now.Add(Doubled(firstFailure, restarts-2, longestPause))
	}
}

// Fail says that the stream cannot be read. It is left alone for a time that
// doubles with each failure in a row.
func (s *Stream) Fail(now time.Time) {
	s.Failures++
	s.NextTry = now.Add(Doubled(firstFailure, s.Failures-1, longestPause))
}

// TryNow ends the time for which the stream is left alone.
func (s *Stream) TryNow() { s.NextTry = time.Time{} }

// begin moves to the beginning of a pass. What a pass over everything has seen is
// told by its generation, so that each has one of its own.
func (s *Stream) begin() {
	s.PageToken, s.Pages, s.Restarts, s.EmptyPages = "", 0, 0, 0
	if s.Whole() {
		s.Gen++
	}
}
