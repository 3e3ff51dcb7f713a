package jobs

import (
	"strings"
	"time"
)

// WatchKind is what Google tells of.
type WatchKind string

// The kinds of watch.
const (
	WatchMail         WatchKind = "mail"          // changes of a mailbox
	WatchCalendarList WatchKind = "calendar-list" // changes of an account's list of calendars
	WatchCalendar     WatchKind = "calendar"      // changes of one calendar's events
)

// WatchKinds lists all kinds.
var WatchKinds = []WatchKind{WatchMail, WatchCalendarList, WatchCalendar}

// WatchState says whether Google tells of something now.
type WatchState string

// The states of a watch.
const (
	WatchNone   WatchState = "none"   // none was made yet
	WatchActive WatchState = "active" // until Watch.ExpiresAt
	WatchLapsed WatchState = "lapsed" // its time ended before it was renewed
)

// WatchStates lists all states.
var WatchStates = []WatchState{WatchNone, WatchActive, WatchLapsed}

// WatchKey names what is watched.
type WatchKey struct {
	Account  string    `json:"account"`
	Kind     WatchKind `json:"kind"`
	Calendar string    `json:"calendar,omitempty"` // of WatchCalendar
}

// A Watch is Google's promise to tell of changes, which ends by itself. Changes
// that are not told of are found when the next sync is due.
type Watch struct {
	WatchKey
	State      WatchState `json:"state"`
	Channel    string     `json:"channel,omitempty"` // id of the channel that is in use; Gmail has none
	ExpiresAt  time.Time  `json:"expires_at,omitzero"`
	RenewedAt  time.Time  `json:"renewed_at,omitzero"`
	RenewAt    time.Time  `json:"renew_at,omitzero"` // when it is to be renewed
	LastPushAt time.Time  `json:"last_push_at,omitzero"`
	Failures   int        `json:"failures"` // attempts in a row that failed
	NextTry    time.Time  `json:"next_try,omitzero"`
	LastError  string     `json:"last_error,omitempty"`
}

// Bounds of the wait after a watch could not be renewed, which doubles with each
// failure in a row. The longest leaves a watch of a week many more attempts.
const (
	watchFirstWait   = time.Minute
	watchLongestWait = 6 * time.Hour
)

// NewWatch is a watch that Google has just promised for life, to be renewed in renew.
func NewWatch(k WatchKey, channel string, now time.Time, life, renew time.Duration) Watch {
	return Watch{WatchKey: k, State: WatchActive, Channel: channel, RenewedAt: now, ExpiresAt: now.Add(life), RenewAt: now.Add(renew)}
}

// Due reports whether the watch is to be made or renewed now.
func (w Watch) Due(now time.Time) bool { return !now.Before(w.RenewAt) && !now.Before(w.NextTry) }

// Fail says that the watch could not be renewed. If wait is set, quota was refused,
// which is no failure, and it is tried again after that wait.
func (w *Watch) Fail(what string, wait time.Duration, now time.Time) {
	if wait == 0 {
		wait = Doubled(watchFirstWait, w.Failures, watchLongestWait)
		w.Failures++
	}
	w.LastError, w.NextTry = what, now.Add(wait)
}

// ChannelState says what a channel is for.
type ChannelState string

// The states of a channel.
const (
	ChannelPending  ChannelState = "pending"  // Google was asked for it, and its answer is not known
	ChannelActive   ChannelState = "active"   // the one that its watch goes by
	ChannelReplaced ChannelState = "replaced" // another took its place: it is to be stopped
	ChannelStray    ChannelState = "stray"    // it told of changes, and nothing was known of it: it is to be stopped
)

// A Channel is the way on which Calendar tells of one thing's changes. Each is
// made for one watch and never renewed, but replaced.
type Channel struct {
	ID string
	WatchKey
	Resource  string // Google's id of what is watched
	TokenHash []byte // SHA-256 of the token that Google gives with each push
	State     ChannelState
	ExpiresAt time.Time
}

// ChannelMark begins the id of each channel that Headroom makes.
const ChannelMark = "headroom-"

// longestToken is what Google takes.
const longestToken = 256

// ChannelToken is the token of a channel: a secret and, so that a channel can be
// stopped of which nothing else is known, the account that it belongs to.
func ChannelToken(secret, account string) string {
	if len(secret)+1+len(account) > longestToken {
		return secret
	}
	return secret + ":" + account
}

// TokenAccount is the account in a channel's token, or empty.
func TokenAccount(token string) string {
	_, account, _ := strings.Cut(token, ":")
	return account
}

// PushOutcome is what became of a push.
type PushOutcome string

// What becomes of pushes that are what they claim to be. None of them is an error
// of the sender's.
const (
	PushAsked    PushOutcome = "asked"    // a sync was asked for
	PushKnown    PushOutcome = "known"    // of a change that is in the store already, or of none
	PushRepeated PushOutcome = "repeated" // it came before
	PushUnknown  PushOutcome = "unknown"  // of no account or channel that is known here
	PushResting  PushOutcome = "resting"  // the sync is paused, blocked or cancelled
	PushReplaced PushOutcome = "replaced" // a sync was asked for, by a channel that should be no more
)
