package workers

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// fetch deals with the pending items until none is left or something ends the
// slice. Several passes over them may be needed: an item that was deferred
// comes back behind the cursor.
func (s *slice) fetch(ctx, calls context.Context) ending {
	if s.lasting.streak >= jobs.FaultStreak { // the last slice saw an outage: ask before all go
		if _, end := s.probeKnown(ctx, calls, nil); end != nil {
			return *end
		}
	}
	for {
		if s.stopping() {
			return ending{how: goesOn}
		}
		taken, suspects, end := s.pass(ctx, calls)
		if len(suspects) > 0 && (end == nil || end.how <= goesOn) {
			if judged := s.judge(ctx, calls, suspects); judged != nil {
				return *judged
			}
		}
		switch {
		case end != nil && end.how != doubtful:
			return *end
		case taken > 0:
			continue
		}
		if end := s.awaitDue(ctx, calls); end != nil {
			return *end
		}
	}
}

// awaitDue waits in place for the next deferred item, or returns how the slice
// ends when none is left or the wait is too long for that.
func (s *slice) awaitDue(ctx, calls context.Context) *ending {
	due, err := s.opts.Store.NextDue(ctx, s.ref)
	if err != nil {
		return breaks(fmt.Errorf("next item of job %s: %w", s.job.ID, err))
	}
	if s.snapshot.Due(time.Now()) && (due.IsZero() || time.Until(due) > inPlace) {
		return s.readOn(ctx, calls)
	}
	if due.IsZero() {
		if more, end := s.more(ctx, calls); more || end != nil {
			return end
		}
		fin := jobs.Finish{State: jobs.Completed}
		if s.job.Progress.Failed > 0 {
			fin.State = jobs.CompletedWithFailures
		}
		return &ending{how: ends, fin: fin}
	}
	wait := time.Until(due)
	if wait > inPlace {
		left := s.job.Progress.Listed - s.job.Progress.Done()
		return &ending{how: paused, why: fmt.Sprintf("the retry of %d items", left), until: due}
	}
	// Never nothing: the store may see its clock a little behind ours.
	timer := time.NewTimer(max(wait, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.drain:
	case <-ctx.Done():
		return &ending{how: lost, err: context.Cause(ctx)}
	}
	return nil
}

// more finds more items when none is pending: what is listed in place of messages
// that do not count, or noted ones whose bodies come next.
func (s *slice) more(ctx, calls context.Context) (bool, *ending) {
	if s.unlisted != nil {
		return false, s.unlisted
	}
	switch {
	case s.job.ListsOn() && s.job.Kind == jobs.MailSync: // the next slice begins with the history
		return false, &ending{how: goesOn}
	case s.job.ListsOn():
		return true, s.list(ctx, calls)
	}
	more, err := s.opts.Store.NextPass(ctx, s.ref)
	if err != nil {
		return false, breaks(fmt.Errorf("next pass of job %s: %w", s.job.ID, err))
	}
	return more, nil
}
