package jobs

import (
	"errors"
	"fmt"
	"time"
)

const (
	// firstFaultWait and longestFaultWait bound how long work is left alone after a
	// fault that passes by itself.
	firstFaultWait   = time.Second
	longestFaultWait = 2 * time.Minute

	// FaultStreak is how many fetches in a row must fail, with no success between
	// them, before it is doubtful whether the items are to blame.
	FaultStreak = 10
	// proofLasts is how long a call that worked proves that Google works. It is
	// shorter than all waits between the attempts of an item together, so that no
	// outage that begins within it uses up all attempts of one.
	proofLasts = 10 * time.Second
	// unmetTries is how often a job tries, without progress between, what somebody
	// may have to make possible first.
	unmetTries = 10
	// unprovenBound is how long a mailbox may answer all but fetches, of which none
	// ever worked, before its items are to blame.
	unprovenBound = 24 * time.Hour
)

// ErrPersists marks errors that no waiting ends: a fault of this program's, or an
// answer that would come again.
var ErrPersists = errors.New("waiting does not help")

// Passes reports whether what err tells of is over some time without anybody
// changing the job: an outage of Google's, of the network or of the store, a
// project whose credentials or clock are put right. Faults that pass never end a
// job, however often they come.
func Passes(err error) bool {
	if errors.Is(err, ErrPersists) {
		return false
	}
	call, ok := errors.AsType[*CallError](err)
	if !ok {
		return true
	}
	switch call.Class {
	case ClassQuota, ClassConcurrency, ClassProject:
		return true
	case ClassTransient:
		return !unmet(call)
	}
	return false
}

// unmet reports whether an answer is Gmail's "Precondition check failed", known as a
// passing fault, and as what a mailbox answers that somebody must set up first.
func unmet(call *CallError) bool { return call.Reason == "failedPrecondition" }

// GivesUp says whether a job ends for a fault before which so many others came
// without progress between, and in which state: blocked where somebody has to act for
// its account. Budget is how many are tolerated of faults of unknown kinds.
func GivesUp(err error, before, budget int) (State, bool) {
	if Passes(err) {
		return "", false
	}
	if call, ok := errors.AsType[*CallError](err); ok && unmet(call) {
		return Blocked, before+1 >= min(unmetTries, budget+1)
	}
	return Failed, before >= budget
}

// FaultWait is how long to leave work alone after its nth fault in a row, from 0:
// a second, doubled with each, up to minutes. Scale is how much faster than the
// clock quota's time runs; it shortens the longest wait.
func FaultWait(n, scale int) time.Duration {
	return Doubled(firstFaultWait, n, longestFaultWait/time.Duration(max(scale, 1)))
}

// Evidence is what is known about a row of fetches that failed.
type Evidence struct {
	Streak   int           // how many, in a row
	Final    bool          // one of them was the last attempt of its item
	Proven   time.Duration // since a probe last worked that was made during a row; negative: never
	Worked   time.Duration // since any call worked; negative: never
	Unproven time.Duration // since when nothing of the job's works
}

// Doubtful reports whether it has to be found out, by a probe, if Google is to
// blame before more is fetched.
func (e Evidence) Doubtful() bool {
	return e.Streak >= FaultStreak && !recent(e.Proven) || e.Final && !recent(e.Proven) && !recent(e.Worked)
}

// Works reports whether a call has just worked.
func (e Evidence) Works() bool { return recent(e.Worked) }

// Blamed reports whether the items are to blame although nothing proves that
// fetches work: the mailbox answers otherwise, and has for so long that it is no
// outage.
func (e Evidence) Blamed() bool { return e.Unproven >= unprovenBound }

func recent(since time.Duration) bool { return since >= 0 && since < proofLasts }

// Since says for people since when something is so; "" at the zero time.
func Since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(", since %s", t.UTC().Format(time.RFC3339))
}
