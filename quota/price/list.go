// Package price says what Google's quotas are and what calls cost: dated and sourced
// price lists, an operator's changes to them, and budgets of a day.
//
// Google changes limits and prices, and projects of different ages live under
// different lists, so they are data: YAML files in the folder lists. Each value says
// where it comes from and whether it was seen on Google's own page. A list is never
// changed after it was made: what an operator sets makes a copy.
package price

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed lists/*.yaml
var builtIn embed.FS

// The limits that every price list has. It may have more of the form user-NAME or
// project-NAME, for instance a user-burst of some seconds.
const (
	UserMinute    = "user-minute"
	ProjectMinute = "project-minute"
)

// MaxUnits bounds limits and costs: a ledger counts in 32 bits, and its scripts must
// stay exact.
const MaxUnits = 1<<31 - 1

// maxPeriod is the longest window that a ledger keeps.
const maxPeriod = 4 * time.Minute

// A List is a dated, sourced table of the limits and costs of one of Google's APIs. It
// is safe for concurrent use.
type List struct {
	Name    string            `yaml:"name" json:"name"`
	API     string            `yaml:"api" json:"api"` // "gmail" or "calendar"
	Date    string            `yaml:"date" json:"date"`
	Sources map[string]Source `yaml:"sources" json:"sources"` // values name theirs; "docs" if they do not
	Limits  map[string]Limit  `yaml:"limits" json:"limits"`
	Billing map[string]Amount `yaml:"billing,omitempty" json:"billing,omitempty"`
	Costs   map[string]Cost   `yaml:"costs" json:"costs"` // by method id, for instance "gmail.users.messages.get"

	mostExpensive int64
}

var limitName = regexp.MustCompile(`^(user|project)-[a-z0-9]+$`)

// Source says where values come from, and when they were looked up.
type Source struct {
	URL  string `yaml:"url" json:"url"`
	Date string `yaml:"date" json:"date"`
}

// Limit is an amount of units that Google lets through in a period.
type Limit struct {
	Units    int64         `yaml:"units" json:"units"`
	Per      string        `yaml:"per" json:"per"` // "user" or "project"
	Period   time.Duration `yaml:"period" json:"period"`
	Source   string        `yaml:"source,omitempty" json:"source,omitempty"`
	Verified bool          `yaml:"verified" json:"verified"`
	Note     string        `yaml:"note,omitempty" json:"note,omitempty"`
}

// Amount is a figure that binds nothing by itself.
type Amount struct {
	Units    int64  `yaml:"units" json:"units"`
	Source   string `yaml:"source,omitempty" json:"source,omitempty"`
	Verified bool   `yaml:"verified" json:"verified"`
	Note     string `yaml:"note,omitempty" json:"note,omitempty"`
}

// Cost is what one call of a method costs.
type Cost struct {
	Units         int64            `yaml:"units" json:"units"`
	Formats       map[string]int64 `yaml:"formats,omitempty" json:"formats,omitempty"` // where the format changes it
	DefaultFormat string           `yaml:"default_format,omitempty" json:"default_format,omitempty"`
	Source        string           `yaml:"source,omitempty" json:"source,omitempty"`
	Verified      bool             `yaml:"verified" json:"verified"`
	Note          string           `yaml:"note,omitempty" json:"note,omitempty"`
}

// Names returns the names of the built-in price lists, sorted.
func Names() []string {
	entries, err := builtIn.ReadDir("lists")
	if err != nil {
		return nil // the folder is part of the binary
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return names
}

// Load returns a built-in price list by its name.
func Load(name string) (*List, error) {
	data, err := builtIn.ReadFile("lists/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("unknown price list %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return Parse(data)
}

// Parse reads a price list from YAML. Unknown keys are errors, and all that
// is wrong is reported at once.
func Parse(data []byte) (*List, error) {
	var list List
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("read price list: %w", err)
	}
	if err := list.validate(); err != nil {
		return nil, fmt.Errorf("price list %q: %w", list.Name, err)
	}
	return &list, nil
}

func (l *List) validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if l.Name == "" {
		bad("name: missing")
	}
	if l.API != "gmail" && l.API != "calendar" {
		bad("api: %q is neither gmail nor calendar", l.API)
	}
	if _, err := time.Parse(time.DateOnly, l.Date); err != nil {
		bad("date: %q is not of the form 2006-01-02", l.Date)
	}
	if len(l.Costs) == 0 {
		bad("costs: none")
	}
	source := func(key, name string) {
		if name == "" {
			name = "docs"
		}
		if _, ok := l.Sources[name]; !ok {
			bad("%s: source %q is not among sources", key, name)
		}
	}
	for _, name := range []string{UserMinute, ProjectMinute} {
		if _, ok := l.Limits[name]; !ok {
			bad("limits.%s: missing", name)
		}
	}
	for name, limit := range l.Limits {
		key := "limits." + name
		minute := name == UserMinute || name == ProjectMinute
		if !limitName.MatchString(name) || name == ProjectDay {
			bad("%s: a limit is named user-NAME or project-NAME, and a day is a budget", key)
		}
		if limit.Units < 1 || limit.Units > MaxUnits {
			bad("%s.units: %d is not from 1 to %d", key, limit.Units, MaxUnits)
		}
		if want, _, _ := strings.Cut(name, "-"); limit.Per != want {
			bad("%s.per: %q, want %q", key, limit.Per, want)
		}
		if minute && limit.Period != time.Minute {
			bad("%s.period: %s, want 1m", key, limit.Period)
		}
		if limit.Period < time.Second || limit.Period > maxPeriod || limit.Period%time.Second != 0 {
			bad("%s.period: %s is not a number of seconds up to %s", key, limit.Period, maxPeriod)
		}
		source(key, limit.Source)
	}
	for method, cost := range l.Costs {
		key := "costs." + method
		if !strings.HasPrefix(method, l.API+".") {
			bad("%s: not a method of %s", key, l.API)
		}
		for _, units := range append(slices.Collect(maps.Values(cost.Formats)), cost.Units) {
			if units < 1 || units > MaxUnits {
				bad("%s: %d units are not from 1 to %d", key, units, MaxUnits)
			}
			l.mostExpensive = max(l.mostExpensive, units)
		}
		if cost.DefaultFormat != "" && cost.Formats[cost.DefaultFormat] == 0 {
			bad("%s.default_format: %q is not among its formats", key, cost.DefaultFormat)
		}
		source(key, cost.Source)
	}
	return errors.Join(problems...)
}
