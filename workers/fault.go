package workers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"headroom/jobs"
)

// maxAttempts is how often a message is tried before it is given up into the
// job's failure list.
const maxAttempts = 5

// blames reports whether an error of Google's puts the blame on the account or on
// its project.
func blames(err error) bool {
	class := classOf(err)
	return class == jobs.ClassAccount || class == jobs.ClassProject
}

// An access checks whether calls that need no item work. It does so once in a slice,
// when an answer about one item first blames the account; other calls wait for the
// result.
type access struct {
	ask func(context.Context) error // makes such a call

	first sync.Once
	asked chan struct{} // closed when r is known
	r     result        // why the slice is over if they do not work; zero: they work
}

func newAccess(ask func(context.Context) error) *access {
	return &access{ask: ask, asked: make(chan struct{})}
}

// resultOf is [resultOf] for a call about one item, or one calendar. An answer that
// blames the account, or its project, ends the slice only if a call that needs no item
// fails too: the item alone may be what is refused.
func (a *access) resultOf(ctx context.Context, s *slice, err error) result {
	if !blames(err) {
		return resultOf(err, s.now())
	}
	mine := false
	a.first.Do(func() { mine = true })
	if mine {
		defer close(a.asked)
		if failed := s.call(nil, a.ask); failed != nil {
			a.r = s.resultOfCall(ctx, failed)
		}
		return a.r
	}
	<-a.asked // the call has a bound
	return a.r
}

// blamed returns the error of the last of some suspects, if all of them blame the
// account.
func blamed(suspects []suspect) error {
	if len(suspects) == 0 || slices.ContainsFunc(suspects, func(s suspect) bool { return !blames(s.err) }) {
		return nil
	}
	return suspects[len(suspects)-1].err
}

// faultOf returns the outcome of an item whose fetch failed in a way that may be the
// item's own fault: the item is gone, or will never work, or is tried again later, each
// time later, until it is given up.
func faultOf(ref jobs.TaskRef, item jobs.Item, err error, now time.Time) *outcome {
	class, reason := sortFault(err)
	attempts := item.Attempts + 1
	out := &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{
		Job: ref.Job, ID: item.ID, Phase: "fetch", Class: class, Reason: reason,
		Attempts: attempts, FirstAt: now.UTC(), LastAt: now.UTC(),
	}}}
	switch class {
	case jobs.ClassGone:
		if wait, again := jobs.GoneAgain(ref.Kind, item.Attempts); again {
			out.result.Outcome, out.result.RetryAt = jobs.ItemDeferred, now.Add(wait).UTC()
			break
		}
		out.result = jobs.Result{ID: item.ID, Outcome: jobs.ItemGone}
	case jobs.ClassItem:
	default:
		out.fault = err
		if blames(err) { // the account answers other calls, so this is the item's own fault
			out.result.Failure.Class = jobs.ClassForbidden
		}
		if attempts < maxAttempts {
			wait := backoff(time.Second, item.Attempts)
			out.result.Outcome = jobs.ItemDeferred
			out.result.RetryAt = now.Add(wait - jitter(wait/4)).UTC()
		}
	}
	return out
}

// sortFault returns the class of a fetch's error and Google's reason, or the
// error's text where there is none.
func sortFault(err error) (jobs.Class, string) {
	class, reason := jobs.ClassTransient, ""
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		class, reason = call.Class, call.Reason
	}
	if reason == "" {
		reason = err.Error()
	}
	return class, clip(reason)
}

// clip bounds a text that came from outside.
func clip(text string) string {
	const most = 500
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
