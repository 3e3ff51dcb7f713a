package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// A Setting is the state of a project's quota settings for one API after a
// change. What they mean is not known here.
type Setting struct {
	Project  string          `json:"project"`
	API      string          `json:"api"`
	Revision uint32          `json:"revision"` // from 1; of two, the higher holds
	At       time.Time       `json:"at"`
	Who      string          `json:"who"`
	Change   string          `json:"change"` // for people
	Live     json.RawMessage `json:"live"`
}

// A SettingChange is what [Store.ChangeSettings] is to write.
type SettingChange struct {
	Change string
	Live   json.RawMessage
}

// ChangeSettings changes the settings of some APIs of a project, all of them in
// one transaction or none. For each it calls change with what holds now, of
// revision 0 if nothing was ever set, and the revision that the result will have:
// the next, or the one above the revision that after names, whichever is higher.
// Change must do nothing but compute, and leaves the settings alone with a nil
// result. ChangeSettings returns what it has written, in the order of apis.
// Concurrent changes come one after the other, so that none is lost.
func (s *Store) ChangeSettings(ctx context.Context, project string, apis []string, who string, after map[string]uint32,
	change func(now Setting, next uint32) (*SettingChange, error)) ([]Setting, error) {
	var written []Setting
	err := s.write(ctx, func(ctx context.Context, x *tx) error {
		written = nil
		for _, api := range apis {
			now, err := setting(ctx, x, project, api)
			if err != nil && !errors.Is(err, jobs.ErrNotFound) {
				return err
			}
			now.Project, now.API = project, api
			next := max(now.Revision, after[api]) + 1
			if next == 0 {
				return errors.New("there is no revision above the highest")
			}
			c, err := change(now, next)
			if err != nil {
				return err
			}
			if c == nil {
				continue
			}
			row := Setting{project, api, next, x.moment(), clean(who), clean(c.Change), c.Live}
			if err := x.insertSetting(ctx, row); err != nil {
				return err
			}
			written = append(written, row)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("change the quota settings of %s: %w", project, err)
	}
	return written, nil
}

func (x *tx) insertSetting(ctx context.Context, r Setting) error {
	_, err := x.ExecContext(ctx, `INSERT INTO quota_settings (project, api, revision, at, who, change, live)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, r.Project, r.API, r.Revision, x.now, r.Who, r.Change, string(r.Live))
	if err != nil {
		return fmt.Errorf("add revision %d of %s: %w", r.Revision, r.API, err)
	}
	return nil
}

const selectSettings = "SELECT project, api, revision, at, who, change, live FROM quota_settings "

// setting reads what holds now, or fails with [jobs.ErrNotFound].
func setting(ctx context.Context, q querier, project, api string) (Setting, error) {
	var r Setting
	err := scanSetting(q.QueryRowContext(ctx, selectSettings+
		"WHERE project = ? AND api = ? ORDER BY revision DESC LIMIT 1", project, api).Scan, &r)
	if err != nil {
		return Setting{}, fmt.Errorf("quota settings of %s, %s: %w", project, api, notFound(err))
	}
	return r, nil
}

func scanSetting(scan func(...any) error, r *Setting) error {
	var live string
	err := scan(&r.Project, &r.API, &r.Revision, millis{&r.At}, &r.Who, &r.Change, &live)
	r.Live = json.RawMessage(live)
	return err
}

// Settings returns the quota settings that hold, of every project and API of
// which something was ever set.
func (s *Store) Settings(ctx context.Context) ([]Setting, error) {
	return list(ctx, s, scanSetting, selectSettings+`AS s WHERE revision =
		(SELECT MAX(revision) FROM quota_settings WHERE project = s.project AND api = s.api) ORDER BY project, api`)
}

// SettingHistory returns all that was ever set of a project, the oldest first.
func (s *Store) SettingHistory(ctx context.Context, project string) ([]Setting, error) {
	return list(ctx, s, scanSetting, selectSettings+"WHERE project = ? ORDER BY at, api, revision", project)
}
