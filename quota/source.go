package quota

import (
	"errors"
	"fmt"
)

// A LaneRule is what holds for a lane and a limit by the settings, and which of
// them say so.
type LaneRule struct {
	LaneSettings
	Source string // of the ceiling, for people: "mode default", "settings file", "set live for this account"
}

// Rule returns what holds for a caller's lane and a limit, as far as this process
// knows: it learns of live settings with its next decision. What Google's refusals
// and people's demand take away from it is not part of it, see [Ledger.Peek].
func (l *Ledger) Rule(c Caller, api, limit string) (LaneRule, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return LaneRule{}, err
	}
	live := b.rules.Load().live
	return LaneRule{b.project.settings(live, c.Lane, limit, c.User), b.project.source(live, c.Lane, limit, c.User)}, nil
}

// source says where a lane's ceiling comes from.
func (p Project) source(v Live, lane Lane, limit, user string) string {
	mode := p.Mode
	if v.Mode != "" {
		mode = v.Mode
	}
	if mode == "" {
		mode = ModeDefault
	}
	source := fmt.Sprintf("mode %s", mode)
	if own, ok := p.Lanes[lane]; ok && own.Ceiling != mode.Lanes()[lane].Ceiling {
		source = "settings file"
	}
	for _, from := range []struct {
		name    string
		changes []Change
	}{{"settings file", p.Changes}, {"set live", v.Changes}} {
		for _, c := range fitting(from.changes, lane, limit, user) {
			if c.Key != KeyCeiling {
				continue
			}
			source = from.name
			if c.Limit != "" {
				source += " for this limit"
			}
			if c.User != "" {
				source += " for this account"
			}
		}
	}
	return source
}

// Caps returns how many calls of one user may be in flight for one more of the
// caller's lane, and up to how many bytes of a day the user may have downloaded
// for it to go on; 0: there is no such limit.
func (l *Ledger) Caps(c Caller, api string) (calls, bytes int64, err error) {
	p, err := l.plan(c, api)
	if err != nil {
		return 0, 0, err
	}
	return p.inFlight, p.bytes, nil
}

// CheckLive reports what is wrong with live settings, if anything is: what
// [Ledger.Publish] would refuse, since every process would fail to decide by it, and
// what leaves a lane less than one call costs, see [Project.CheckRoom].
func (l *Ledger) CheckLive(project, api string, live Live) error {
	b, err := l.book(project, api)
	if err != nil {
		return err
	}
	if problems := b.project.checkRoom(b.list, live); len(problems) > 0 {
		return fmt.Errorf("project %s: %w", project, errors.Join(problems...))
	}
	if _, err := l.makeRules(b, live); err != nil {
		return fmt.Errorf("quota: project %s: %w", project, err)
	}
	return nil
}

// SettingsUnder returns what would hold for a caller's lane and a limit if live
// held.
func (l *Ledger) SettingsUnder(live Live, c Caller, api, limit string) (LaneSettings, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return LaneSettings{}, err
	}
	return b.project.settings(live, c.Lane, limit, c.User), nil
}
