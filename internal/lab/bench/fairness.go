package bench

import (
	"context"
	"fmt"
	"time"
)

const fairnessBound = 8 * time.Minute

// What fairness should come to.
const (
	minJain     = 0.95
	maxSlowdown = 1.5
)

// FairnessFigures are what fairness measured: how small tenants fare that start
// while a large tenant uses all of a project's quota.
type FairnessFigures struct {
	Bench string `json:"bench"`
	TenantsReport
	Targets
	Seconds float64 `json:"seconds"`
}

// TenantsReport is what became of the tenants' backfills.
type TenantsReport struct {
	// Jain is Jain's index over the units that the fake admitted of each tenant
	// while all had work: 1 when all have the same, 1/n when one has all.
	Jain float64 `json:"jain_index"`
	// Slowdown is the most of the small tenants' times from start to end, over what
	// each one's units would take alone at an equal part of what the project's
	// limit leaves to backfills.
	Slowdown float64 `json:"small_slowdown_max"`
	// Stalled is the longest time in which nothing of the large tenant was stored
	// while all had work.
	Stalled float64 `json:"large_stalled_s_max"`

	Tenants     int              `json:"tenants"`
	Overlap     float64          `json:"all_have_work_s"`
	Units       map[string]int64 `json:"units_by_tenant"` // while all had work
	LargeShare  float64          `json:"large_share"`     // of them
	Utilization float64          `json:"utilization"`     // of what the project leaves to backfills, while all had work
	MostPlaces  int              `json:"most_places"`     // held at once
	Places      int              `json:"places"`
	Messages    int64            `json:"messages"`
	Stored      int64            `json:"stored"`
	Refused     int64            `json:"refused_by_google"`
	Scale       int              `json:"scale"`
}

// manyTenants is what the benchmark measures.
var manyTenants = tenants{
	scale: 10, userLimit: 6000, users: 5, slice: time.Second,
	largeBoxes: 40, largeMessages: 500, small: 10, smallMessages: 500, later: 10 * time.Second,
}

// Broken implements [Figures].
func (f *FairnessFigures) Broken() string {
	switch {
	case f.Tenants == 0:
		return "nothing was measured"
	case f.Stored != f.Messages:
		return fmt.Sprintf("%d of %d messages were stored", f.Stored, f.Messages)
	case f.Refused > 0:
		return fmt.Sprintf("Google refused %d calls", f.Refused)
	}
	return ""
}

func (f *FairnessFigures) judge() {
	f.require(f.Jain >= minJain, "jain_index is %v, aim at least %v", f.Jain, minJain)
	f.require(f.Slowdown <= maxSlowdown, "small_slowdown_max is %v, aim at most %v", f.Slowdown, maxSlowdown)
	f.conclude()
}

func fairness(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, fairnessBound)
	defer cancel()
	began := time.Now()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	f := &FairnessFigures{Bench: "fairness"}
	if f.TenantsReport, err = manyTenants.measure(ctx, o, redisURL); err != nil {
		return nil, err
	}
	f.judge()
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}
