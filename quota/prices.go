package quota

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

//go:embed prices/*.yaml
var priceFiles embed.FS

// The limits that every price list has. It may have more of the form user-NAME or
// project-NAME, for instance a user-burst of some seconds.
const (
	LimitUserMinute    = "user-minute"
	LimitProjectMinute = "project-minute"
)

// maxPeriod is the longest window that a ledger keeps.
const maxPeriod = 4 * time.Minute

// A PriceList is a dated, sourced table of the limits and costs of one of
// Google's APIs. Google changes both, so they are data; every value says
// whether it was seen on Google's own page. A PriceList is not changed after it
// was made and is safe for concurrent use.
type PriceList struct {
	Name    string            `yaml:"name" json:"name"`
	API     string            `yaml:"api" json:"api"` // "gmail" or "calendar"
	Date    string            `yaml:"date" json:"date"`
	Sources map[string]Source `yaml:"sources" json:"sources"` // values name theirs; "docs" if they do not
	Limits  map[string]Limit  `yaml:"limits" json:"limits"`
	Billing map[string]Amount `yaml:"billing,omitempty" json:"billing,omitempty"`
	Costs   map[string]Cost   `yaml:"costs" json:"costs"` // by method id, for instance "gmail.users.messages.get"

	dearest int64
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

// ListNames returns the names of the built-in price lists, sorted.
func ListNames() []string {
	entries, err := priceFiles.ReadDir("prices")
	if err != nil {
		return nil // the folder is part of the binary
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return names
}

// LoadList returns a built-in price list by its name.
func LoadList(name string) (*PriceList, error) {
	data, err := priceFiles.ReadFile("prices/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("unknown price list %q; there are %s", name, strings.Join(ListNames(), ", "))
	}
	return ParseList(data)
}

// ParseList reads a price list from YAML. Unknown keys are errors, and all that
// is wrong is reported at once.
func ParseList(data []byte) (*PriceList, error) {
	var list PriceList
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

func (l *PriceList) validate() error {
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
	for _, name := range []string{LimitUserMinute, LimitProjectMinute} {
		if _, ok := l.Limits[name]; !ok {
			bad("limits.%s: missing", name)
		}
	}
	for name, limit := range l.Limits {
		key := "limits." + name
		minute := name == LimitUserMinute || name == LimitProjectMinute
		if !limitName.MatchString(name) || name == LimitProjectDay {
			bad("%s: a limit is named user-NAME or project-NAME, and a day is a budget", key)
		}
		if limit.Units < 1 || limit.Units > maxUnits {
			bad("%s.units: %d is not from 1 to %d", key, limit.Units, maxUnits)
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
			if units < 1 || units > maxUnits {
				bad("%s: %d units are not from 1 to %d", key, units, maxUnits)
			}
			l.dearest = max(l.dearest, units)
		}
		if cost.DefaultFormat != "" && cost.Formats[cost.DefaultFormat] == 0 {
			bad("%s.default_format: %q is not among its formats", key, cost.DefaultFormat)
		}
		source(key, cost.Source)
	}
	return errors.Join(problems...)
}

// Cost returns what a call costs in units. Format is the request's format
// parameter, "" when it has none; an empty one counts as Google's default. A
// method that is not in the list costs as much as the dearest one, and known is
// false.
func (l *PriceList) Cost(method, format string) (units int64, known bool) {
	cost, ok := l.Costs[method]
	if !ok {
		return l.dearest, false
	}
	if format == "" {
		format = cost.DefaultFormat
	}
	if units, ok := cost.Formats[strings.ToLower(format)]; ok {
		return units, true
	}
	return cost.Units, true
}

// WithLimit returns a copy of the list in which a limit has other units, for a
// project that Google granted more, or that is to be tested with less.
func (l *PriceList) WithLimit(limit string, units int64) (*PriceList, error) {
	old, ok := l.Limits[limit]
	if !ok {
		return nil, fmt.Errorf("price list %s has no limit %q", l.Name, limit)
	}
	if units < 1 || units > maxUnits {
		return nil, fmt.Errorf("limit %s: %d units are not from 1 to %d", limit, units, maxUnits)
	}
	changed := *l
	changed.Limits = maps.Clone(l.Limits)
	old.Units, old.Verified, old.Note = units, false, "set by the operator"
	changed.Limits[limit] = old
	return &changed, nil
}
