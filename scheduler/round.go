package scheduler

import (
	"math"

	"headroom/jobs"
)

// A placer works out one project's places in one round.
type placer struct {
	root     *share
	slice    float64
	places   int // that there are
	taken    int // places that are held, those about to be yielded too
	waiting  int // jobs that wait for a place
	perTen   int
	tenants  map[string]int // places by tenant, those about to be yielded not
	yielding []*jobs.Candidate
	changes  []placing
}

// plan returns the changes that are due among a project's backfills. Spent is what
// each has spent since the last round.
func (a *Admission) plan(project string, candidates []jobs.Candidate, spent map[string]int64) []placing {
	capacity, ok := a.opts.Capacity[project]
	if !ok {
		capacity = unknownCapacity
	}
	root := a.roots[project]
	if root == nil {
		root = &share{}
		a.roots[project] = root
	}
	p := &placer{root: root, slice: max(1, float64(capacity.Slice)), places: max(1, capacity.Places), perTen: a.opts.PerTenant, tenants: map[string]int{}}
	if p.perTen == 0 {
		p.perTen = math.MaxInt
	}
	p.build(candidates, spent, a.opts.Weights)
	p.fill()
	p.reclaim()
	p.keep()
	a.metrics.taken.WithLabelValues(project).Set(float64(p.taken))
	a.metrics.waiting.WithLabelValues(project).Set(float64(p.waiting))
	return p.changes
}

// build brings the tree up to date: who has work, what it has spent, which places
// it holds.
func (p *placer) build(candidates []jobs.Candidate, spent map[string]int64, weights Weights) {
	p.root.begin()
	p.root.weight = 1
	fresh := map[*share]bool{}
	for i := range candidates {
		c := &candidates[i]
		path := []*share{p.root}
		down := func(name string, weight float64) *share {
			kid, isNew := path[len(path)-1].kid(name, weight)
			if isNew {
				fresh[kid] = true
			}
			path = append(path, kid)
			return kid
		}
		class := weights.classOf(*c)
		down(class, weight(weights.Classes, class))
		down(c.Tenant, weight(weights.Tenants, c.Tenant)).tenant = true
		down(c.Account, 1)
		down(c.Job, 1).job = c
		for _, s := range path {
			s.spent += float64(spent[c.Job]) / s.weight
			if c.Admission == jobs.NotAdmitted {
				s.wants++
				continue
			}
			s.running += p.slice / s.weight
			if c.Admission == jobs.Admitted {
				s.held++
			}
		}
		if c.Admission == jobs.NotAdmitted {
			continue
		}
		p.taken++
		if c.Admission == jobs.Admitted {
			p.tenants[c.Tenant]++
		} else {
			p.yielding = append(p.yielding, c)
		}
	}
	p.waiting = p.root.wants
	p.root.settle(p.slice, fresh)
}

// blocked reports whether a tenant has as many places as it may.
func (p *placer) blocked(s *share) bool { return s.tenant && p.tenants[s.name] >= p.perTen }

// give counts a place for the job at the end of a path, which waited for one.
func (p *placer) give(path []*share) *jobs.Candidate {
	job := path[len(path)-1].job
	for _, s := range path {
		s.wants--
		s.running += p.slice / s.weight
	}
	p.tenants[job.Tenant]++
	return job
}

// fill gives away the places that are free.
func (p *placer) fill() {
	for p.taken < p.places {
		path := p.root.lowest(p.blocked)
		if path == nil {
			return
		}
		job := p.give(path)
		p.taken++
		p.waiting--
		p.changes = append(p.changes, placing{job.Job, jobs.NotAdmitted, jobs.Admitted})
	}
}

// reclaim finds the places whose next slice is due to somebody else, and those
// beyond what there may be.
func (p *placer) reclaim() {
	kept := p.taken - len(p.yielding)
	for range min(len(p.yielding), max(0, p.places-kept)) { // they are as good as given
		path := p.root.lowest(p.blocked)
		if path == nil {
			break
		}
		p.give(path)
	}
	for {
		holder, next := p.root.swap(p.blocked)
		if holder == nil {
			break
		}
		p.yield(holder)
		p.give(next)
	}
	for kept = p.root.held; kept > p.places; kept-- {
		p.yield(p.root.highest())
	}
	for _, class := range p.root.kids {
		for _, tenant := range class.kids {
			for p.tenants[tenant.name] > p.perTen && tenant.held > 0 {
				p.yield(append([]*share{p.root, class}, tenant.highest()...))
			}
		}
	}
}

// yield asks the job at the end of a path for its place.
func (p *placer) yield(path []*share) {
	job := path[len(path)-1].job
	for _, s := range path {
		s.held--
	}
	p.tenants[job.Tenant]--
	p.changes = append(p.changes, placing{job.Job, jobs.Admitted, jobs.Yielding})
}

// keep lets jobs keep their places that nobody waits for any more.
func (p *placer) keep() {
	if len(p.changes) > 0 || p.waiting > 0 || p.taken > p.places {
		return
	}
	for _, job := range p.yielding {
		if p.tenants[job.Tenant] < p.perTen {
			p.tenants[job.Tenant]++
			p.changes = append(p.changes, placing{job.Job, jobs.Yielding, jobs.Admitted})
		}
	}
}
