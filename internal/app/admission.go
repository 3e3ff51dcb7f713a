package app

import (
	"math"

	"headroom/config"
	"headroom/quota"
	"headroom/quota/price"
	"headroom/scheduler"
)

// spare is how many more backfills are at work at once than a project's limit
// feeds at the speed of their users' limits: some of them always begin, end, or
// wait for something else than quota.
const spare = 1.2

// capacities is what the projects can feed. Without a bound of the settings', it is
// as many slices as use up the project's limit when each goes as fast as its user's
// limit allows: more would fight for it in the ledger, where shares count nothing.
func capacities(cfg config.Config, projects map[string]quota.Project, ledger *quota.Ledger) (map[string]scheduler.Capacity, error) {
	all := map[string]scheduler.Capacity{}
	for name, project := range projects {
		for _, list := range project.Lists {
			if list.API != "gmail" { // backfills are of mailboxes
				continue
			}
			ceiling := func(limit string) (float64, error) {
				rule, err := ledger.Rule(quota.Caller{Project: name, Lane: quota.Backfill}, list.API, limit)
				return rule.Ceiling * float64(list.Limits[limit].Units), err
			}
			user, err := ceiling(price.UserMinute)
			if err != nil {
				return nil, err
			}
			whole, err := ceiling(price.ProjectMinute)
			if err != nil {
				return nil, err
			}
			c := scheduler.Capacity{
				Jobs:  cfg.Fairness.Places,
				Slice: int64(min(user, whole) / 60 * cfg.Worker.Slice.Seconds() * float64(cfg.Scale)),
			}
			if c.Jobs == 0 {
				c.Jobs = int(math.Ceil(spare * whole / user))
			}
			all[name] = c
		}
	}
	return all, nil
}

// weights are the settings' shares.
func weights(f config.Fairness) scheduler.Weights {
	w := scheduler.Weights{Classes: map[string]float64{}, Tenants: map[string]float64{}, TenantClass: map[string]string{}}
	for name, class := range f.Classes {
		w.Classes[name] = class.Weight
	}
	for name, tenant := range f.Tenants {
		w.Tenants[name], w.TenantClass[name] = tenant.Weight, tenant.Class
	}
	return w
}
