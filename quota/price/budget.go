package price

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ProjectDay is the limit that a [Budget] sets.
const ProjectDay = "project-day"

// A Budget bounds what a project spends in a day of Google's, which ends at
// midnight Pacific Time. Google bills above a threshold per day and does not
// refuse (quota page of Gmail, 2026-05): the budget is the operator's own.
type Budget struct {
	API   string
	Units int64
	Hard  bool  // it binds interactive calls too, not only the background
	AtEnd AtEnd // [AtEndPause] if empty

	// Ahead is the share of the budget by which lane backfill may be ahead of
	// spending it evenly over the day, above 0 and below 1. 0 or 1: all of it, the
	// budget is not paced. Lane sync is never paced, since users see what it does.
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

// Validate reports everything that is wrong with a budget.
func (b Budget) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("budget of "+b.API+": "+format, args...))
	}
	if b.Units < 1 || b.Units > MaxUnits {
		bad("%d units are not from 1 to %d", b.Units, MaxUnits)
	}
	if b.AtEnd != "" && !slices.Contains(AtEnds, b.AtEnd) {
		bad("unknown end %q; there are %v", b.AtEnd, AtEnds)
	}
	if b.Hard && !b.Pauses() {
		bad("it cannot be hard and %s at its end", b.AtEnd)
	}
	if !(b.Ahead >= 0 && b.Ahead <= 1) {
		bad("ahead %v is not from 0 to 1", b.Ahead)
	}
	return errors.Join(problems...)
}

// Pauses reports whether the budget refuses anything.
func (b Budget) Pauses() bool { return b.AtEnd == "" || b.AtEnd == AtEndPause }

// Paced reports whether the budget is spread over the day.
func (b Budget) Paced() bool { return b.Pauses() && b.Ahead > 0 && b.Ahead < 1 }

// Allowed is how many units the day may have come to at a moment for a lane that is
// paced: what it may be ahead of an even spending when the day begins, all of it when
// the day ends.
func (b Budget) Allowed(at, begins, ends time.Time) int64 {
	gone := float64(at.Sub(begins)) / float64(ends.Sub(begins))
	return int64(float64(b.Units) * (b.Ahead + (1-b.Ahead)*gone))
}

// Reaches is when Allowed comes to so many units, no earlier than a millisecond after
// at.
func (b Budget) Reaches(units int64, at, begins, ends time.Time) time.Time {
	const rounded = 0.001 // of a unit: Allowed must have come to all of it
	gone := ((float64(units)+rounded)/float64(b.Units) - b.Ahead) / (1 - b.Ahead)
	reached := begins.Add(time.Duration(gone * float64(ends.Sub(begins))))
	if soon := at.Add(time.Millisecond); reached.Before(soon) {
		return soon
	}
	return reached
}
