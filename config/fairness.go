package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"headroom/jobs"
)

// Fairness sets how backfills share a project's quota.
type Fairness struct {
	Places          int               `yaml:"places"`            // backfills of a project that are admitted at once; 0: as many as its limits feed
	PlacesPerTenant int               `yaml:"places_per_tenant"` // of one tenant; 0: as many as the tenant's share comes to
	Classes         map[string]Class  `yaml:"classes"`           // of priority
	Tenants         map[string]Tenant `yaml:"tenants"`           // tenants that differ from the default
}

// Class is a priority class of accounts.
type Class struct {
	Weight float64 `yaml:"weight"` // of its share among the classes that have work; 0: 1
}

// Tenant is a customer. Its accounts share the tenant's part of the quota.
type Tenant struct {
	Weight float64 `yaml:"weight"` // of its share among the tenants of a class that have work; 0: 1
	Class  string  `yaml:"class"`  // of its accounts without a class of their own; "": [jobs.DefaultClass]
}

// groupName matches the name of a tenant or class.
var groupName = regexp.MustCompile(`^[^\s,=]{1,128}$`)

// HasClass reports whether a class exists.
func (f Fairness) HasClass(name string) bool {
	_, ok := f.Classes[name]
	return ok || name == jobs.DefaultClass
}

// ValidGroup reports whether a name is valid for a tenant or class.
func ValidGroup(name string) bool {
	return groupName.MatchString(name) && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (f Fairness) validate(p *problems) {
	p.check(f.Places >= 0 && f.Places <= 100_000, "fairness.places", "must be from 0 (as many as the limits feed) to 100000, not %d", f.Places)
	p.check(f.PlacesPerTenant >= 0 && f.PlacesPerTenant <= 100_000, "fairness.places_per_tenant",
		"must be from 0 (as many as the share comes to) to 100000, not %d", f.PlacesPerTenant)
	group := func(key, name string, weight float64) {
		p.check(ValidGroup(name), key, "the name must have 1 to 128 characters that can be seen, no space, comma or =")
		p.check(weight == 0 || weight >= 0.001 && weight <= 1000, key+".weight", "must be from 0.001 to 1000, or 0 for 1, not %v", weight)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Classes)) {
		group("fairness.classes."+name, name, f.Classes[name].Weight)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tenants)) {
		t := f.Tenants[name]
		group("fairness.tenants."+name, name, t.Weight)
		p.check(t.Class == "" || f.HasClass(t.Class), "fairness.tenants."+name+".class", "%q is not among fairness.classes", t.Class)
	}
}
