package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/internal/service"
	"headroom/jobs"
)

// An AdmissionStore knows the backfills and which of them are admitted.
type AdmissionStore interface {
	// Candidates returns all live backfills, the oldest first.
	Candidates(ctx context.Context) ([]jobs.Candidate, error)
	// SetAdmission changes a job's admission and returns its row. The error is
	// jobs.ErrStale when it has another admission than from by now.
	SetAdmission(ctx context.Context, id string, from, to jobs.Admission) (jobs.Job, error)
}

// Capacity is what a project can feed.
type Capacity struct {
	Jobs  int   // backfills admitted at once
	Slice int64 // units that a slice spends, about
}

// unknownCapacity is that of a project which the settings do not name: its jobs are to
// run, so that they report the error.
var unknownCapacity = Capacity{Jobs: 20, Slice: 1000}

// AdmissionOptions configures [NewAdmission]. Store, Queue, Log and Registerer are
// required.
type AdmissionOptions struct {
	Store     AdmissionStore
	Queue     Putter
	Capacity  map[string]Capacity // by project
	Weights   Weights
	PerTenant int           // jobs of a tenant that a project may admit at once; 0: as many as its share comes to
	Tick      time.Duration // between two rounds; [DefaultAdmissionTick] if zero

	NowFunc func() time.Time // the clock that rows are compared with; time.Now if nil

	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// DefaultAdmissionTick is the time between two rounds. When an admitted job ends, its
// successor is admitted after that time at the latest.
const DefaultAdmissionTick = 250 * time.Millisecond

// Admission admits backfills: only admitted backfills have a task. It is a deficit round
// robin over priority classes, tenants, accounts and jobs, in units of quota. Whoever
// has spent least for its weight is next. While nobody waits, a job stays admitted from
// slice to slice; otherwise it yields when its slice ends, if the next one is due to
// another job.
//
// What was spent is remembered from round to round only, so that a scheduler that
// starts owes nobody anything. Several may run: each change is made once.
type Admission struct {
	opts    AdmissionOptions
	metrics *admissionMetrics
	roots   map[string]*share // by project
	units   map[string]int64  // that jobs had spent at the last round
}

// NewAdmission returns an Admission that does nothing until [Admission.Run].
func NewAdmission(o AdmissionOptions) (*Admission, error) {
	if err := service.CheckOptions("scheduler: admission", o, "Store", "Queue", "Log", "Registerer"); err != nil {
		return nil, err
	}
	o.Tick = cmp.Or(o.Tick, DefaultAdmissionTick)
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	o.Log = o.Log.Named("admission")
	return &Admission{opts: o, metrics: newAdmissionMetrics(o.Registerer), roots: map[string]*share{}, units: map[string]int64{}}, nil
}

// Run admits backfills until ctx ends, see [service.Loop]. If rounds take long, they
// become rarer.
func (a *Admission) Run(ctx context.Context) error {
	return service.Loop{
		Name: "admit backfills", Timeout: DefaultTimeout, RoundFunc: a.look,
		WaitFunc: func(took time.Duration) time.Duration {
			if took < 0 {
				return 0
			}
			return max(a.opts.Tick, 8*took)
		},
		Failed: a.metrics.errors, Seconds: a.metrics.seconds, Log: a.opts.Log,
	}.Run(ctx)
}

// look looks at all backfills and changes the admissions that are due.
func (a *Admission) look(ctx context.Context) error {
	all, err := a.opts.Store.Candidates(ctx)
	if err != nil {
		return fmt.Errorf("list backfills: %w", err)
	}
	spent := a.spentBy(all)
	projects := map[string][]jobs.Candidate{}
	for name := range a.roots {
		projects[name] = nil // those whose work is over have their metrics set to 0
	}
	now := a.opts.NowFunc()
	for _, c := range all {
		// A job that waits for a moment is a candidate again then.
		if !c.WaitUntil.After(now) {
			projects[c.Project] = append(projects[c.Project], c)
		} else if projects[c.Project] == nil {
			projects[c.Project] = []jobs.Candidate{}
		}
	}
	var failed failures
	for name, candidates := range projects {
		changes := a.decide(name, candidates, spent)
		for _, change := range changes {
			if err := a.apply(ctx, name, change); err != nil {
				failed.add(err)
			}
		}
		if candidates == nil {
			delete(a.roots, name)
		}
	}
	return failed.err()
}

// spentBy is what each job has spent since the last round, and remembers what all
// have.
func (a *Admission) spentBy(all []jobs.Candidate) map[string]int64 {
	spent, units := map[string]int64{}, make(map[string]int64, len(all))
	for _, c := range all {
		before, known := a.units[c.Job]
		if known && c.Units > before {
			spent[c.Job] = c.Units - before
		}
		units[c.Job] = c.Units
	}
	a.units = units
	return spent
}

// A change is one of a job's admission.
type change struct {
	job      string
	from, to jobs.Admission
}

// apply makes a change, and puts the task of a job that was admitted.
func (a *Admission) apply(ctx context.Context, project string, c change) error {
	job, err := a.opts.Store.SetAdmission(ctx, c.job, c.from, c.to)
	if errors.Is(err, jobs.ErrStale) || errors.Is(err, jobs.ErrNotFound) {
		return nil // it moved on meanwhile, or another scheduler was faster
	}
	if err != nil {
		return fmt.Errorf("admission of job %s: %w", c.job, err)
	}
	if c.from != jobs.NotAdmitted {
		return nil
	}
	a.metrics.admitted.WithLabelValues(project).Inc()
	if err := a.opts.Queue.Put(ctx, job.Ref()); err != nil {
		return fmt.Errorf("put job %s, which was admitted: %w; the rescue does it", c.job, err)
	}
	return nil
}
