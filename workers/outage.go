package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"headroom/jobs"
)

// samples is how many pending items are tried where nothing is stored that could
// tell.
const samples = 4

// evidence is what is known about the faults of late, if these are whose results
// are to count.
func (s *slice) evidence(suspects []suspect) jobs.Evidence {
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return time.Since(t)
	}
	e := jobs.Evidence{Streak: s.lasting.streak, Proven: since(s.lasting.proven), Worked: since(s.lasting.worked)}
	if !s.job.FailingSince.IsZero() && !s.progress {
		e.Unproven = time.Since(s.job.FailingSince)
	}
	for _, one := range suspects {
		e.Final = e.Final || one.result.Outcome == jobs.ItemFailed
	}
	return e
}

// judge decides whether a row of faults was an outage, in which case the job backs
// off and the items are as if never tried, or the items' own fault, in which case
// their attempts count and it returns nil. They are the items' own where any other
// fetch works. In an outage the next slice begins with the same items: so where
// each of them works after some attempts, the first one soon proves it for all.
func (s *slice) judge(ctx, calls context.Context, suspects []suspect) *ending {
	proven, end := s.probe(ctx, calls, suspects)
	if end != nil {
		return end
	}
	switch err := blamed(suspects); {
	case proven:
	case err != nil && len(suspects) >= jobs.FaultStreak: // one after the other is refused: it is the account
		return endingOf(err, time.Now())
	case err != nil: // they are all that is left, and the account answers other calls
	case !s.evidence(suspects).Blamed():
		return s.outage(causeOf(suspects))
	}
	results := make([]jobs.Result, len(suspects))
	for i, suspect := range suspects {
		results[i] = suspect.result
	}
	s.lasting.streak = 0
	if err := s.commit(ctx, results); err != nil {
		return breaks(err)
	}
	return nil
}

// causeOf is the last fault of the suspects that an outage may explain.
func causeOf(suspects []suspect) error {
	for _, s := range slices.Backward(suspects) {
		if !blames(s.err) {
			return s.err
		}
	}
	return suspects[len(suspects)-1].err
}

// probe asks Google for something other than the suspects: for a message known to
// be good, or else, of a mailbox of which nothing is stored yet, for its profile,
// and then for a few of the pending items. Proven says that fetches work; end is
// set when Google is out, or for any other reason to stop.
func (s *slice) probe(ctx, calls context.Context, suspects []suspect) (proven bool, end *ending) {
	if errors.Is(calls.Err(), context.DeadlineExceeded) { // the fetches took all of the slice's time
		var cancel context.CancelFunc
		calls, cancel = context.WithTimeout(context.WithoutCancel(calls), margin/2)
		defer cancel()
	}
	if known, end := s.probeKnown(ctx, calls, suspects); known || end != nil {
		return end == nil, end
	}
	if blamed(suspects) == nil { // else that was found out before
		if err := s.call(calls, nil, s.access.ask); err != nil {
			return false, endingOfCall(ctx, calls, err, time.Now())
		}
	}
	return s.probePending(ctx, calls, suspects)
}

// probeKnown asks for a message known to be good: the last that worked in this
// process, or else one that is stored. An answer proves that Google is not out.
// Known is false when there is none; end is set when Google is out, or for any
// other reason to stop.
func (s *slice) probeKnown(ctx, calls context.Context, suspects []suspect) (known bool, end *ending) {
	id := s.lasting.good
	if id == "" {
		var err error
		if id, err = s.opts.Store.StoredID(ctx, s.job.Account); errors.Is(err, jobs.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, breaks(err)
		}
	}
	// Should this one have gone bad itself, the next probe takes another.
	s.lasting.good = ""
	err := s.call(calls, nil, func(ctx context.Context) error {
		_, err := s.box.Metadata(ctx, id)
		return err
	})
	switch call, isCall := errors.AsType[*jobs.CallError](err); {
	case err == nil:
		s.lasting.good = id
	case ctx.Err() != nil, interrupted(calls):
		return true, endingOfCall(ctx, calls, err, time.Now())
	case isCall && (call.Class == jobs.ClassGone || call.Class == jobs.ClassItem): // an answer, too
	case blames(err) && blamed(suspects) != nil: // items and items alike: it is the account
		return true, endingOf(err, time.Now())
	default:
		if end := s.endingOfItem(ctx, calls, err); end != nil {
			return true, end
		}
		return true, s.outage(err)
	}
	s.worksAgain()
	return true, nil
}

// worksAgain notes that a probe worked.
func (s *slice) worksAgain() {
	now := time.Now()
	s.lasting.streak, s.lasting.worked, s.lasting.proven = 0, now, now
}

// probePending tries a few items beyond the suspects. What works is kept; what
// does not is as if never tried.
func (s *slice) probePending(ctx, calls context.Context, suspects []suspect) (proven bool, end *ending) {
	items, err := s.sample(ctx, suspects)
	if err != nil {
		return false, breaks(err)
	}
	for _, item := range items {
		out, end := s.fetchItem(ctx, calls, nil, item)
		switch {
		case end != nil:
			return false, end
		case out == nil:
			return false, &ending{how: goesOn}
		case out.fault != nil:
			continue
		}
		if err := s.commit(ctx, []jobs.Result{out.result}); err != nil {
			return false, breaks(err)
		}
		if out.result.Outcome == jobs.ItemStored {
			s.lasting.good = item.ID
		}
		s.worksAgain()
		return true, nil
	}
	return false, nil
}

// sample returns pending items, never tried before, from all parts of the listing that come after
// the suspects: bad messages tend to stand side by side.
func (s *slice) sample(ctx context.Context, suspects []suspect) ([]jobs.Item, error) {
	var after int64
	for _, suspect := range suspects {
		after = max(after, suspect.item.Seq)
	}
	rest := s.job.Progress.Listed - after
	var items []jobs.Item
	for i := range int64(samples) {
		from, to := after+rest*i/samples, after+rest*(i+1)/samples
		if from >= to {
			continue
		}
		next, err := s.opts.Store.NextItems(ctx, s.ref, from+rand.N(to-from), 1)
		if err != nil {
			return nil, fmt.Errorf("sample the items of job %s: %w", s.job.ID, err)
		}
		// One that was at fault before tells nothing. And the pending ones may
		// stand so far apart that two parts find the same.
		if len(next) > 0 && next[0].Attempts == 0 && (len(items) == 0 || next[0].Seq > items[len(items)-1].Seq) {
			items = append(items, next[0])
		}
	}
	return items, nil
}

// outage is how a slice ends when no fetch works.
func (s *slice) outage(err error) *ending {
	return breaks(fmt.Errorf("fetches from %s fail: %w", s.job.Account, err))
}
