package quota

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"headroom/quota/price"
)

// A dayPlan is what a decision needs to know of a project's budget.
type dayPlan struct {
	price.Budget
	told *atomic.Int64 // see [book]
	log  *zap.Logger
}

// dayOf returns the beginning and the end of the day of Google's that at is in.
func dayOf(at time.Time) (begins, ends time.Time) {
	local := at.In(pacific)
	midnight := func(day int) time.Time {
		return time.Date(local.Year(), local.Month(), day, 0, 0, 0, 0, pacific)
	}
	return midnight(local.Day()), midnight(local.Day() + 1)
}

// DayEnds is when the day of Google's ends that at is in: midnight Pacific Time.
func DayEnds(at time.Time) time.Time {
	_, ends := dayOf(at)
	return ends.UTC()
}

// budget returns the project's budget for an API, nil if there is none.
func (p Project) budget(api string) *price.Budget {
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
	begins, ends := dayOf(now)
	_, next := dayOf(ends)
	return [3]int64{begins.Unix(), ends.Unix(), next.Unix()}
}

// allowed is what the day may have come to at a moment for a lane that is paced.
func (d *dayPlan) allowed(at time.Time) int64 {
	begins, ends := dayOf(at)
	return d.Allowed(at, begins, ends)
}

// reaches is when allowed comes to so many units.
func (d *dayPlan) reaches(units int64, at time.Time) time.Time {
	begins, ends := dayOf(at)
	return d.Reaches(units, at, begins, ends)
}

// budgetFor is what the lane may bring the day to with a call. A call that the
// whole budget has room for is never one that can never fit, however little the
// day's pace allows yet.
func (p *plan) budgetFor(cost int64, now time.Time) int64 {
	if !p.paced {
		return p.budget
	}
	return max(p.day.allowed(now), min(cost, p.budget))
}

// dayUsage is how full the day is for the lane.
func (p *plan) dayUsage(at time.Time, used int64) Usage {
	u := Usage{Limit: price.ProjectDay, Units: p.budget, Ceiling: p.budget, Used: used}
	if p.day != nil {
		u.Units = p.day.Units
	}
	if p.paced {
		u.Ceiling = p.day.allowed(at)
	}
	return u
}

// overBudget counts what was charged although the day's budget is spent, and tells
// once a day if somebody wants to be told.
func (l *Ledger) overBudget(c Caller, api string, day *dayPlan, at time.Time, used, granted int64) {
	over := min(granted, used+granted-day.Units)
	if over <= 0 {
		return
	}
	l.metrics.overBudget.WithLabelValues(c.Project, api).Add(float64(over))
	if day.AtEnd != price.AtEndAlert {
		return
	}
	_, ends := dayOf(at)
	if said := day.told.Load(); said < ends.Unix() && day.told.CompareAndSwap(said, ends.Unix()) {
		day.log.Warn("the budget of the day is spent, and calls go on",
			zap.Int64("daily_units", day.Units), zap.Time("day_ends", ends.UTC()))
	}
}
