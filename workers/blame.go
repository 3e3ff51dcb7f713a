package workers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"headroom/jobs"
)

// blames reports whether an error of Google's puts the blame on the account or on
// its project.
func blames(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && (call.Class == jobs.ClassAccount || call.Class == jobs.ClassProject)
}

// access is whether calls that need no item work. It is asked once in a slice, when
// an answer about one item first blames the account; other calls wait for what comes
// of it.
type access struct {
	ask func(context.Context) error // makes such a call

	first sync.Once
	asked chan struct{} // closed when end is known
	end   *ending       // how the slice ends if they do not work; nil: they do
}

func newAccess(ask func(context.Context) error) *access {
	return &access{ask: ask, asked: make(chan struct{})}
}

// endingOfItem is [endingOf] for a call about one item, or one calendar. An answer
// that blames the account, or its project, ends the slice only if a call that needs
// no item fails too: the item alone may be what is refused.
func (s *slice) endingOfItem(ctx, calls context.Context, err error) *ending {
	if !blames(err) {
		return endingOf(err, time.Now())
	}
	a, mine := s.access, false
	a.first.Do(func() { mine = true })
	if mine {
		defer close(a.asked)
		if failed := s.call(calls, nil, a.ask); failed != nil {
			a.end = endingOfCall(ctx, calls, failed, time.Now())
		}
		return a.end
	}
	<-a.asked // the call has a bound
	return a.end
}

// blamed is the error of the last of some suspects, if all of them blame the account.
func blamed(suspects []suspect) error {
	if len(suspects) == 0 || slices.ContainsFunc(suspects, func(s suspect) bool { return !blames(s.err) }) {
		return nil
	}
	return suspects[len(suspects)-1].err
}
