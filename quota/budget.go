package quota

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// LimitProjectDay is the limit that a [Budget] sets.
const LimitProjectDay = "project-day"

// A Budget bounds what a project spends in a day of Google's, which ends at
// midnight Pacific Time. Google bills above a threshold per day and does not
// refuse (quota page of Gmail, 2026-05): the budget is the operator's own.
type Budget struct {
	API   string
	Units int64
	Hard  bool  // it binds people too, not only the background
	AtEnd AtEnd // [AtEndPause] if empty

	// Ahead is the share of the budget by which lane backfill may be ahead of
	// spending it evenly over the day, above 0 and below 1. 0 or 1: all of it, the
	// budget is not paced. Lane sync is never paced, since people see what it does.
	Ahead float64
}

// AtEnd says what happens when a day's budget is spent.
type AtEnd string

// What may happen at a budget's end.
const (
	AtEndPause AtEnd = "pause" // the background waits for the next day
	AtEndAlert AtEnd = "alert" // nothing is refused; a log line and a metric tell
	AtEndGoOn  AtEnd = "go_on" // nothing is refused; a metric tells
)

// AtEnds lists all of them.
var AtEnds = []AtEnd{AtEndPause, AtEndAlert, AtEndGoOn}

// validate reports everything that is wrong with a budget.
func (b Budget) validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("budget of "+b.API+": "+format, args...))
	}
	if b.Units < 1 || b.Units > maxUnits {
		bad("%d units are not from 1 to %d", b.Units, maxUnits)
	}
	if b.AtEnd != "" && !slices.Contains(AtEnds, b.AtEnd) {
		bad("unknown end %q; there are %v", b.AtEnd, AtEnds)
	}
	if b.Hard && !b.pauses() {
		bad("it cannot be hard and %s at its end", b.AtEnd)
	}
	if !(b.Ahead >= 0 && b.Ahead <= 1) {
		bad("ahead %v is not from 0 to 1", b.Ahead)
	}
	return errors.Join(problems...)
}

// pauses reports whether the budget refuses anything.
func (b Budget) pauses() bool { return b.AtEnd == "" || b.AtEnd == AtEndPause }

// paced reports whether the budget is spread over the day.
func (b Budget) paced() bool { return b.pauses() && b.Ahead > 0 && b.Ahead < 1 }

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
