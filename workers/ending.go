package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// how says in which way a slice ends. Several things can end a slice at about
// the same time (its time is over, one fetch is refused, another finds the
// account's grant revoked): the greatest wins.
type how int

const (
	doubtful how = iota // within a pass only: many faults in a row, to be judged
	goesOn              // time is over: the successor goes on
	paused              // only deferred items are left
	refused             // for quota
	broke               // something does not work: back off
	ends                // the job has reached a terminal state
	lost                // the job has another owner, or the run's time is up: write nothing
)

// ending is why a slice, or a phase of it, is over.
type ending struct {
	how   how
	label string        // metric label: the limit that refused
	why   string        // paused, refused, broke: what the job waits for, for people
	until time.Time     // paused, refused, broke: the moment that was named
	wait  time.Duration // refused: from the refusal to until
	sure  bool          // refused: until is a cool-down's end, not a guess at what others spend
	err   error         // broke: what; lost: why
	fades bool          // broke: waiting helps, so the job never ends for it
	fin   jobs.Finish   // ends: how the job ends
	mend  string        // ends: what somebody has to do before the job can start again
}

// outranks reports whether e is the better reason to stop than f. Of two
// refusals it is the one that lasts longer.
func (e ending) outranks(f ending) bool {
	if e.how != f.how {
		return e.how > f.how
	}
	return e.how == refused && e.until.After(f.until)
}

// unknownWait is how long to leave Google alone after a quota answer that does
// not say: its one-minute window, and some.
const unknownWait = 65 * time.Second

func breaks(err error) *ending {
	if errors.Is(err, jobs.ErrStale) {
		return &ending{how: lost, err: err}
	}
	if errors.Is(err, jobs.ErrNoRoom) {
		// Nothing is wrong with the job, however long it takes to make room.
		return &ending{how: refused, label: diskLabel, why: clip(err.Error()), wait: roomWait, until: time.Now().Add(roomWait)}
	}
	return &ending{how: broke, why: err.Error(), err: err, fades: jobs.Passes(err)}
}

// persists is [breaks] for what comes again however long the job waits.
func persists(err error) *ending { return breaks(persistent{err}) }

type persistent struct{ error }

func (p persistent) Unwrap() []error { return []error{p.error, jobs.ErrPersists} }

func blocks(err error) *ending {
	return &ending{how: ends, fin: jobs.Finish{State: jobs.Blocked, Error: err.Error()}}
}

// hinted adds to a job's last error what is to be done, and how a job of its kind
// is started again then.
func (s *slice) hinted(end ending) ending {
	if end.mend == "" {
		return end
	}
	again := "start the backfill again"
	switch s.job.Kind {
	case jobs.MailSync:
		again = "ask for the sync again with: headroom sync " + s.job.Account
	case jobs.CalendarSync:
		again = "ask for the sync again with: headroom calendar sync " + s.job.Account
	}
	end.fin.Error += "; " + end.mend + ", then " + again
	return end
}

// endingOf says how err, from a call to Google, ends the slice. It returns nil
// for errors that may be the fault of the one item that the call was about.
func endingOf(err error, now time.Time) *ending {
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		return &ending{
			how: refused, label: denied.Limit, why: denied.Why(),
			wait: denied.RetryAfter + denied.Later, until: now.Add(denied.RetryAfter + denied.Later), sure: denied.Bound == quota.BoundHold,
		}
	}
	call, isCall := errors.AsType[*jobs.CallError](err)
	switch {
	case errors.Is(err, quota.ErrNeverFits):
		return breaks(fmt.Errorf("%w; raise the lane's ceiling (headroom quota set, or lanes of google.projects in the settings) or the limit: then it goes on by itself", err))
	case errors.Is(err, quota.ErrUnknownProject):
		return breaks(fmt.Errorf("%w; add it to google.projects in the settings: then it goes on by itself", err))
	case errors.Is(err, quota.ErrUnavailable):
		// Nothing is known about the quota, so there is none: a wait, however
		// long the ledger stays away, and never a failure of the job's.
		return &ending{how: refused, label: ledgerLabel, why: err.Error(),
			wait: time.Second, until: now.Add(time.Second)}
	case tooMany(err):
		// Its pause in place was cut short, because the slice ends anyway.
		return &ending{how: goesOn}
	case isCall && (call.Class == jobs.ClassQuota || call.Class == jobs.ClassConcurrency):
		wait := call.Wait
		if wait <= 0 {
			wait = unknownWait
		}
		return &ending{how: refused, label: googleLabel, why: cmp.Or(call.Limit, "Google's quota ("+call.Reason+")"),
			wait: wait, until: now.Add(wait), sure: true}
	case isCall && call.Class == jobs.ClassAccount:
		return blocks(err)
	case isCall && call.Class == jobs.ClassProject: // of many jobs, one asks until it is over
		e := breaks(err)
		e.until = now.Add(call.Wait)
		return e
	case errors.Is(err, quota.ErrNoCaller), errors.Is(err, quota.ErrCaller):
		return persists(err)
	}
	return nil
}

// googleLabel is the limit, in metrics, of a refusal by Google itself.
const googleLabel = "google"

// ledgerLabel is the same where the ledger gave no answer.
const ledgerLabel = "ledger-unavailable"

// diskLabel is the same where the store's disk is full, and roomWait how long a job
// waits at first before it looks whether there is room.
const (
	diskLabel = "disk-full"
	roomWait  = 2 * time.Second
)

// endingOfCall is [endingOf] for a call that is about no item: whatever else
// went wrong, the job backs off. The call was made under calls, a child of ctx.
func endingOfCall(ctx, calls context.Context, err error, now time.Time) *ending {
	switch {
	case ctx.Err() != nil:
		return &ending{how: lost, err: context.Cause(ctx)}
	case interrupted(calls):
		return &ending{how: goesOn}
	}
	if e := endingOf(err, now); e != nil {
		return e
	}
	return breaks(err)
}
