package control

import (
	"fmt"
	"maps"

	"headroom/config"
	"headroom/quota/price"
)

// budgetOf is the day's budget of a price list: the settings' own, or else the units of a
// day that Google does not bill. No budget has 0 units.
func budgetOf(list *price.List, b config.Budget, key string) (price.Budget, []error) {
	budget := price.Budget{API: list.API, Hard: b.Hard, AtEnd: b.AtEnd, Ahead: config.DefaultAhead}
	if budget.AtEnd == "" {
		budget.AtEnd = price.AtEndPause
	}
	if b.Ahead != nil {
		budget.Ahead = *b.Ahead
	}
	switch free := freeUnits(list); {
	case b.DailyUnits != nil:
		budget.Units = *b.DailyUnits
	case free > 0:
		budget.Units = free
	case b != config.Budget{}:
		return price.Budget{}, []error{fmt.Errorf("%s: needs daily_units, since price list %s knows no day's units that Google does not bill", key, list.Name)}
	}
	return budget, nil
}

// WithBudgets returns settings that name the budgets which hold where they name
// none. Those of lists that do not exist stay as they are.
func WithBudgets(cfg config.Config) config.Config {
	cfg.Google.Projects = maps.Clone(cfg.Google.Projects)
	for name, p := range cfg.Google.Projects {
		p.Budget = maps.Clone(p.Budget)
		for _, listName := range p.Prices {
			list, err := price.Load(listName)
			if err != nil {
				continue
			}
			b, errs := budgetOf(list, p.Budget[listName], "")
			if b.Units == 0 || len(errs) > 0 {
				continue
			}
			if p.Budget == nil {
				p.Budget = map[string]config.Budget{}
			}
			p.Budget[listName] = config.Budget{DailyUnits: &b.Units, Hard: b.Hard, AtEnd: b.AtEnd, Ahead: &b.Ahead}
		}
		cfg.Google.Projects[name] = p
	}
	return cfg
}

// freeUnits is what Google does not bill of a project's day, 0 if the list does
// not know. The figure in Calendar's lists counts requests of a whole billing account.
func freeUnits(list *price.List) int64 {
	if list.API != "gmail" {
		return 0
	}
	return list.Billing[price.ProjectDay].Units
}
