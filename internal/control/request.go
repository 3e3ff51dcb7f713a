package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"headroom/quota"
	"headroom/quota/price"
)

// check finds the APIs to which a request applies, and refuses what the price
// lists do not allow.
func (r QuotaRequest) check(scope QuotaScope, project quota.Project) (apis []string, err error) {
	var lists []*price.List
	var names, limits []string
	for _, list := range project.Lists {
		names = append(names, fmt.Sprintf("%s (%s)", list.Name, list.API))
		if (r.API == "" || r.API == list.API) && (r.Prices == "" || r.Prices == list.Name) {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		wanted := r.Prices
		if wanted == "" {
			wanted = "of " + r.API
		}
		return nil, refusef("project %s has no price list %s; it has %s", scope.Project, wanted, strings.Join(names, ", "))
	}
	for _, list := range lists {
		has := limitsOf(list)
		limits = append(limits, has...)
		if r.Limit == "" || slices.Contains(has, r.Limit) {
			apis = append(apis, list.API)
			if err := r.checkEdits(scope, list); err != nil {
				return nil, err
			}
		}
	}
	if len(apis) == 0 {
		slices.Sort(limits)
		return nil, refusef("no limit %q here; there are %s", r.Limit, strings.Join(slices.Compact(limits), ", "))
	}
	return apis, nil
}

// limitsOf names the limits of a list that settings may be for.
func limitsOf(list *price.List) []string {
	var limits []string
	for name := range list.Limits {
		limits = append(limits, name)
	}
	if list.API == "gmail" {
		limits = append(limits, quota.LimitUserBytes)
	}
	return limits
}

func (r QuotaRequest) checkEdits(scope QuotaScope, list *price.List) error {
	seen := map[string]bool{}
	for _, e := range r.Edits {
		if seen[e.name()] {
			return refusef("%s is named twice", e.name())
		}
		seen[e.name()] = true
		switch {
		case e.Lane == "" && scope.Account != "":
			return refusef("a mode is for a whole project: headroom quota set %s %s=...", scope.Project, keyMode)
		case e.Lane == "" && scope.Limit != "":
			return refusef("a mode is for all limits; leave out --limit")
		case e.Lane == "" || e.Unset:
			continue
		}
		c := quota.Change{User: scope.Account, Lane: e.Lane, Limit: scope.Limit, Key: e.Key, Value: e.To}
		if err := c.Validate(list); err != nil {
			return refusef("%s=%v: %w", e.name(), e.To, err)
		}
	}
	return nil
}

// QuotaScope is what settings apply to.
type QuotaScope struct {
	Project string `json:"project"`
	Account string `json:"account,omitempty"` // all of the project's if empty
	Limit   string `json:"limit,omitempty"`   // all if empty

	mode quota.Mode // the project's own
}

// suffix is the scope within the project, after the name of a setting.
func (s QuotaScope) suffix() string {
	var b strings.Builder
	if s.Limit != "" {
		b.WriteString(" of " + s.Limit)
	}
	if s.Account != "" {
		b.WriteString(" for " + s.Account)
	}
	return b.String()
}

// scopeOf finds out whether target is a project or an account.
func (c *Control) scopeOf(ctx context.Context, target string) (QuotaScope, error) {
	if !strings.Contains(target, "@") {
		return QuotaScope{Project: target}, c.knownProject(target)
	}
	_, account, err := c.mayStart(ctx, target)
	if err != nil {
		return QuotaScope{}, err
	}
	return QuotaScope{Project: account.Project, Account: account.QuotaUser()}, nil
}
