package scheduler

import (
	"maps"
	"slices"

	"headroom/jobs"
)

// Weights divides a project's quota: between the priority classes, and within a class
// between its tenants. What is not named weighs 1. The accounts of a tenant and class weigh the same.
type Weights struct {
	Classes map[string]float64
	Tenants map[string]float64
	// TenantClass is the class of a tenant's accounts that name none; "default" if
	// it is not named.
	TenantClass map[string]string
}

func weight(all map[string]float64, name string) float64 {
	if w := all[name]; w > 0 {
		return w
	}
	return 1
}

func (w Weights) classOf(c jobs.Candidate) string {
	if c.Class != "" {
		return c.Class
	}
	if class := w.TenantClass[c.Tenant]; class != "" {
		return class
	}
	return jobs.DefaultClass
}

const (
	// Nobody's lead over the others, nor arrears, may grow beyond so many slices:
	// who was kept from work for hours is not to have all capacity for hours then.
	mostLead    = 1
	mostArrears = 4
)

// A share is a class, a tenant, an account or a job, in a tree of them. What it
// has spent counts in units over its weight, so that those who have the same
// spent came by their shares.
type share struct {
	name   string
	weight float64
	spent  float64
	kids   map[string]*share
	tenant bool // its kids are accounts of a tenant

	// What follows is of one round.
	seen    bool
	running float64 // what the slices of admitted jobs will have spent, over the weight
	held    int     // jobs below that are admitted and do not yield
	wants   int     // jobs below that wait for admission
	job     *jobs.Candidate
}

func (s *share) kid(name string, weight float64) (kid *share, fresh bool) {
	kid = s.kids[name]
	if kid == nil {
		if s.kids == nil {
			s.kids = map[string]*share{}
		}
		kid, fresh = &share{name: name}, true
		s.kids[name] = kid
	}
	kid.weight, kid.seen = weight, true
	return kid, fresh
}

// level is where a share stands among its siblings: the lowest is next.
func (s *share) level() float64 { return s.spent + s.running }

// begin clears what the last round left.
func (s *share) begin() {
	s.seen, s.running, s.held, s.wants, s.job = false, 0, 0, 0, nil
	for _, kid := range s.kids {
		kid.begin()
	}
}

// settle forgets who has no work, lets who is new begin where the least of the
// others stands, and keeps leads and arrears within bounds. A slice is what a job
// spends until another can be admitted in its stead.
func (s *share) settle(slice float64, fresh map[*share]bool) {
	maps.DeleteFunc(s.kids, func(_ string, kid *share) bool { return !kid.seen })
	first, any := 0.0, false
	for _, kid := range s.kids {
		if !fresh[kid] && (!any || kid.spent < first) {
			first, any = kid.spent, true
		}
	}
	for _, kid := range s.kids {
		if fresh[kid] {
			kid.spent = first
		}
	}
	// Those who wait for admission say where the tree stands: who has all that it
	// asks for is owed nothing.
	least, waiting := 0.0, false
	for _, kid := range s.kids {
		if kid.wants > 0 && (!waiting || kid.spent < least) {
			least, waiting = kid.spent, true
		}
	}
	for _, kid := range s.kids {
		if waiting {
			kid.spent = min(kid.spent, least+mostLead*slice/kid.weight)
			kid.spent = max(kid.spent, least-mostArrears*slice/kid.weight)
		}
		kid.settle(slice, fresh)
	}
}

// below returns the kids that fit, in the order of their names, so that all
// schedulers decide alike.
func (s *share) below(fits func(*share) bool) []*share {
	var all []*share
	for _, name := range slices.Sorted(maps.Keys(s.kids)) {
		if kid := s.kids[name]; fits(kid) {
			all = append(all, kid)
		}
	}
	return all
}

// lowest returns the path to the job whose turn it is among those that wait, nil
// if none does. Blocked shares are passed over.
func (s *share) lowest(blocked func(*share) bool) []*share {
	if s.job != nil {
		return []*share{s}
	}
	kids := s.below(func(kid *share) bool { return kid.wants > 0 && !blocked(kid) })
	slices.SortStableFunc(kids, func(a, b *share) int { return byLevel(a, b) })
	for _, kid := range kids { // the first one, unless all below it is blocked
		if path := kid.lowest(blocked); path != nil {
			return append([]*share{s}, path...)
		}
	}
	return nil
}

// highest returns the path to the job that is first to yield.
func (s *share) highest() []*share {
	if s.job != nil {
		return []*share{s}
	}
	kids := s.below(func(kid *share) bool { return kid.held > 0 })
	if len(kids) == 0 {
		return nil
	}
	return append([]*share{s}, slices.MaxFunc(kids, byLevel).highest()...)
}

func byLevel(a, b *share) int {
	switch {
	case a.level() < b.level():
		return -1
	case a.level() > b.level():
		return 1
	}
	return 0
}

// swap finds an admitted job whose next slice is due to another: the paths to the
// admitted job, and to the one that waits.
func (s *share) swap(blocked func(*share) bool) (holder, next []*share) {
	waits := s.below(func(kid *share) bool { return kid.wants > 0 && !blocked(kid) })
	holds := s.below(func(kid *share) bool { return kid.held > 0 })
	if len(waits) > 0 && len(holds) > 0 {
		low, high := slices.MinFunc(waits, byLevel), slices.MaxFunc(holds, byLevel)
		if low != high && low.level() < high.level() {
			if next = low.lowest(blocked); next != nil {
				return append([]*share{s}, high.highest()...), append([]*share{s}, next...)
			}
		}
	}
	for _, kid := range waits {
		if kid.held == 0 || kid.job != nil {
			continue
		}
		if holder, next = kid.swap(blocked); holder != nil {
			return append([]*share{s}, holder...), append([]*share{s}, next...)
		}
	}
	return nil, nil
}
