package quota

import (
	"errors"
	"fmt"
)

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
