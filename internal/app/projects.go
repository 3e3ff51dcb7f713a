package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"headroom/config"
	"headroom/quota"
)

// Projects turns the settings' Google Cloud projects into the ledger's. It
// returns a *[config.InvalidError] with every price list or limit that does not
// exist.
func Projects(cfg config.Config) (map[string]quota.Project, error) {
	projects := make(map[string]quota.Project, len(cfg.Google.Projects))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Google.Projects)) {
		p := cfg.Google.Projects[name]
		project := quota.Project{Lanes: lanes(p.Lanes)}
		for _, list := range p.Prices {
			loaded, err := priceList(list, p.Limits[list])
			if err != nil {
				problems = append(problems, fmt.Errorf("google.projects.%s.prices: %w", name, err))
				continue
			}
			project.Lists = append(project.Lists, loaded)
		}
		projects[name] = project
	}
	if len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	return projects, nil
}

func priceList(name string, limits config.Limits) (*quota.PriceList, error) {
	list, err := quota.LoadList(name)
	if err != nil {
		return nil, err
	}
	for limit, units := range map[string]int64{
		quota.LimitUserMinute:    limits.UserMinute,
		quota.LimitProjectMinute: limits.ProjectMinute,
	} {
		if units == 0 {
			continue
		}
		if list, err = list.WithLimit(limit, units); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func lanes(l config.Lanes) map[quota.Lane]quota.LaneSettings {
	settings := maps.Clone(quota.DefaultLanes)
	for lane, from := range map[quota.Lane]config.Lane{
		quota.Interactive: l.Interactive, quota.Sync: l.Sync, quota.Backfill: l.Backfill,
	} {
		s := settings[lane]
		if from.Ceiling != nil {
			s.Ceiling = *from.Ceiling
		}
		if from.Pace != nil {
			s.Pace = *from.Pace
		}
		settings[lane] = s
	}
	return settings
}

// errNoProject is what a process that calls Google needs to be told.
func errNoProject() error {
	return &config.InvalidError{Problems: []error{errors.New(
		"google.projects: must name at least one Google Cloud project; docs/configuration.md shows how")}}
}
