package control

import (
	"fmt"
	"maps"
	"slices"

	"headroom/config"
	"headroom/quota"
	"headroom/quota/price"
)

// Projects turns the settings' Google Cloud projects into the ledger's. It
// returns a *[config.InvalidError] with every price list, limit or method that
// does not exist.
func Projects(cfg config.Config) (map[string]quota.Project, error) {
	projects := make(map[string]quota.Project, len(cfg.Google.Projects))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Google.Projects)) {
		p, key := cfg.Google.Projects[name], "google.projects."+name
		project := quota.Project{Mode: p.Mode, Changes: laneChanges(p.Lanes)}
		for _, listName := range p.Prices {
			list, err := price.Load(listName)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s.prices: %w", key, err))
				continue
			}
			list, errs := withLimits(list, p.Limits[listName], key+".limits."+listName)
			problems = append(problems, errs...)
			list, errs = withCosts(list, p.Costs[listName], key+".costs."+listName)
			problems = append(problems, errs...)
			project.Lists = append(project.Lists, list)
			budget, errs := budgetOf(list, p.Budget[listName], key+".budget."+listName)
			problems = append(problems, errs...)
			if budget.Units > 0 {
				project.Budgets = append(project.Budgets, budget)
			}
		}
		if err := project.CheckRoom(nil); err != nil && len(problems) == 0 {
			for _, problem := range unjoined(err) {
				problems = append(problems, fmt.Errorf("%s: %w", key, problem))
			}
		}
		projects[name] = project
	}
	if len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	return projects, nil
}

// unjoined takes apart what errors.Join has put together.
func unjoined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// withLimits replaces limits of a price list. Problems name their key.
func withLimits(list *price.List, limits config.Limits, key string) (*price.List, []error) {
	var problems []error
	for _, l := range []struct {
		limit, key string
		units      int64
	}{
		{price.UserMinute, "user_minute", limits.UserMinute},
		{price.ProjectMinute, "project_minute", limits.ProjectMinute},
	} {
		if l.units == 0 {
			continue
		}
		if changed, err := list.WithLimit(l.limit, l.units); err != nil {
			problems = append(problems, fmt.Errorf("%s.%s: %w", key, l.key, err))
		} else {
			list = changed
		}
	}
	return list, problems
}

// withCosts replaces costs of a price list. Problems name their key.
func withCosts(list *price.List, costs config.Costs, key string) (*price.List, []error) {
	var problems []error
	for _, method := range slices.Sorted(maps.Keys(costs)) {
		units := costs[method].Formats
		if units == nil {
			units = map[string]int64{"": costs[method].Units}
		}
		for _, format := range slices.Sorted(maps.Keys(units)) {
			if changed, err := list.WithCost(method, format, units[format]); err != nil {
				problems = append(problems, fmt.Errorf("%s.%s: %w", key, method, err))
			} else {
				list = changed
			}
		}
	}
	return list, problems
}

// GmailList is the price list of a project for Gmail; nil without one.
func GmailList(p quota.Project) *price.List {
	for _, list := range p.Lists {
		if list.API == "gmail" {
			return list
		}
	}
	return nil
}
