package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"headroom/jobs"
	"headroom/scheduler"
)

// yard is a store and a queue whose workers spend: a job that has a place works in
// slices of sliceTime, and spends rate units a second in them.
type yard struct {
	mu      sync.Mutex
	order   []string
	rows    map[string]*yardJob
	atWork  int // now
	most    int
	started map[string]time.Time // when a tenant first worked
	ended   map[string]time.Time // when its work was over
	last    map[string]time.Time // when it last ended a slice
	gap     map[string]time.Duration
	work    sync.WaitGroup
}

type yardJob struct {
	jobs.Candidate
	left int64
}

const (
	sliceTime = 2 * time.Second
	rate      = 100 // units a second, of a slice that nobody slows
)

func newYard() *yard {
	return &yard{rows: map[string]*yardJob{}, started: map[string]time.Time{}, ended: map[string]time.Time{},
		last: map[string]time.Time{}, gap: map[string]time.Duration{}}
}

// add adds mailboxes of a tenant, each with so many units of work.
func (y *yard) add(tenant, class string, mailboxes int, units int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for n := range mailboxes {
		account := fmt.Sprintf("%s-%d", tenant, n)
		id := jobs.BackfillID(account)
		y.order = append(y.order, id)
		y.rows[id] = &yardJob{jobs.Candidate{Job: id, Account: account, Project: "p", Tenant: tenant, Class: class, Admission: jobs.NotAdmitted}, units}
	}
}

func (y *yard) Candidates(context.Context) ([]jobs.Candidate, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	var all []jobs.Candidate
	for _, id := range y.order {
		if j := y.rows[id]; j.left > 0 {
			all = append(all, j.Candidate)
		}
	}
	return all, nil
}

func (y *yard) SetAdmission(_ context.Context, id string, from, to jobs.Admission) (jobs.Job, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	j := y.rows[id]
	if j.left <= 0 || j.Admission != from {
		return jobs.Job{}, jobs.ErrStale
	}
	j.Admission = to
	return jobs.Job{ID: id, Kind: jobs.MailBackfill}, nil
}

// Put starts a job's slices; they go on until its work or its place is gone.
func (y *yard) Put(ctx context.Context, ref jobs.TaskRef) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	j := y.rows[ref.Job]
	y.atWork++
	y.most = max(y.most, y.atWork)
	if y.started[j.Tenant].IsZero() {
		y.started[j.Tenant], y.last[j.Tenant] = time.Now(), time.Now()
	}
	y.work.Go(func() {
		for again := true; again; {
			time.Sleep(sliceTime) // of the bubble's clock
			again = y.endSlice(j)
		}
	})
	return nil
}

func (y *yard) endSlice(j *yardJob) (again bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	spent := min(j.left, int64(rate*sliceTime/time.Second))
	j.left -= spent
	j.Units += spent
	y.gap[j.Tenant] = max(y.gap[j.Tenant], time.Since(y.last[j.Tenant]))
	y.last[j.Tenant], y.ended[j.Tenant] = time.Now(), time.Now()
	switch {
	case j.left <= 0:
	case j.Admission == jobs.Yielding:
		j.Admission = jobs.NotAdmitted
	default:
		return true
	}
	y.atWork--
	return false
}

// units is what a tenant has spent.
func (y *yard) units(tenant string) (sum int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, j := range y.rows {
		if j.Tenant == tenant {
			sum += j.Units
		}
	}
	return sum
}

// seen is a copy of what a tenant's work came to.
func (y *yard) seen(tenant string) (started, ended time.Time, gap time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.started[tenant], y.ended[tenant], y.gap[tenant]
}

// crowded is the most that were at work at once.
func (y *yard) crowded() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.most
}

// admit runs the admission over the yard in a bubble while do runs.
func (y *yard) admit(t *testing.T, o scheduler.AdmissionOptions, do func()) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Store, o.Queue, o.Log, o.Registerer = y, y, zaptest.NewLogger(t), prometheus.NewRegistry()
		a, err := scheduler.NewAdmission(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		})
		do()
		cancel()
		running.Wait()
		y.mu.Lock()
		for _, j := range y.rows { // so that the workers end
			j.left = 0
		}
		y.mu.Unlock()
		y.work.Wait()
	})
}

func capacity(places int) map[string]scheduler.Capacity {
	return map[string]scheduler.Capacity{"p": {Jobs: places, Slice: int64(rate * sliceTime / time.Second)}}
}

func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// A tenant with forty mailboxes has all places when ten tenants with one each
// come: from then on, all of them come by the same.
func TestALargeTenantDoesNotHoldUpSmallOnes(t *testing.T) {
	y := newYard()
	y.add("large", "", 40, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(6)}, func() {
		time.Sleep(time.Minute)
		if got := y.units("large"); got < 6*rate*55 {
			t.Errorf("alone, the large tenant spent %d units in a minute, want nearly all of six places", got)
		}
		before := y.units("large")
		came := time.Now()
		for n := range 10 {
			y.add(fmt.Sprint("small-", n), "", 1, 10_000)
		}
		time.Sleep(100 * time.Second)
		shares := []float64{float64(y.units("large") - before)}
		for n := range 10 {
			tenant := fmt.Sprint("small-", n)
			shares = append(shares, float64(y.units(tenant)))
			started, _, _ := y.seen(tenant)
			if late := started.Sub(came); late > 4*sliceTime {
				t.Errorf("%s waited %s for its first slice", tenant, late)
			}
		}
		if j := jain(shares); j < 0.98 {
			t.Errorf("Jain's index of %v is %.3f, want 0.98 at least", shares, j)
		}
		time.Sleep(2 * time.Minute)
		for n := range 10 {
			// A tenth of 600 units a second less what the large one has: 10,000 units
			// take an eleventh of the project 183 s.
			tenant := fmt.Sprint("small-", n)
			_, ended, _ := y.seen(tenant)
			if took := ended.Sub(came); y.units(tenant) < 10_000 || took > 215*time.Second {
				t.Errorf("%s has spent %d units, the last after %s", tenant, y.units(tenant), took)
			}
		}
		if _, _, gap := y.seen("large"); gap > 8*sliceTime {
			t.Errorf("the large tenant stood still for %s", gap)
		}
		if n := y.crowded(); n > 6 {
			t.Errorf("%d at work at once, and there are 6 places", n)
		}
	})
}

func TestWeightsOfClassesAndTenants(t *testing.T) {
	y := newYard()
	y.add("a", "", 10, 1_000_000)
	y.add("b", "", 10, 1_000_000)
	y.add("c", "urgent", 10, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(8), Weights: scheduler.Weights{
		Classes: map[string]float64{"urgent": 3}, Tenants: map[string]float64{"b": 4},
	}}, func() {
		time.Sleep(10 * time.Minute)
		// Three quarters for the class; of the rest, four fifths for b.
		all := float64(y.units("a") + y.units("b") + y.units("c"))
		for tenant, want := range map[string]float64{"a": 0.05, "b": 0.2, "c": 0.75} {
			if got := float64(y.units(tenant)) / all; math.Abs(got-want) > 0.03 {
				t.Errorf("tenant %s has %.3f of all, want %.2f", tenant, got, want)
			}
		}
	})
}

func TestATenantsClassIsThatOfItsAccounts(t *testing.T) {
	y := newYard()
	y.add("a", "", 10, 1_000_000)
	y.add("b", "", 10, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(8), Weights: scheduler.Weights{
		Classes: map[string]float64{"slow": 0.25}, TenantClass: map[string]string{"b": "slow"},
	}}, func() {
		time.Sleep(10 * time.Minute)
		if got := float64(y.units("b")) / float64(y.units("a")+y.units("b")); math.Abs(got-0.2) > 0.03 {
			t.Errorf("tenant b has %.3f of all, want a fifth", got)
		}
	})
}

func TestTheAccountsOfATenantTakeTurns(t *testing.T) {
	y := newYard()
	y.add("a", "", 9, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(2)}, func() {
		time.Sleep(10 * time.Minute)
		var each []float64
		y.mu.Lock()
		defer y.mu.Unlock()
		for _, id := range y.order {
			each = append(each, float64(y.rows[id].Units))
		}
		if j := jain(each); j < 0.98 {
			t.Errorf("Jain's index of %v is %.3f, want 0.98 at least", each, j)
		}
	})
}

func TestPlacesPerTenantAreBounded(t *testing.T) {
	y := newYard()
	y.add("a", "", 10, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(8), PerTenant: 3}, func() {
		time.Sleep(time.Minute)
		if n := y.crowded(); n != 3 {
			t.Errorf("%d at work at once, want 3: the tenant's bound", n)
		}
	})
}

// A job that waits for a moment has no place, and who comes back after an hour is
// owed nothing for it.
func TestWhoWaitsForAMomentIsOutOfTheRunning(t *testing.T) {
	y := newYard()
	y.add("a", "", 5, 10_000_000)
	y.add("b", "", 5, 10_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(4)}, func() {
		y.mu.Lock()
		for _, j := range y.rows {
			if j.Tenant == "b" {
				j.WaitUntil = time.Now().Add(time.Hour)
			}
		}
		y.mu.Unlock()
		time.Sleep(time.Hour)
		if got := y.units("b"); got != 0 {
			t.Errorf("b spent %d units while it waited", got)
		}
		before := y.units("a")
		time.Sleep(5 * time.Minute)
		a, b := float64(y.units("a")-before), float64(y.units("b"))
		if j := jain([]float64{a, b}); j < 0.99 {
			t.Errorf("after the hour a spent %v and b %v, want the same", a, b)
		}
	})
}

func TestNobodyYieldsWithoutNeed(t *testing.T) {
	y := newYard()
	y.add("a", "", 4, 1_000_000)
	y.admit(t, scheduler.AdmissionOptions{Capacity: capacity(8)}, func() {
		time.Sleep(time.Minute)
		y.mu.Lock()
		defer y.mu.Unlock()
		for _, j := range y.rows {
			if j.Admission != jobs.Admitted {
				t.Errorf("%s is at %q, and nobody waits", j.Job, j.Admission)
			}
			if j.Units < 55*rate {
				t.Errorf("%s spent %d units in a minute", j.Job, j.Units)
			}
		}
	})
}
