package scheduler

import (
	"cmp"
	"math"

	"headroom/jobs"
)

// A round decides on the admissions of one project's backfills.
type round struct {
	root     *share
	slice    float64
	capacity int // jobs that may be admitted at once
	admitted int // jobs that are, those that yield included
	waiting  int // jobs that wait for admission

	perTenant int            // jobs of one tenant that may be admitted
	tenants   map[string]int // jobs admitted by tenant, without those that yield
	yielding  []*jobs.Candidate
	changes   []change
}

// decide returns the changes that are due among a project's backfills. Spent is what
// each has spent since the last round.
func (a *Admission) decide(project string, candidates []jobs.Candidate, spent map[string]int64) []change {
	capacity, ok := a.opts.Capacity[project]
	if !ok {
		capacity = unknownCapacity
	}
	root := a.roots[project]
	if root == nil {
		root = &share{}
		a.roots[project] = root
	}
	r := &round{
		root: root, slice: max(1, float64(capacity.Slice)), capacity: max(1, capacity.Jobs),
		perTenant: cmp.Or(a.opts.PerTenant, math.MaxInt), tenants: map[string]int{},
	}
	r.build(candidates, spent, a.opts.Weights)
	r.fill()
	r.reclaim()
	r.keep()
	a.metrics.taken.WithLabelValues(project).Set(float64(r.admitted))
	a.metrics.waiting.WithLabelValues(project).Set(float64(r.waiting))
	return r.changes
}

// build brings the tree up to date: who has work, what it has spent, which jobs are
// admitted.
func (r *round) build(candidates []jobs.Candidate, spent map[string]int64, weights Weights) {
	r.root.begin()
	r.root.weight = 1
	fresh := map[*share]bool{}
	for i := range candidates {
		c := &candidates[i]
		path := []*share{r.root}
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
			s.running += r.slice / s.weight
			if c.Admission == jobs.Admitted {
				s.held++
			}
		}
		if c.Admission == jobs.NotAdmitted {
			continue
		}
		r.admitted++
		if c.Admission == jobs.Admitted {
			r.tenants[c.Tenant]++
		} else {
			r.yielding = append(r.yielding, c)
		}
	}
	r.waiting = r.root.wants
	r.root.settle(r.slice, fresh)
}

// blocked reports whether a tenant has as many admitted jobs as it may.
func (r *round) blocked(s *share) bool { return s.tenant && r.tenants[s.name] >= r.perTenant }

// admit counts the job at the end of a path, which waited, as admitted.
func (r *round) admit(path []*share) *jobs.Candidate {
	job := path[len(path)-1].job
	for _, s := range path {
		s.wants--
		s.running += r.slice / s.weight
	}
	r.tenants[job.Tenant]++
	return job
}

// fill admits as many jobs as there is capacity for.
func (r *round) fill() {
	for r.admitted < r.capacity {
		path := r.root.lowest(r.blocked)
		if path == nil {
			return
		}
		job := r.admit(path)
		r.admitted++
		r.waiting--
		r.changes = append(r.changes, change{job.Job, jobs.NotAdmitted, jobs.Admitted})
	}
}

// reclaim finds the jobs that must yield because the next slice is due to another, or
// because more are admitted than may be.
func (r *round) reclaim() {
	kept := r.admitted - len(r.yielding)
	for range min(len(r.yielding), max(0, r.capacity-kept)) { // their successors are as good as admitted
		path := r.root.lowest(r.blocked)
		if path == nil {
			break
		}
		r.admit(path)
	}
	for {
		holder, next := r.root.swap(r.blocked)
		if holder == nil {
			break
		}
		r.yield(holder)
		r.admit(next)
	}
	for kept = r.root.held; kept > r.capacity; kept-- {
		r.yield(r.root.highest())
	}
	for _, class := range r.root.kids {
		for _, tenant := range class.kids {
			for r.tenants[tenant.name] > r.perTenant && tenant.held > 0 {
				r.yield(append([]*share{r.root, class}, tenant.highest()...))
			}
		}
	}
}

// yield has the job at the end of a path yield.
func (r *round) yield(path []*share) {
	job := path[len(path)-1].job
	for _, s := range path {
		s.held--
	}
	r.tenants[job.Tenant]--
	r.changes = append(r.changes, change{job.Job, jobs.Admitted, jobs.Yielding})
}

// keep lets jobs that yield stay admitted if nobody waits any more.
func (r *round) keep() {
	if len(r.changes) > 0 || r.waiting > 0 || r.admitted > r.capacity {
		return
	}
	for _, job := range r.yielding {
		if r.tenants[job.Tenant] < r.perTenant {
			r.tenants[job.Tenant]++
			r.changes = append(r.changes, change{job.Job, jobs.Yielding, jobs.Admitted})
		}
	}
}
