package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// outageStreak is how many faults in a row, with no success between them, make
// it doubtful whether the items are to blame.
const outageStreak = 10

// judge decides whether a streak of faults was an outage, in which case the job
// backs off and the items are as if never tried, or the items' own fault, in
// which case their attempts count and it returns nil. The proof is a message
// that was fetched before: when Google still serves that one, it is not out.
// With no such message at hand, it is an outage as long as one of the items was
// on its first attempt; the others have been found at fault before.
func (s *slice) judge(ctx, calls context.Context, suspects []suspect) *ending {
	last := suspects[len(suspects)-1].result.Failure
	outage := breaks(fmt.Errorf("none of the last %d fetches from %s worked, the last for %s", s.lasting.streak, s.job.Account, last.Reason))
	if s.lasting.good == "" {
		for _, suspect := range suspects {
			if suspect.first {
				return outage
			}
		}
	} else if err := s.box.Fetch(calls, s.lasting.good, func(jobs.Fetched) error { return nil }); err != nil {
		if ctx.Err() != nil || interrupted(calls) {
			return endingOfCall(ctx, calls, err, time.Now())
		}
		if end := endingOf(err, time.Now()); end != nil {
			return end
		}
		call, ok := errors.AsType[*jobs.CallError](err)
		if !ok || call.Class != jobs.ClassGone {
			return outage
		}
		s.lasting.good = "" // deleted by now; but that is an answer
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
