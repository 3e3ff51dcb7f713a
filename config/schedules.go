package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"headroom/internal/cronspec"
	"headroom/jobs"
)

// Schedules sets when recurring work runs, by the names of [jobs.Schedules].
type Schedules map[string]Schedule

// Schedule is one schedule. [Config.Schedule] fills in what it leaves out.
type Schedule struct {
	Spec    string         `yaml:"spec"`     // cron specification, "@every 5m", or NoSchedule
	Zone    string         `yaml:"zone"`     // of the specification, such as Europe/Berlin
	Spread  *time.Duration `yaml:"spread"`   // over which accounts are spread; 0: none
	CatchUp string         `yaml:"catch_up"` // one of [CatchUps]
	Pause   *bool          `yaml:"pause"`

	Tenants  map[string]TenantSchedule  `yaml:"tenants"`  // those that differ
	Accounts map[string]AccountSchedule `yaml:"accounts"` // those that differ, by address
}

// TenantSchedule is what differs for a tenant's accounts.
type TenantSchedule struct {
	Spec    string         `yaml:"spec"`
	Zone    string         `yaml:"zone"`
	Spread  *time.Duration `yaml:"spread"`
	CatchUp string         `yaml:"catch_up"`
	Pause   *bool          `yaml:"pause"`
}

// own is what the schedule itself says.
func (s Schedule) own() TenantSchedule {
	return TenantSchedule{Spec: s.Spec, Zone: s.Zone, Spread: s.Spread, CatchUp: s.CatchUp, Pause: s.Pause}
}

// AccountSchedule is what differs for an account.
type AccountSchedule TenantSchedule

// NoSchedule is the specification that never runs.
const NoSchedule = "none"

// CatchUps lists the values of CatchUp: what happens about slots that passed while no
// scheduler ran.
var CatchUps = []string{"one", "none"}

// defaultSpecs lacks mail-sync, which follows [Sync], and watch-renewal, which runs
// only with push.
var defaultSpecs = map[jobs.Schedule]string{jobs.ScheduleCalendar: "@every 15m", jobs.ScheduleReconcile: "@every 168h"}

const renewalSpec = "@every 1h"

// Schedule returns a schedule as it applies to an account. The account's settings take
// precedence over its tenant's, then over those for all, then over the defaults.
func (c Config) Schedule(name jobs.Schedule, tenant, account string) TenantSchedule {
	all := c.Schedules[string(name)]
	return TenantSchedule(all.Accounts[account]).
		over(all.Tenants[tenant]).
		over(all.own()).
		over(TenantSchedule{Spec: c.defaultSpec(name), Zone: "UTC", CatchUp: CatchUps[0], Pause: new(false)})
}

// ScheduleSource returns whose settings apply to a schedule of an account: those of the
// "account", of its "tenant", of "all", or the "defaults".
func (c Config) ScheduleSource(name jobs.Schedule, tenant, account string) string {
	all, named := c.Schedules[string(name)]
	if _, ok := all.Accounts[account]; ok {
		return "account"
	}
	if _, ok := all.Tenants[tenant]; ok {
		return "tenant"
	}
	if named && all.own() != (TenantSchedule{}) {
		return "all"
	}
	return "defaults"
}

func (c Config) defaultSpec(name jobs.Schedule) string {
	if spec, ok := defaultSpecs[name]; ok {
		return spec
	}
	switch {
	case name == jobs.ScheduleWatches && (c.Push.Gmail.On() || c.Push.Calendar.On()):
		return renewalSpec
	case name == jobs.ScheduleMail && c.Sync.Interval > 0:
		return "@every " + c.Sync.Interval.String()
	}
	return NoSchedule
}

// over returns the schedule, with what it leaves out taken from a wider one.
func (t TenantSchedule) over(wider TenantSchedule) TenantSchedule {
	t.Spec, t.Zone, t.CatchUp = cmp.Or(t.Spec, wider.Spec), cmp.Or(t.Zone, wider.Zone), cmp.Or(t.CatchUp, wider.CatchUp)
	t.Spread, t.Pause = cmp.Or(t.Spread, wider.Spread), cmp.Or(t.Pause, wider.Pause)
	return t
}

func (s Schedules) validate(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all, key := s[name], "schedules."+name
		p.check(slices.Contains(jobs.Schedules, jobs.Schedule(name)), key, "must be one of %s", joined(jobs.Schedules))
		all.own().validate(p, key)
		for _, tenant := range slices.Sorted(maps.Keys(all.Tenants)) {
			p.check(ValidGroup(tenant), key+".tenants."+tenant, "the name must have 1 to 128 characters that can be seen, no space, comma or =")
			all.Tenants[tenant].validate(p, key+".tenants."+tenant)
		}
		for _, account := range slices.Sorted(maps.Keys(all.Accounts)) {
			p.check(strings.Contains(account, "@") && account == strings.ToLower(account), key+".accounts."+account,
				"must be the address of an account, in lower case")
			TenantSchedule(all.Accounts[account]).validate(p, key+".accounts."+account)
		}
	}
}

func (t TenantSchedule) validate(p *problems, key string) {
	if err := checkSpec(t.Spec); err != nil {
		p.check(false, key+".spec", "must be a cron specification such as \"0 * * * *\", \"@every 5m\" or %q (%v)", NoSchedule, err)
	}
	if t.Zone != "" {
		_, err := cronspec.Parse("@daily", t.Zone)
		p.check(err == nil, key+".zone", "must be a time zone such as Europe/Berlin, not %q", t.Zone)
	}
	p.check(t.Spread == nil || *t.Spread >= 0, key+".spread", "must not be negative (0: everybody at once)")
	if t.CatchUp != "" {
		oneOf(p, key+".catch_up", t.CatchUp, CatchUps...)
	}
}

// checkSpec returns what is wrong with the specification of a schedule.
func checkSpec(spec string) error {
	if spec == "" || spec == NoSchedule {
		return nil
	}
	if strings.Contains(spec, "TZ=") {
		return errors.New("a zone has a key of its own")
	}
	_, err := cronspec.Parse(spec, "")
	return err
}
