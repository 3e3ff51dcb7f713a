package quota

import (
	"fmt"
	"slices"
	"sync/atomic"

	"headroom/quota/price"
)

// rules are the plans of one API of one project at one revision of the live
// settings.
type rules struct {
	live  Live
	all   map[Lane]*plan
	users map[string]map[Lane]*plan // of those with settings of their own, folded
}

// book holds the rules in force for one API of one project.
type book struct {
	name    string
	project Project
	list    *price.List
	fresh   atomic.Bool // see Options.Fresh
	rules   atomic.Pointer[rules]
	breaker *breaker
	told    atomic.Int64 // the end of the day, in Unix seconds, whose budget was told to be spent
}

// makeRules makes the plans for live settings, or says what is wrong with them.
func (l *Ledger) makeRules(b *book, live Live) (*rules, error) {
	r := &rules{live: live, users: map[string]map[Lane]*plan{}}
	for _, c := range live.Changes {
		if err := c.Validate(b.list); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	for _, c := range slices.Concat(b.project.Changes, live.Changes) {
		r.users[lower(c.User)] = nil
	}
	r.users[""] = nil
	for user := range r.users {
		r.users[user] = map[Lane]*plan{}
		for _, lane := range Lanes {
			p, err := l.makePlan(b, live, user, lane)
			if err != nil {
				return nil, err
			}
			r.users[user][lane] = p
		}
	}
	r.all = r.users[""]
	return r, nil
}

// plan returns how decisions are made for a user and lane, nil if there is no
// such lane.
func (r *rules) plan(user string, lane Lane) *plan {
	if len(r.users) > 1 {
		if own, ok := r.users[lower(user)]; ok {
			return own[lane]
		}
	}
	return r.all[lane]
}
