package quota

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"headroom/quota/price"
)

// CheckRoom reports settings of a project, and live ones if there are any, that leave
// a lane less than the price of one call that reads, each with the least value that
// would do: a ceiling, a floor, a pace, a limit, a day's budget. A ledger takes such
// settings all the same, and refuses the calls with [ErrNeverFits].
func (p Project) CheckRoom(live map[string]Live) error {
	var problems []error
	for _, list := range p.Lists {
		problems = append(problems, p.checkRoom(list, live[list.API])...)
	}
	return errors.Join(problems...)
}

func (p Project) checkRoom(list *price.List, live Live) (problems []error) {
	method, need := list.MostExpensiveRead()
	bad := func(user, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if user != "" {
			text += " (for " + user + ")"
		}
		if !slices.ContainsFunc(problems, func(e error) bool { return e.Error() == text }) {
			problems = append(problems, errors.New(text))
		}
	}
	if b := p.budget(list.API); b != nil && b.Pauses() && b.Units < need {
		bad("", "a day's budget of %d units is less than one call costs (%s: %d); the least is %d", b.Units, method, need, need)
	}
	users := map[string]bool{"": true}
	for _, c := range slices.Concat(p.Changes, live.Changes) {
		users[lower(c.User)] = true
	}
	for _, user := range slices.Sorted(maps.Keys(users)) {
		for _, name := range slices.Sorted(maps.Keys(list.Limits)) {
			units := list.Limits[name].Units
			if units < need {
				bad("", "limit %s: %d units are less than one call costs (%s: %d); the least is %d", name, units, method, need, need)
				continue
			}
			for _, lane := range Lanes {
				s := p.settings(live, lane, name, user)
				room := int64(float64(units) * s.Ceiling)
				if room < need {
					bad(user, "%s.ceiling %v of %s leaves %d of %d units, less than one call costs (%s: %d); the least is %v",
						lane, s.Ceiling, name, room, units, method, need, leastShare(need, units))
					continue
				}
				if lane != Interactive && s.Pace > 0 && s.Pace*float64(room) < float64(need) {
					bad(user, "%s.pace %v of %s lets less than one call through in its time (%s: %d of %d units); the least is %v, and 0 stands for no pace",
						lane, s.Pace, name, method, need, room, leastShare(need, room))
				}
				if s.Floor > 0 && int64(float64(units)*s.Floor) < need {
					bad(user, "%s.floor %v of %s leaves less than one call costs (%s: %d of %d units); the least is %v, and 0 stands for no floor",
						lane, s.Floor, name, method, need, units, leastShare(need, units))
				}
			}
		}
	}
	return problems
}

// leastShare is the smallest share of so many units, in steps that people write,
// that comes to what is needed.
func leastShare(need, units int64) float64 {
	for digits := 10_000.0; ; digits *= 10 {
		share := math.Ceil(float64(need)/float64(units)*digits) / digits
		if int64(float64(units)*share) < need {
			share = (math.Ceil(float64(need)/float64(units)*digits) + 1) / digits
		}
		if int64(float64(units)*share) < 2*need || digits > 1e12 {
			return min(share, 1)
		}
	}
}
