package workers

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// outageStreak is how many faults in a row, with no success between them, make
// it doubtful whether the items are to blame.
const outageStreak = 10

// judge decides whether a streak of faults was an outage, in which case the job
// backs off and the items are as if never tried, or the items' own fault, in
// which case their attempts count and it returns nil. When no message is at
// hand that could prove it, it is an outage as long as one of the items was on
// its first attempt; the others have been found at fault before.
func (s *slice) judge(ctx, calls context.Context, suspects []suspect) *ending {
	last := suspects[len(suspects)-1].result.Failure.Reason
	proven, end := s.probe(ctx, calls)
	if end != nil {
		return end
	}
	for _, suspect := range suspects {
		if !proven && suspect.first {
			return s.outage(last)
		}
	}
	s.lasting.streak = 0
	results := make([]jobs.Result, len(suspects))
	for i, suspect := range suspects {
		results[i] = suspect.result
	}
	if err := s.commit(ctx, results); err != nil {
		return breaks(err)
	}
	return nil
}

// probe fetches a message that was fetched before. When Google still serves it,
// it is not out, and the streak is over. Proven is false when there is no such
// message; end is set when Google is out, or for any other reason to stop.
func (s *slice) probe(ctx, calls context.Context) (proven bool, end *ending) {
	if s.lasting.good == "" {
		return false, nil
	}
	err := s.call(calls, nil, func(ctx context.Context) error {
		return s.box.Fetch(ctx, s.lasting.good, func(jobs.Fetched) error { return nil })
	})
	if err != nil {
		if ctx.Err() != nil || interrupted(calls) {
			return false, endingOfCall(ctx, calls, err, time.Now())
		}
		if end := endingOf(err, time.Now()); end != nil {
			return false, end
		}
		class, reason := sortFault(err)
		if class != jobs.ClassGone {
			return false, s.outage(reason)
		}
		s.lasting.good = "" // deleted by now; but that is an answer
	}
	s.lasting.streak = 0
	return true, nil
}

func (s *slice) outage(last string) *ending {
	return breaks(fmt.Errorf("none of the last %d fetches from %s worked, the last for %s", s.lasting.streak, s.job.Account, last))
}
