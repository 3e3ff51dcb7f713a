package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"headroom/jobs"
)

const (
	// outageStreak is how many faults in a row, with no success between them,
	// make it doubtful whether the items are to blame.
	outageStreak = 10
	// samples is how many pending items are tried where nothing is stored that
	// could tell.
	samples = 4
)

// judge decides whether a streak of faults was an outage, in which case the job
// backs off and the items are as if never tried, or the items' own fault, in
// which case their attempts count and it returns nil. When nothing is at hand
// that could prove it, it is an outage as long as one of the items was on its
// first attempt; the others have been found at fault before.
func (s *slice) judge(ctx, calls context.Context, suspects []suspect) *ending {
	last := suspects[len(suspects)-1].result.Failure.Reason
	proven, end := s.probe(ctx, calls, suspects)
	if end != nil {
		return end
	}
	results := make([]jobs.Result, len(suspects))
	for i, suspect := range suspects {
		if err := blamed(suspects); !proven && err != nil {
			return blocks(err)
		}
		if !proven && suspect.item.Attempts == 0 {
			return s.outage(last)
		}
		results[i] = suspect.result
	}
	s.lasting.streak = 0
	if err := s.commit(ctx, results); err != nil {
		return breaks(err)
	}
	return nil
}

// probe asks Google for something other than the suspects: a message known to
// be good, which is the last that worked in this process, or else one that is
// stored; or else, of a mailbox of which nothing is stored yet, a few of the
// pending items. Any answer proves that Google is not out, and ends the streak.
// Proven is false when there is nothing to ask for; end is set when Google is
// out, or for any other reason to stop.
func (s *slice) probe(ctx, calls context.Context, suspects []suspect) (proven bool, end *ending) {
	id := s.lasting.good
	if id == "" {
		var err error
		if id, err = s.opts.Store.StoredID(ctx, s.job.Account); errors.Is(err, jobs.ErrNotFound) {
			return s.probePending(ctx, calls, suspects)
		} else if err != nil {
			return false, breaks(err)
		}
	}
	// Should this one have gone bad itself, the next probe takes another.
	s.lasting.good = ""
	err := s.call(calls, nil, func(ctx context.Context) error {
		_, err := s.box.Fetch(ctx, id, io.Discard)
		return err
	})
	if err == nil {
		s.lasting.good, s.lasting.streak = id, 0
		return true, nil
	}
	if ctx.Err() != nil || interrupted(calls) {
		return false, endingOfCall(ctx, calls, err, time.Now())
	}
	if blames(err) && blamed(suspects) != nil { // items and items alike: it is the account
		return false, blocks(err)
	}
	if end := s.endingOfItem(ctx, calls, err); end != nil {
		return false, end
	}
	class, reason := sortFault(err)
	if class != jobs.ClassGone { // deleted by now would be an answer too
		return false, s.outage(reason)
	}
	s.lasting.streak = 0
	return true, nil
}

// probePending tries a few items beyond the suspects. What works is kept; what
// does not is as if never tried.
func (s *slice) probePending(ctx, calls context.Context, suspects []suspect) (proven bool, end *ending) {
	items, err := s.sample(ctx, suspects)
	if err != nil {
		return false, breaks(err)
	}
	var out *outcome
	for _, item := range items {
		out, end = s.fetchItem(ctx, calls, nil, item)
		switch {
		case end != nil:
			return false, end
		case out == nil:
			return false, &ending{how: goesOn}
		case out.fault:
			continue
		}
		if err := s.commit(ctx, []jobs.Result{out.result}); err != nil {
			return false, breaks(err)
		}
		if out.result.Outcome == jobs.ItemStored {
			s.lasting.good = item.ID
		}
		s.lasting.streak = 0
		return true, nil
	}
	if out == nil {
		return false, nil
	}
	if out.blame != nil && blamed(suspects) != nil {
		return false, blocks(out.blame)
	}
	return false, s.outage(out.result.Failure.Reason)
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

func (s *slice) outage(last string) *ending {
	return breaks(fmt.Errorf("none of the last %d fetches from %s worked, the last for %s", s.lasting.streak, s.job.Account, last))
}
