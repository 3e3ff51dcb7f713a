package app

import (
	"maps"

	"headroom/config"
	"headroom/quota"
)

// A laneKey is one value of a lane that the settings may name.
type laneKey struct {
	lane     quota.Lane
	key      quota.Key
	share    **float64 // nil for in_flight
	inFlight **int
}

// laneKeys are the values in l, which they point into.
func laneKeys(l *config.Lanes) []laneKey {
	return []laneKey{
		{quota.Interactive, quota.KeyCeiling, &l.Interactive.Ceiling, nil},
		{quota.Interactive, quota.KeyPace, &l.Interactive.Pace, nil},
		{quota.Interactive, quota.KeyInFlight, nil, &l.Interactive.InFlight},
		{quota.Sync, quota.KeyCeiling, &l.Sync.Ceiling, nil},
		{quota.Sync, quota.KeyPace, &l.Sync.Pace, nil},
		{quota.Sync, quota.KeyInFlight, nil, &l.Sync.InFlight},
		{quota.Backfill, quota.KeyCeiling, &l.Backfill.Ceiling, nil},
		{quota.Backfill, quota.KeyFloor, &l.Backfill.Floor, nil},
		{quota.Backfill, quota.KeyPace, &l.Backfill.Pace, nil},
		{quota.Backfill, quota.KeyInFlight, nil, &l.Backfill.InFlight},
	}
}

// laneChanges returns the values that the settings name, which stay when the
// mode changes. The pace of lane interactive is none: it can only be 0.
func laneChanges(l config.Lanes) []quota.Change {
	var changes []quota.Change
	for _, k := range laneKeys(&l) {
		c := quota.Change{Lane: k.lane, Key: k.key}
		switch {
		case k.share != nil && *k.share != nil:
			c.Value = **k.share
		case k.inFlight != nil && *k.inFlight != nil:
			c.Value = float64(**k.inFlight)
		default:
			continue
		}
		if k.lane == quota.Interactive && k.key == quota.KeyPace && c.Value == 0 {
			continue
		}
		changes = append(changes, c)
	}
	return changes
}

// valueOf is the value of a lane's settings that a key names.
func valueOf(s quota.LaneSettings, key quota.Key) float64 {
	switch key {
	case quota.KeyCeiling:
		return s.Ceiling
	case quota.KeyFloor:
		return s.Floor
	case quota.KeyPace:
		return s.Pace
	}
	return float64(s.InFlight)
}

// WithModes returns settings in which the lanes of every project name all of
// their values, those of the project's mode included.
func WithModes(cfg config.Config) config.Config {
	cfg.Google.Projects = maps.Clone(cfg.Google.Projects)
	for name, p := range cfg.Google.Projects {
		mode := quota.Mode(p.Mode).Lanes()
		for _, k := range laneKeys(&p.Lanes) {
			value := valueOf(mode[k.lane], k.key)
			if k.share != nil && *k.share == nil {
				*k.share = &value
			} else if k.inFlight != nil && *k.inFlight == nil {
				n := int(value)
				*k.inFlight = &n
			}
		}
		cfg.Google.Projects[name] = p
	}
	return cfg
}
