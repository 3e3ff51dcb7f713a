package quota

import (
	"context"
	"time"
)

const (
	maxLowered  = 64 // accounts and projects that a journal follows after a refusal
	followEvery = time.Second
)

// lowered is a user, or a project as a whole, whose ceilings Google's refusals
// have lowered.
type lowered struct{ project, api, user string }

func (w lowered) scope() string {
	if w.user == "" {
		return "project"
	}
	return "user"
}

// follow notes that a refusal has lowered what a user or project may use.
func (j *Journal) follow(charge Charge, scope Scope) {
	w := lowered{charge.Caller.Project, charge.API, charge.Caller.User}
	if scope == ScopeProject || scope == ScopeDay {
		w.user = ""
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lowered) < maxLowered {
		j.lowered[w] = struct{}{}
	}
}

// learn looks at what those who were refused may use by now, and tells the
// metrics the least of it. Who may use everything again is forgotten.
func (j *Journal) learn(ctx context.Context) {
	j.mu.Lock()
	var all []lowered
	for w := range j.lowered {
		all = append(all, w)
	}
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, followEvery)
	defer cancel()
	type scope struct{ api, name string }
	least := map[scope]float64{}
	for _, w := range all {
		d, err := j.ledger.Peek(ctx, Caller{Project: w.project, User: w.user, Lane: Interactive}, w.api)
		if err != nil {
			return
		}
		state := d.User
		if w.user == "" {
			state = d.Project
		}
		share := state.Share
		if share == 0 || share >= 1 {
			share = 1
			j.forget(w, state)
		}
		key := scope{w.api, w.scope()}
		if old, seen := least[key]; !seen || share < old {
			least[key] = share
		}
	}
	for key, share := range least {
		j.metrics.learned.WithLabelValues(key.api, key.name).Set(share)
	}
}

// forget ends the following of who may use everything again. While it is closed it
// has yet to be lowered.
func (j *Journal) forget(w lowered, s ScopeState) {
	if s.ClosedUntil.After(time.Now()) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.lowered, w)
}
