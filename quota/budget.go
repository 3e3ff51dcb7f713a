package quota

import "time"

// LimitProjectDay is the limit that a [Budget] sets.
const LimitProjectDay = "project-day"

// A Budget bounds what a project spends in a day of Google's, which ends at
// midnight Pacific Time. Google bills above a threshold per day and does not
// refuse (quota page of Gmail, 2026-05): the budget is the operator's own.
type Budget struct {
	API   string
	Units int64
	Hard  bool // it binds people too, not only the background
}

// budget returns the project's budget for an API, nil if there is none.
func (p Project) budget(api string) *Budget {
	for _, b := range p.Budgets {
		if b.API == api {
			return &b
		}
	}
	return nil
}

// maxBudget is what a day may come to for a lane that no budget binds: as much as
// the ledger can count.
const maxBudget = 1<<32 - 1

// dayEnds returns the ends of the days before, around and after now, in Unix
// seconds: whichever of them Redis' clock has not reached yet ends its day, even
// if the local clock is hours off.
func dayEnds(now time.Time) [3]int64 {
	local := now.In(pacific)
	var ends [3]int64
	for i := range ends {
		ends[i] = time.Date(local.Year(), local.Month(), local.Day()+i, 0, 0, 0, 0, pacific).Unix()
	}
	return ends
}
