package control

import (
	"cmp"
	"maps"

	"headroom/config"
	"headroom/quota"
)

// laneChanges returns the values that the settings name, which stay when the mode
// changes. A pace of 0 in lane interactive is left out: that lane is never paced.
func laneChanges(l config.Lanes) []quota.Change {
	wide := func(l config.Lane) config.BackfillLane {
		return config.BackfillLane{Ceiling: l.Ceiling, Pace: l.Pace, InFlight: l.InFlight}
	}
	var changes []quota.Change
	for _, one := range []struct {
		lane quota.Lane
		set  config.BackfillLane
	}{{quota.Interactive, wide(l.Interactive)}, {quota.Sync, wide(l.Sync)}, {quota.Backfill, l.Backfill}} {
		add := func(key quota.Key, value *float64) {
			if value != nil && (one.lane != quota.Interactive || key != quota.KeyPace || *value != 0) {
				changes = append(changes, quota.Change{Lane: one.lane, Key: key, Value: *value})
			}
		}
		add(quota.KeyCeiling, one.set.Ceiling)
		add(quota.KeyFloor, one.set.Floor)
		add(quota.KeyPace, one.set.Pace)
		if n := one.set.InFlight; n != nil {
			add(quota.KeyInFlight, new(float64(*n)))
		}
	}
	return changes
}

// WithModes returns settings in which the lanes of every project name all of their
// values, those of the project's mode included.
func WithModes(cfg config.Config) config.Config {
	full := func(l config.Lane, mode quota.LaneSettings) config.Lane {
		return config.Lane{Ceiling: cmp.Or(l.Ceiling, &mode.Ceiling), Pace: cmp.Or(l.Pace, &mode.Pace), InFlight: cmp.Or(l.InFlight, &mode.InFlight)}
	}
	cfg.Google.Projects = maps.Clone(cfg.Google.Projects)
	for name, p := range cfg.Google.Projects {
		mode := p.Mode.Lanes()
		p.Lanes.Interactive, p.Lanes.Sync = full(p.Lanes.Interactive, mode[quota.Interactive]), full(p.Lanes.Sync, mode[quota.Sync])
		b, own := p.Lanes.Backfill, mode[quota.Backfill]
		p.Lanes.Backfill = config.BackfillLane{
			Ceiling: cmp.Or(b.Ceiling, &own.Ceiling), Floor: cmp.Or(b.Floor, &own.Floor),
			Pace: cmp.Or(b.Pace, &own.Pace), InFlight: cmp.Or(b.InFlight, &own.InFlight),
		}
		cfg.Google.Projects[name] = p
	}
	return cfg
}
